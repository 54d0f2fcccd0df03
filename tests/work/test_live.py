"""Live: whoever watches is told of their own changes as they commit, in whatever order, and misses nothing."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Connection
from imprint.work import live as module
from imprint.work.event import FORGET, KEPT
from imprint.work.live import Live, Stream
from imprint.work.scope import Scope
from tests.waiting import until

ALL = frozenset(Scope)
CUTS = 50
WRITERS = 4
_EVENT = re.compile(rb"event: (\w+)\nid: (\S+)\ndata: (.*)\n\n")


@pytest.fixture
async def live(database: Database) -> AsyncIterator[Live]:
    """Give everybody who watches, and nobody yet."""
    running = Live(database)
    yield running
    await running.close()


def read(text: bytes) -> list[tuple[str, str, dict[str, Any]]]:
    """Take events apart: kind, position, data."""
    return [(kind.decode(), at.decode(), json.loads(data)) for kind, at, data in _EVENT.findall(text)]


async def heard(stream: Stream, seconds: float = 5) -> list[tuple[str, str, dict[str, Any]]]:
    """Give what is told next."""
    text = await stream.next(seconds)
    assert text is not None, "nothing was told"
    return read(text)


async def told(stream: Stream, kind: str, **data: Any) -> str:
    """Wait until something is told, and give its position."""
    while True:
        for name, at, found in await heard(stream):
            if name == kind and data.items() <= found.items():
                return at


async def post(database: Database, owner: str = "ada") -> UUID:
    """Make a post."""
    async with database.connection() as connection:
        made: UUID = await connection.fetchval("INSERT INTO post (title, owner) VALUES ('x', $1) RETURNING id", owner)
    return made


async def test_moves_and_edits_are_told_to_whose_they_are(live: Live, database: Database) -> None:
    """A move, an edit without one, a deletion; and nothing of anybody else's."""
    stream, missed = await live.open("ada", ALL)
    assert missed == b""
    mine, other = await post(database), await post(database, "bob")
    await told(stream, "post", id=str(mine), status="review", move="create")
    async with database.connection() as connection:
        await connection.execute("UPDATE post SET title = 'y' WHERE id = ANY ($1)", [mine, other])
        await told(stream, "post", id=str(mine), status="review", move="edit")
        await connection.execute("UPDATE post SET status = 'draft' WHERE id = ANY ($1)", [mine, other])
        await told(stream, "post", id=str(mine), status="draft")
        await connection.execute("UPDATE post SET deleted_at = imprint_now() WHERE id = ANY ($1)", [mine, other])
    ((kind, _, data),) = await heard(stream)
    assert (kind, data["id"], data["move"]) == ("post", str(mine), "delete")
    assert stream.waiting.empty()


async def test_every_kind_is_told(live: Live, database: Database) -> None:
    """Publications with their post, content, the health of accounts and sources, and notices."""
    mine = await post(database)
    stream, _ = await live.open("ada", ALL)
    other, _ = await live.open("bob", ALL)
    async with database.connection() as connection:
        run = connection.fetchval
        account = await run("INSERT INTO account (platform, name, owner) VALUES ('folder', 'a', 'ada') RETURNING id")
        await told(stream, "health", id=str(account), of="account", status="connected")
        await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", mine)
        publication = await run(
            "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now() + '1 h') RETURNING id",
            *(mine, account),
        )
        await told(stream, "publication", id=str(publication), postId=str(mine), status="pending", move="create")
        await connection.execute("UPDATE publication SET due_at = due_at + interval '1 h' WHERE id = $1", publication)
        await told(stream, "publication", id=str(publication), move="edit")
        content = await run("INSERT INTO content (name, owner) VALUES ('a', 'ada') RETURNING id")
        await told(stream, "content", id=str(content), status="created")
        series = await run("INSERT INTO series (title, owner) VALUES ('s', 'carol') RETURNING id")
        await connection.execute("INSERT INTO follow (person, series_id) VALUES ('ada', $1), ('dan', $1)", series)
        chapter = await run(
            "INSERT INTO chapter (series_id, slug, kind, silent) VALUES ($1, '1', 'chapter', false) RETURNING id",
            series,
        )
        await connection.execute(
            "INSERT INTO notice (person, series_id, chapter_id) SELECT person, series_id, $1 FROM follow", chapter
        )
        await told(stream, "notice", seriesId=str(series), status="unread", move="create")
        await connection.execute("UPDATE notice SET read_at = imprint_now() WHERE person = 'ada'")
        await told(stream, "notice", id=None, move="read")
    assert other.waiting.empty()


async def test_publishing_writes_no_row_for_it(database: Database) -> None:
    """What has a line in the audit has no row beside it, and what the clock notes on the way is not told at all."""
    mine = await post(database)
    async with database.connection() as connection:
        account = await connection.fetchval(
            "INSERT INTO account (platform, name, owner) VALUES ('folder', 'a', 'ada') RETURNING id"
        )
        await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", mine)
        one = "WHERE post_id = $1 AND account_id = $2"
        leased = "status = 'running', phase = 'uploading', fence = 1, lease_until = imprint_now() + '1 min'"
        for statement in (
            "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now())",
            f"UPDATE publication SET held_until = imprint_now() {one}",
            f"UPDATE publication SET {leased} {one}",
            f"UPDATE publication SET phase = 'publishing', intent_at = imprint_now() {one}",
            f"UPDATE publication SET status = 'success', phase = NULL, lease_until = NULL, remote_id = '1' {one}",
        ):
            await connection.execute(statement, mine, account)
        assert await connection.fetchval("SELECT count(*) FROM event") == 0
        assert await connection.fetchval("SELECT status FROM post WHERE id = $1", mine) == "published"


async def test_only_what_somebody_may_see_is_told(live: Live, database: Database) -> None:
    """A key for content hears nothing of posts."""
    stream, _ = await live.open("ada", frozenset({"content:read"}))
    await post(database)
    async with database.connection() as connection:
        await connection.execute("INSERT INTO content (name, owner) VALUES ('a', 'ada')")
    assert [kind for kind, _, _ in await heard(stream)] == ["content"]


async def test_what_was_missed_is_told_from_a_position(live: Live, database: Database) -> None:
    """Also when it committed late with an early number, and not what was before."""
    slow = await asyncpg.connect(database.url)
    stream, _ = await live.open("ada", ALL)
    before = await post(database)
    at = await told(stream, "post", id=str(before))
    held = slow.transaction()
    await held.start()
    early = await slow.fetchval("INSERT INTO post (title, owner) VALUES ('slow', 'ada') RETURNING id")
    quick = await post(database)
    at = await told(stream, "post", id=str(quick))
    live.leave(stream)
    await held.commit()
    await slow.close()
    stream, missed = await live.open("ada", ALL, at)
    ids = [data["id"] for _, _, data in read(missed)]
    assert str(early) in ids
    assert str(before) not in ids


async def test_a_position_that_is_no_good_means_to_load_anew(
    live: Live, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of another database, one of the future, one after which too much happened, and what is none."""
    first = str(await live.position())
    place, _, number = first.partition("-")
    for bad in (f"00000000-{number}", f"{place}-{int(number) + 999}", "garbage", f"{place}-{'9' * 30}"):
        _, missed = await live.open("ada", ALL, bad)
        assert [kind for kind, _, _ in read(missed)] == ["reset"], bad
    async with database.connection() as connection:
        for title in ("a", "b", "c"):
            await connection.execute("INSERT INTO post (title, owner) VALUES ($1, 'bob')", title)
        monkeypatch.setattr(module, "MOST_MISSED", 2)
        _, missed = await live.open("ada", ALL, first)
        assert [kind for kind, _, _ in read(missed)] == ["reset"]
        monkeypatch.undo()
        _, missed = await live.open("ada", ALL, first)
        assert missed == b""


async def test_who_reads_too_slowly_is_cut(live: Live, database: Database) -> None:
    """Nothing is kept for ever; and whoever comes back is told the rest."""
    stream, _ = await live.open("ada", ALL)
    at = str(live.at())
    stream.waiting = asyncio.Queue(3)
    made = [await post(database) for _ in range(8)]
    await asyncio.wait_for(stream.over.wait(), 5)
    live.leave(stream)
    _, missed = await live.open("ada", ALL, at)
    assert [data["id"] for _, _, data in read(missed)] == [str(each) for each in made]


async def test_there_is_an_end_to_how_many_watch(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that one person cannot take all room."""
    monkeypatch.setattr(module, "MOST_OF_PERSON", 2)
    first, _ = await live.open("ada", ALL)
    await live.open("ada", ALL)
    with pytest.raises(Problem, match="watching already"):
        await live.open("ada", ALL)
    await live.open("bob", ALL)
    live.leave(first)
    await live.open("ada", ALL)


async def test_a_transaction_that_began_before_us_is_not_missed(live: Live, database: Database) -> None:
    """Who came while it was not sure that nothing is missed loads anew when it is."""
    slow = await asyncpg.connect(database.url)
    held = slow.transaction()
    await held.start()
    await slow.execute("INSERT INTO post (title, owner) VALUES ('slow', 'ada')")
    module_seconds, module.SETTLING_SECONDS = module.SETTLING_SECONDS, 0.1
    try:
        stream, missed = await live.open("ada", ALL)
    finally:
        module.SETTLING_SECONDS = module_seconds
    assert (missed, live.at()) == (b"", None)
    await held.commit()
    await slow.close()
    assert [kind for kind, _, _ in await heard(stream)] == ["reset"]
    made = await post(database)
    await told(stream, "post", id=str(made))


async def test_nobody_rings_when_nobody_watches(
    live: Live, database: Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions that ring commit one by one; so they do only while somebody watches, and those who come are told."""
    rings: list[str] = []
    killed = "INSERT INTO listener VALUES (gen_random_uuid(), imprint_now() - interval '1 min')"
    await connection.execute(killed)
    await connection.add_listener(module.CHANNEL, lambda *_: rings.append("ring"))
    await post(database)
    await connection.fetchval("SELECT 1")
    assert rings == []
    stream, _ = await live.open("ada", ALL)
    await told(stream, "post", id=str(await post(database)))
    await connection.fetchval("SELECT 1")
    assert rings
    monkeypatch.setattr(module, "LONGEST_SLEEP", 0.01)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    live.leave(stream)
    while await connection.fetchval("SELECT count(*) FROM listener"):
        await post(database)
    rings.clear()
    await post(database)
    await connection.fetchval("SELECT 1")
    assert rings == []


async def test_who_rests_while_the_database_is_away_does_not_come_back(
    live: Live, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be said at the end is over after its minute; there is never a second one who listens."""

    class Away:
        async def run(self, *_: object) -> None:
            raise ConnectionResetError

    monkeypatch.setattr(module, "UNLISTEN", Away())
    monkeypatch.setattr(module, "LONGEST_SLEEP", 0.01)
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    stream, _ = await live.open("ada", ALL)
    listening = live._listening
    assert listening
    live.leave(stream)
    await asyncio.wait_for(listening, 5)
    assert live._listening is None
    gone = """SELECT count(*) = 0 FROM pg_stat_activity
        WHERE application_name = 'imprint events' AND datname = current_database()"""
    await until(lambda: connection.fetchval(gone))


async def test_what_did_not_ring_during_an_outage_is_told(
    live: Live, database: Database, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash makes the database forget who listens; what is written before it is said again is looked for."""
    monkeypatch.setattr(module, "LONGEST_SLEEP", 600)
    stream, _ = await live.open("ada", ALL)
    async with database.connection() as slow, slow.transaction():
        await connection.execute("DELETE FROM listener")
        mine = await slow.fetchval("INSERT INTO post (title, owner) VALUES ('slow', 'ada') RETURNING id")
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'imprint events' AND datname = current_database()"
        )
        await until(lambda: connection.fetchval("SELECT count(*) FROM listener"))
    await told(stream, "post", id=str(mine))


async def test_after_an_outage_it_goes_on_where_it_was(live: Live, database: Database, server_url: str) -> None:
    """What committed while the connection was cut is told when there is one again."""
    stream, _ = await live.open("ada", ALL)
    name = database.url.partition("?")[0].rpartition("/")[2]
    admin = await asyncpg.connect(server_url)
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = $1 AND application_name = 'imprint events'",
        name,
    )
    await admin.close()
    made = await post(database)
    await told(stream, "post", id=str(made))


async def test_what_is_forgotten_means_to_load_anew(live: Live, database: Database) -> None:
    """Rows beside the audit are kept for a day, and whoever was away for longer is told so."""
    mine = await post(database)
    first = str(await live.position())
    async with database.connection() as connection:
        await connection.execute("SET imprint.clock_offset = '-30 hours'")
        for title in ("a", "b", "c"):
            await connection.execute("UPDATE post SET title = $2 WHERE id = $1", mine, title)
        await connection.execute("RESET imprint.clock_offset")
        await FORGET.run(connection, KEPT)
        assert await connection.fetchval("SELECT count(*) FROM event") == 1
    _, missed = await live.open("ada", ALL, first)
    assert [kind for kind, _, _ in read(missed)] == ["reset"]


class Undone(Exception):  # noqa: N818 - not an error, only the way out
    """A transaction is not to be."""


@dataclass
class Writers:
    """Who commit in another order than they began, within savepoints, and now and then not at all."""

    url: str
    dice: random.Random
    made: list[str] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self) -> None:
        """Write until it is done."""
        connection = await asyncpg.connect(self.url)
        while not self.done.is_set():
            with suppress(Undone):
                async with connection.transaction():
                    new = await self._one(connection)
                self.made += new
        await connection.close()

    async def _one(self, connection: Connection) -> list[str]:
        insert = "INSERT INTO {} ({}, owner) VALUES ('x', $1) RETURNING id::text"
        new = [await connection.fetchval(insert.format("post", "title"), "ada")]
        await asyncio.sleep(self.dice.random() * 0.02)
        async with connection.transaction():
            new.append(await connection.fetchval(insert.format("content", "name"), "ada"))
        await connection.fetchval(insert.format("post", "title"), "bob")
        await asyncio.sleep(self.dice.random() * 0.02)
        if self.dice.random() < 0.2:
            raise Undone
        return new


async def test_a_stream_that_is_cut_again_and_again_misses_nothing(live: Live, database: Database) -> None:
    """Also in the middle of what was sent, while several write at once."""
    dice = random.Random(6)  # noqa: S311 - which order, not a secret
    writers = Writers(database.url, dice)
    stream, _ = await live.open("ada", ALL)
    at, seen = str(live.at()), set[str]()
    writing = [asyncio.create_task(writers.write()) for _ in range(WRITERS)]
    for _ in range(CUTS):
        for _ in range(dice.randrange(4)):
            events = await heard(stream)
            arrived = events[: dice.randrange(len(events))] if events and dice.random() < 0.3 else events
            seen |= {data["id"] for _, _, data in arrived}
            at = arrived[-1][1] if arrived else at
            if len(arrived) < len(events):
                break
        live.leave(stream)
        stream, text = await live.open("ada", ALL, at)
        missed = read(text)
        assert "reset" not in {kind for kind, _, _ in missed}
        seen |= {data["id"] for _, _, data in missed}
        at = missed[-1][1] if missed else at
    writers.done.set()
    await asyncio.gather(*writing)

    async def whole() -> bool:
        if text := await stream.next(0.05):
            seen.update(data["id"] for _, _, data in read(text))
        return set(writers.made) <= seen

    assert len(writers.made) > CUTS
    await until(whole, 5)
    assert seen == set(writers.made)
