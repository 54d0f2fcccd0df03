"""The doctor sees what is wrong, and says for each finding what to do."""

from pathlib import Path

import pytest

from imprint.engine.lease import PUBLICATIONS
from imprint.settings import Settings, load
from imprint.store import incarnation
from imprint.store.query import Connection
from imprint.work.doctor import Level, examine
from tests.engine.scene import add_account, add_publication
from tests.engine.test_clock import HOUR, LEASE


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Give settings that name the test's database and a home of its own."""
    return load({"IMPRINT_DATABASE_URL": database_url, "IMPRINT_HOME": str(tmp_path)})


async def seen(settings: Settings, url: str) -> dict[str, Level]:
    """Give every subject that is not fine, and check that each says what to do."""
    findings = [finding for finding in await examine(settings, url) if finding.level is not Level.OK]
    assert all(finding.do for finding in findings)
    return {finding.subject: finding.level for finding in findings}


async def test_a_good_database_only_misses_a_worker(settings: Settings, database_url: str) -> None:
    """Nothing is wrong but that nobody is at work."""
    assert await seen(settings, database_url) == {"workers": Level.WARN}


async def test_stuck_and_late_work_is_seen(settings: Settings, database_url: str, connection: Connection) -> None:
    """A lease that ended long ago is bad, a publication that is an hour late worth a look."""
    await add_publication(connection, await add_account(connection), -HOUR)
    assert (await seen(settings, database_url))["publications"] is Level.WARN
    row = await add_publication(connection, await add_account(connection))
    assert await PUBLICATIONS.claim(connection, row, LEASE)
    await connection.execute("UPDATE publication SET lease_until = imprint_now() - interval '1 min' WHERE id = $1", row)
    findings = await examine(settings, database_url)
    assert Level.BAD in [finding.level for finding in findings if finding.subject == "publications"]


async def test_a_tampered_lifecycle_is_seen(settings: Settings, database_url: str, connection: Connection) -> None:
    """A move that somebody allowed by hand is found."""
    await connection.execute("INSERT INTO lifecycle_move VALUES ('post', 'published', 'draft', 'cheat', 'x')")
    assert (await seen(settings, database_url))["lifecycles"] is Level.BAD


async def test_a_moved_clock_is_seen(settings: Settings, database_url: str, connection: Connection) -> None:
    """A clock offset that a test left behind would publish early: it is bad."""
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET imprint.clock_offset = '1 hour'")
    assert (await seen(settings, database_url))["clock"] is Level.BAD


async def test_held_sends_dead_letters_and_silent_workers_are_seen(
    settings: Settings, database_url: str, connection: Connection
) -> None:
    """Each of them is named with its own advice."""
    await incarnation.BEGIN.run(connection)
    await incarnation.HOLD.run(connection, "restored")
    await connection.execute("INSERT INTO pgqueuer (priority, status, entrypoint) VALUES (0, 'failed', 'test')")
    await connection.execute(
        "INSERT INTO worker (id, name, version, concurrency, seen_at)"
        " VALUES (gen_random_uuid(), 'w', '0', 2, imprint_now() - interval '1 hour')"
    )
    found = await seen(settings, database_url)
    assert found == {"incarnation": Level.BAD, "dead letters": Level.WARN, "workers": Level.WARN}


async def test_a_database_that_is_not_migrated_or_not_there_is_seen(settings: Settings, empty_url: str) -> None:
    """Both are findings, not failures of the doctor."""
    assert await seen(settings, empty_url) == {"migrations": Level.BAD}
    assert await seen(settings, empty_url.replace("/t_", "/no_")) == {"database": Level.BAD}


async def test_publications_that_ask_and_those_out_twice_are_seen(
    settings: Settings, database_url: str, connection: Connection
) -> None:
    """What is still looked for is fine, what asks a person is named, and a duplicate is bad for a week."""
    row = await add_publication(connection, await add_account(connection))
    assert await PUBLICATIONS.claim(connection, row, LEASE)
    await connection.execute(
        "UPDATE publication SET status = 'unknown', intent_at = imprint_now(), lease_until = NULL, phase = NULL, "
        "look_at = imprint_now() + interval '1 h' WHERE id = $1",
        row,
    )
    assert await seen(settings, database_url) == {"workers": Level.WARN}
    await connection.execute("UPDATE publication SET look_at = NULL, held_why = 'person' WHERE id = $1", row)
    (asks,) = [each for each in await examine(settings, database_url) if each.subject == "publications"]
    assert (asks.level, str(row) in asks.seen) == (Level.WARN, True)
    assert f"imprint resolve {row}" in asks.do
    alarm = (
        "INSERT INTO publication_log (publication_id, at, kind, line) "
        "VALUES ($1, imprint_now() - $2::interval, 'duplicate', 'x')"
    )
    await connection.execute(alarm, row, 200 * HOUR)
    assert (await seen(settings, database_url))["publications"] is Level.WARN
    await connection.execute(alarm, row, HOUR)
    found = [each for each in await examine(settings, database_url) if each.level is Level.BAD]
    assert [(each.subject, f"imprint explain {row}" in each.do) for each in found] == [("publications", True)]


async def test_results_that_wait_in_the_journal_are_seen(settings: Settings, database_url: str) -> None:
    """What the database could not take is worth a look, what cannot be read is bad; looking changes neither."""
    folder = settings.home / "journal"
    folder.mkdir()
    (folder / "one.json").write_text("{}")
    assert (await seen(settings, database_url))["journal"] is Level.WARN
    (folder / "two.damaged").write_text("?")
    assert (await seen(settings, database_url))["journal"] is Level.BAD
    assert sorted(path.name for path in folder.iterdir()) == ["one.json", "two.damaged"]
