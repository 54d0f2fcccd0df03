"""Series and sources: added once, followed, read, removed; each person sees their own."""

import asyncio
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from imprint.decisions.polling import Priority
from imprint.engine import circuit
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import series as work
from imprint.work import source as sources
from imprint.work.series import Series
from tests.work.serials import OWNER, follow, settings_for, take_in

FEED = "https://example.org/feed"


@pytest.fixture
def settings(home: Path) -> Settings:
    """Give settings."""
    return settings_for("http://127.0.0.1:1", home)


async def made(database: Database, settings: Settings, text: str = FEED, owner: str = OWNER) -> tuple[Series, UUID]:
    """Add a series, and give its source as well."""
    one = await work.add(database, settings, owner, text, title="A tale")
    async with database.connection() as connection:
        (source,) = await sources.listed(connection, owner, one.id)
    return one, source.id


async def shown(database: Database, series: UUID, person: str = OWNER) -> Series:
    """Look at a series."""
    async with database.connection() as connection:
        return await work.show(connection, person, series)


async def test_the_same_place_is_added_once(database: Database, settings: Settings) -> None:
    """Also when ten do so at the same moment; another person may have it too."""
    tries = await asyncio.gather(*(made(database, settings) for _ in range(10)), return_exceptions=True)
    problems = [each for each in tries if isinstance(each, Problem)]
    assert [each.code for each in problems] == ["series.already_there"] * 9
    one, _ = await made(database, settings, owner="another")
    with pytest.raises(Problem) as refused:
        await sources.add(database, settings, "another", one.id, FEED)
    assert refused.value.code == "source.already_there"
    with pytest.raises(Problem) as refused:
        await sources.add(database, settings, "a stranger", one.id, "https://example.org/other")
    assert refused.value.code == "series.missing"  # and nothing is added
    async with database.connection() as connection:
        assert len(await sources.listed(connection, "another")) == 1


async def test_following_and_reading(database: Database, settings: Settings) -> None:
    """What one person has read another has not; a range is read with its end; a notice is seen with its chapter."""
    one, source = await made(database, settings)
    async with database.connection() as connection:
        await follow(connection, one.id, "reader")
    await work.follow(database, "reader", one.id, preferred=source)
    names = ["Chapter 1", "Chapter 2", "Chapter 3-5", "Extra 1", "Notice. Hiatus"]
    await take_in(database, one.id, source, names)
    assert (await shown(database, one.id, "reader")).unread == 4  # a notice is nothing to read
    assert await work.read(database, "reader", one.id, ["Chapter 1", "Extra 1"]) == 2
    assert await work.read(database, "reader", one.id, ["1"]) == 0
    assert await work.read(database, "reader", one.id, up_to=Decimal(4)) == 1
    assert (await shown(database, one.id, "reader")).unread == 1
    async with database.connection() as connection:
        seen = "SELECT count(*) FROM notice WHERE read_at IS NOT NULL AND person = $1"
        assert await connection.fetchval(seen, "reader") == 3
        assert await connection.fetchval(seen, OWNER) == 0
        found = await work.chapters(connection, "reader", one.id)
        assert [each.slug for each in found][:3] == ["3-5", "2", "1"]
        assert [each.read_at is not None for each in found][:3] == [False, True, True]
    assert await work.unread(database, "reader", one.id, ["2"]) == 1
    assert await work.unread(database, "reader", one.id) == 2
    assert (await shown(database, one.id)).unread == 4
    assert await work.read(database, OWNER, one.id) == 5


async def test_how_one_follows_can_be_changed(database: Database, settings: Settings) -> None:
    """Quietly, at another source, and no more; what was not said stays as it was."""
    one, source = await made(database, settings)
    await work.follow(database, OWNER, one.id, notify=False)
    await work.follow(database, OWNER, one.id, preferred=source)
    now = await shown(database, one.id)
    assert (now.followed, now.notify, now.preferred_source) == (True, False, source)
    await work.unfollow(database, OWNER, one.id)
    assert not (await shown(database, one.id)).followed
    other, _ = await made(database, settings, "https://example.org/other")
    problems = []
    for act in (
        work.unfollow(database, OWNER, one.id),
        work.follow(database, OWNER, other.id, preferred=source),
        work.follow(database, OWNER, uuid4()),
    ):
        with pytest.raises(Problem) as refused:
            await act
        problems.append(refused.value.code)
    assert problems == ["series.not_followed", "series.other_source", "series.missing"]


async def test_a_removed_series_is_gone_and_can_be_added_anew(database: Database, settings: Settings) -> None:
    """With its sources; whoever asks one of them at that moment has lost it, and strangers cannot remove it."""
    one, source = await made(database, settings)
    with pytest.raises(Problem):
        await work.remove(database, "a stranger", one.id)
    async with database.connection() as connection:
        await connection.execute("UPDATE source SET lease_until = imprint_now() + interval '1 min'")
    await work.remove(database, OWNER, one.id)
    async with database.connection() as connection:
        row = await connection.fetchrow("SELECT fence, lease_until, wake_at FROM source WHERE id = $1", source)
        assert row is not None
        assert tuple(row) == (1, None, None)
        assert await work.listed(connection, OWNER) == []
    again, _ = await made(database, settings)
    assert again.id != one.id


async def test_series_and_sources_are_found_by_name_or_id(database: Database, settings: Settings) -> None:
    """By title in any case, by the beginning of the id; what is ambiguous is said to be so."""
    one, source = await made(database, settings)
    async with database.connection() as connection:
        assert await work.find(connection, OWNER, "a TALE") == one.id
        assert await work.find(connection, OWNER, str(one.id)[:8]) == one.id
        assert await sources.find(connection, OWNER, "example.org/feed") == source
    await made(database, settings, "https://example.org/other")
    async with database.connection() as connection:
        for text, code in (("A tale", "series.ambiguous"), ("nothing", "series.missing"), ("%", "series.missing")):
            with pytest.raises(Problem) as refused:
                await work.find(connection, OWNER, text)
            assert refused.value.code == code


@pytest.mark.parametrize("title", ["", " ", "x" * 501, "\0"])
async def test_a_title_is_a_title(database: Database, settings: Settings, title: str) -> None:
    """Neither empty nor endless."""
    with pytest.raises(Problem) as refused:
        await work.add(database, settings, OWNER, FEED, title=title)
    assert refused.value.code == "series.bad_title"


async def test_a_source_is_disabled_enabled_and_prioritised(database: Database, settings: Settings) -> None:
    """Enabling forgets what failed; a fixed priority stays, one set during a rest counts after it."""
    _, source = await made(database, settings)
    async with database.connection() as connection:
        await circuit.failed(connection, f"source:{source}", circuit.POLLING, "error", "x")
        await connection.execute(
            "UPDATE source SET status = 'resting', priority = 'COLD', priority_before = 'HOT', failures = 5,"
            " error_code = 'x', error = 'X.', next_check_at = imprint_now() + interval '1 day'"
        )
    fixed = await sources.prioritise(database, OWNER, source, Priority.WARM)
    assert (fixed.priority, fixed.priority_before, fixed.priority_fixed) == ("COLD", "WARM", True)
    assert (await sources.disable(database, OWNER, source)).status == "disabled"
    enabled = await sources.enable(database, OWNER, source)
    assert (enabled.status, enabled.priority, enabled.failures, enabled.error) == ("active", "WARM", 0, None)
    assert not (await sources.prioritise(database, OWNER, source, None)).priority_fixed
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM circuit") == 0
    await sources.remove(database, OWNER, source)
    for act in (sources.disable, sources.enable, sources.remove):
        with pytest.raises(Problem) as refused:
            await act(database, OWNER, source)
        assert refused.value.code == "source.missing"
