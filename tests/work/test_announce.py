"""A rule makes exactly one post of each new chapter, scheduled on its accounts."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from imprint.engine.queue import Entrypoint, Job
from imprint.problem import Problem
from imprint.sources.contract import Chapter
from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work import rule as rules
from imprint.work.announce import announce
from imprint.work.dead_letter import listed, requeue
from imprint.work.rule import Rule
from tests.engine.scene import queue_runs
from tests.waiting import until
from tests.work.posts import Author
from tests.work.serials import OWNER, add_series, add_source, chapter, take_in

HOUR = timedelta(hours=1)
TITLE, BODY = "{series} {number}", "{title}: {url}"


class Press:
    """A series with a source, an author with accounts, and rules between them."""

    def __init__(self, database: Database, series: UUID, source: UUID) -> None:
        self.database = database
        self.series = series
        self.source = source
        self.author = Author(database, OWNER)

    async def rule(self, *on: UUID, title: str = TITLE, body: str = BODY, **more: Any) -> Rule:
        """Make a rule."""
        named = list(on) or [await self.author.account()]
        return await rules.add(self.database, OWNER, self.series, named, title=title, body=body, **more)

    async def found(self, *names: str | Chapter, first: bool = False) -> None:
        """Let chapters be found, without announcing them yet."""
        given = [chapter(n, url=f"https://r.example/{n[8:]}") if isinstance(n, str) else n for n in names]
        await take_in(self.database, self.series, self.source, given, first=first)

    async def announce(self) -> None:
        """Deliver the job."""
        await announce(self.database, Job("announce", str(self.series)))

    async def posts(self) -> list[tuple[str, str, str]]:
        """Give title, body and state of every post, in order."""
        async with self.database.connection() as connection:
            rows = await connection.fetch("SELECT title, body, status FROM post ORDER BY title")
        return [tuple(row) for row in rows]

    async def value(self, sql: str, *values: object) -> Any:
        """Read one value."""
        return await self.author.read(sql, *values)


@pytest.fixture
async def press(database: Database) -> AsyncIterator[Press]:
    """Set the scene up."""
    async with database.connection() as connection:
        series = await add_series(connection, "Sea")
        yield Press(database, series, await add_source(connection, series))


async def test_a_post_for_each_new_chapter(press: Press) -> None:
    """Written from the template, ready, and scheduled on each account after the delay; what was there before is not."""
    await press.found("Chapter 1", "Chapter 2", first=True)
    first, second = await press.author.account("a"), await press.author.account("b")
    await press.rule(first, second, tags=["{series}", "new", " {series} "], delay=2 * HOUR)
    await press.announce()
    assert await press.posts() == []
    await press.found("Chapter 3", "Chapter 4.5")
    await press.announce()
    await press.announce()
    assert await press.posts() == [
        ("Sea 3", "3: https://r.example/3", "scheduled"),
        ("Sea 4.5", "4.5: https://r.example/4.5", "scheduled"),
    ]
    assert await press.value("SELECT tags FROM post LIMIT 1") == ["Sea", "new"]
    assert await press.value("SELECT count(*) FROM publication") == 4
    assert await press.value(
        "SELECT bool_and(jitter_seconds = 0 AND due_at BETWEEN imprint_now() + interval '119 min' "
        "AND imprint_now() + interval '120 min') FROM publication"
    )
    assert await press.value("SELECT count(DISTINCT (rule_id, chapter_id)) FROM announcement") == 2


async def test_silent_chapters_make_no_post(press: Press) -> None:
    """Neither the first read of a source nor a notice of the group is announced."""
    await press.rule()
    await press.found("Chapter 1", first=True)
    await press.found("Hiatus announcement")
    await press.announce()
    assert len(await press.posts()) == await press.value("SELECT count(*) FROM chapter WHERE NOT silent")
    assert "Sea 1" not in [title for title, *_ in await press.posts()]


async def test_the_whole_way_by_the_queue(press: Press, database_url: str) -> None:
    """The ingestion puts the job in, and a worker makes the post."""
    await press.rule()
    entrypoint = Entrypoint("announce", partial(announce, press.database), 0, 3, timedelta(minutes=1))
    async with queue_runs(database_url, entrypoint):
        await press.found("Chapter 1")
        await until(press.posts)


async def test_many_workers_make_one_post(press: Press) -> None:
    """However many announce at once, there is one post for each chapter and rule."""
    account = await press.author.account()
    await press.rule(account)
    await press.rule(account, title="Another: {series} {number}")
    await press.found(*(f"Chapter {number}" for number in range(1, 4)))
    await asyncio.gather(*(press.announce() for _ in range(8)))
    assert len(await press.posts()) == await press.value("SELECT count(*) FROM announcement") == 6
    assert await press.value("SELECT count(*) FROM publication") == 6


async def test_what_is_wrong_with_one_rule_is_a_dead_letter_and_holds_up_no_other(
    press: Press, database_url: str
) -> None:
    """The post of the other rule is made; after the last attempt a person is told; a requeue makes the missing one."""
    off, on = await press.author.account("off"), await press.author.account("on")
    await press.rule(off, title="Off {number}")
    await press.rule(on, title="On {number}")
    await accounts.disable(press.database, OWNER, off)
    entrypoint = Entrypoint("announce", partial(announce, press.database), 0, 2, timedelta(minutes=1))
    async with queue_runs(database_url, entrypoint):
        await press.found("Chapter 1")
        await until(lambda: press.value("SELECT count(*) FROM pgqueuer WHERE status = 'failed'"))
        assert [title for title, *_ in await press.posts()] == ["On 1"]
        async with press.database.connection() as connection:
            (letter,) = await listed(connection, "announce")
        assert "No account of this rule can be used" in letter.error
        await accounts.enable(press.database, OWNER, off)
        await requeue(press.database, OWNER, letter.id)
        await until(lambda: press.value("SELECT count(*) = 0 FROM pgqueuer"))
    assert [title for title, *_ in await press.posts()] == ["Off 1", "On 1"]


async def test_a_rule_that_is_off_makes_nothing_up_for(press: Press) -> None:
    """Chapters found while it was off are not announced when it is on again; a removed rule leaves its posts."""
    rule = await press.rule()
    await press.found("Chapter 1")
    await rules.disable(press.database, OWNER, rule.id)
    await press.announce()
    await rules.enable(press.database, OWNER, rule.id)
    await press.announce()
    assert await press.posts() == []
    await press.found("Chapter 2")
    await press.announce()
    await rules.remove(press.database, OWNER, rule.id)
    await press.found("Chapter 3")
    await press.announce()
    assert [title for title, *_ in await press.posts()] == ["Sea 2"]
    async with press.database.connection() as connection:
        assert await rules.listed(connection, OWNER) == []
        with pytest.raises(Problem, match="no such rule"):
            await rules.find(connection, OWNER, str(rule.id))


async def test_long_and_strange_names_fit(press: Press) -> None:
    """A title that would be too long is cut, a tag too, and braces in a name are only braces."""
    await press.rule(title="{series} {title}", tags=["{title}"])
    name = "{url} " + "x" * 900
    await press.found(Chapter("id", chapter("Chapter 1").number, title=name, url="https://r.example/1"))
    await press.announce()
    ((title, body, status),) = await press.posts()
    assert title.startswith("Sea {url} xxx")
    assert (len(title), status) == (500, "scheduled")
    assert name in body


async def test_the_database_lets_no_second_post_in(press: Press) -> None:
    """Whatever the code does."""
    await press.rule()
    await press.found("Chapter 1")
    await press.announce()
    async with press.database.connection() as connection:
        post = await connection.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id")
        with pytest.raises(Exception, match="announcement_pkey"):
            await connection.execute(
                "INSERT INTO announcement (rule_id, chapter_id, post_id) "
                "SELECT rule_id, chapter_id, $1 FROM announcement",
                post,
            )


BAD: list[tuple[dict[str, Any], str]] = [
    ({"title": "{nonsense}"}, "rule.unknown_field"),
    ({"body": "{title.__class__}"}, "rule.unknown_field"),
    ({"tags": ["{"]}, "rule.bad_template"),
    ({"title": "  "}, "rule.bad_template"),
    ({"body": ""}, "rule.bad_template"),
    ({"title": "x" * 501}, "rule.bad_template"),
    ({"tags": [""]}, "rule.bad_template"),
    ({"title": "\0"}, "rule.bad_template"),
    ({"delay": timedelta(days=366)}, "rule.bad_delay"),
    ({"delay": timedelta(seconds=-1)}, "rule.bad_delay"),
    ({"zone": "Nowhere/Land"}, "schedule.no_zone"),
]


async def test_a_bad_rule_is_refused_when_it_is_made(press: Press) -> None:
    """With one sentence, and nothing is kept."""
    account = await press.author.account()
    for given, code in BAD:
        with pytest.raises(Problem) as caught:
            await press.rule(account, **given)
        assert caught.value.code == code, given
    assert await press.value("SELECT count(*) FROM rule") == 0


async def test_a_rule_is_for_ones_own(press: Press) -> None:
    """Another person's series or account is as good as none, and no account at all is none."""
    stranger = await Author(press.database, "eve").account()
    with pytest.raises(Problem, match="no such account"):
        await press.rule(stranger)
    mine = await press.author.account()
    with pytest.raises(Problem, match="no such series"):
        await rules.add(press.database, "eve", press.series, [stranger], title=TITLE, body=BODY)
    with pytest.raises(Problem, match="on which accounts"):
        await rules.add(press.database, OWNER, press.series, [], title=TITLE, body=BODY)
    assert (await press.rule(mine, mine)).accounts == ["gallery"]
