"""Dead letters of every queue are seen with their history, requeued by one person, or let go."""

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from imprint.engine.queue import Entrypoint, Job, enqueue
from imprint.problem import Problem
from imprint.settings import load
from imprint.sources.contract import Fetched, SetAside
from imprint.store.db import Database
from imprint.store.query import Connection
from imprint.work.clean import clean
from imprint.work.dead_letter import discard, find, listed, requeue, show
from imprint.work.ingest import Carrier, ingest
from imprint.work.status import DEAD_LETTERS
from tests.engine.scene import queue_runs
from tests.engine.test_queue import Recorder
from tests.waiting import until
from tests.work.serials import add_series, add_source, chapter

FAILED = "SELECT count(*) FROM pgqueuer WHERE status = 'failed'"


async def hold(connection: Connection, url: str, *keys: str, attempts: int = 1) -> Recorder:
    """Let jobs fail for good."""
    handler = Recorder(fails=99)
    entrypoint = Entrypoint("test", handler, concurrency=0, attempts=attempts, timeout=timedelta(seconds=30))
    await enqueue(connection, [Job("test", key) for key in keys])
    async with queue_runs(url, entrypoint):
        await until(lambda: connection.fetchval(f"{FAILED} HAVING count(*) = {len(keys)}"))
    return handler


async def refused(database: Database, text: str) -> str:
    """Try to requeue and give the code of the refusal."""
    with pytest.raises(Problem) as caught:
        await requeue(database, "ada", text)
    return caught.value.code


async def audited(connection: Connection) -> list[tuple[str, ...]]:
    """Read what the audit says of dead letters."""
    rows = await connection.fetch(
        "SELECT move, source, target, actor, reason FROM audit WHERE lifecycle = 'dead_letter' ORDER BY id"
    )
    return [tuple(row) for row in rows]


async def test_a_dead_letter_shows_data_error_and_history(connection: Connection, database_url: str) -> None:
    """What it is about, why it failed the last time, and every attempt with its error."""
    await hold(connection, database_url, "k", attempts=2)
    (letter,) = await listed(connection)
    assert (letter.queue, letter.about, letter.attempts) == ("test", "k", 2)
    assert letter.error == "ValueError: not this time"
    shown = await show(connection, letter.id)
    assert shown.as_data()["data"]["key"] == "k"
    assert [(event.what, event.error) for event in shown.history] == [
        ("queued", None),
        ("picked", None),
        ("queued", "ValueError: not this time"),
        ("picked", None),
        ("failed", "ValueError: not this time"),
    ]
    assert await listed(connection, "test") == [letter]
    assert await listed(connection, "other") == []


async def test_a_requeue_that_works_leaves_no_trace_but_the_audit(
    database: Database, connection: Connection, database_url: str
) -> None:
    """The workers are woken, the job runs with all its attempts anew, and is gone."""
    await hold(connection, database_url, "k", attempts=2)
    (letter,) = await listed(connection)
    handler = Recorder()
    async with queue_runs(database_url, handler.entrypoint(attempts=2)):
        await enqueue(connection, [Job("test", "warm")])
        await until(handler.done)  # the workers are there, and have nothing to do
        await requeue(database, "ada", letter.id)
        await until(lambda: connection.fetchval("SELECT count(*) = 0 FROM pgqueuer"), seconds=5)
    assert handler.jobs == [Job("test", "warm"), Job("test", "k", 0)]
    assert await listed(connection) == []
    assert await audited(connection) == [
        ("requeue", "held", "queued", "ada", "test k: ValueError: not this time"),
    ]
    assert await refused(database, letter.id) == "dead_letter.missing"


async def test_what_waits_again_is_not_requeued(database: Database, connection: Connection, database_url: str) -> None:
    """The same work is in the queue once, whoever puts it there; the dead letter stays until it is let go."""
    await hold(connection, database_url, "k")
    (letter,) = await listed(connection)
    assert await enqueue(connection, [Job("test", "k")]) == 1
    assert await refused(database, letter.id) == "dead_letter.waits"
    assert await listed(connection) == [letter]
    assert await audited(connection) == []
    await discard(database, "ada", letter.id)
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer WHERE status = 'queued'") == 1
    assert await audited(connection) == [
        ("discard", "held", "discarded", "ada", "test k: ValueError: not this time"),
    ]


async def test_of_many_people_one_wins(database: Database, connection: Connection, database_url: str) -> None:
    """However many requeue and discard at once, one move is made and one line written."""
    await hold(connection, database_url, "k")
    (letter,) = await listed(connection)
    moves = [move(database, f"p{n}", letter.id) for n in range(4) for move in (requeue, discard)]
    ends = await asyncio.gather(*moves, return_exceptions=True)
    assert sum(end == letter for end in ends) == 1
    assert {end.code for end in ends if isinstance(end, Problem)} == {"dead_letter.missing"}
    assert len(await audited(connection)) == 1


async def test_ids_are_found_as_people_type_them(connection: Connection, database_url: str) -> None:
    """A number is the whole number; what is not there has one sentence."""
    await hold(connection, database_url, "a", "b")
    first, second = await listed(connection)
    assert await find(connection, f" {first.id} ") == first
    assert await find(connection, second.id) == second
    for text in ("", "0", "nothing", f"{first.id}0", "%", "' OR true"):
        with pytest.raises(Problem, match="no dead letter"):
            await find(connection, text)


async def set_aside(database: Database, *items: str) -> tuple[UUID, UUID]:
    """Let items of a new source be set aside, and give the series and the source."""
    async with database.transaction("test") as connection:
        series = await add_series(connection, "Sea")
        source = await add_source(connection, series, ref=f"https://example.org/{items[0]}", host=items[0])
        await connection.execute("UPDATE source SET etag = 'e', next_check_at = imprint_now() + interval '1 day'")
        bad = tuple(SetAside(item, "it cannot be read", f"<{item}>") for item in items)
        for _ in range(2):
            await ingest(connection, Carrier(source, series, first=False), Fetched(set_aside=bad))
    return series, source


async def test_an_item_that_was_set_aside_is_a_dead_letter(database: Database, connection: Connection) -> None:
    """It is listed as one of `ingest`; requeued, its source is read from its beginning, and mended it is gone."""
    series, source = await set_aside(database, "x", "y")
    letters = await listed(connection, "ingest")
    assert {letter.as_data()["data"]["id"] for letter in letters} == {"x", "y"}
    letter = letters[0]
    assert (letter.attempts, letter.error) == (2, "it cannot be read")
    assert [event.what for event in (await show(connection, letter.id)).history] == [
        "set aside",
        "set aside again, 2 times in all",
    ]
    async with database.transaction("worker") as inside:
        await inside.execute("UPDATE source SET lease_until = imprint_now() + interval '1 min'")
    assert await refused(database, letter.id) == "dead_letter.busy"
    await connection.execute("UPDATE source SET lease_until = NULL")
    await requeue(database, "ada", letter.id)
    assert await connection.fetchval("SELECT etag IS NULL AND next_check_at <= imprint_now() FROM source")
    assert await refused(database, letter.id) == "dead_letter.missing"
    (other,) = await listed(connection)
    async with database.transaction("test") as inside:
        found = chapter("Chapter 1", own=str(other.as_data()["data"]["id"]))
        await ingest(inside, Carrier(source, series, first=False), Fetched((found,)))
    assert await listed(connection) == []
    assert [line[0] for line in await audited(connection)] == ["requeue"]


async def test_a_discarded_item_does_not_come_back(database: Database, connection: Connection) -> None:
    """A source that shows the same bad item again makes no second dead letter of it."""
    series, source = await set_aside(database, "x")
    (letter,) = await listed(connection)
    await discard(database, "ada", letter.id)
    async with database.transaction("test") as inside:
        bad = SetAside("x", "it cannot be read", "<x>")
        await ingest(inside, Carrier(source, series, first=False), Fetched(set_aside=(bad,)))
    assert await listed(connection) == []


async def test_dead_letters_of_every_kind_are_counted_and_have_an_end(
    database: Database, connection: Connection, database_url: str, home: Path
) -> None:
    """The status counts them by queue; the chore lets go of those that are past their time."""
    await hold(connection, database_url, "k")
    series, _ = await set_aside(database, "x", "y")
    target = await connection.fetchval(
        "INSERT INTO target (person, label, service, key_id, nonce, sealed) VALUES ('ada', 'a', 'JSON', "
        "'0123456789abcdef', decode(repeat('00', 12), 'hex'), decode(repeat('00', 16), 'hex')) RETURNING id"
    )
    await connection.execute(
        "INSERT INTO delivery (target_id, series_id, next_at, closed_at, failed_at, error) "
        "VALUES ($1, $2, imprint_now(), imprint_now(), imprint_now(), 'no')",
        target,
        series,
    )
    counted = {row.entrypoint: row.held for row in await DEAD_LETTERS.all(connection)}
    assert counted == {"test": 1, "notify": 1, "ingest": 2}
    assert {letter.queue for letter in await listed(connection)} == set(counted)
    settings = load({"IMPRINT_HOME": str(home)})
    await clean(database, settings)
    assert len(await listed(connection)) == 4
    await connection.execute("UPDATE pgqueuer SET updated = updated - interval '8 days'")
    await connection.execute("UPDATE delivery SET failed_at = failed_at - interval '8 days'")
    await connection.execute("UPDATE set_aside SET seen_at = seen_at - interval '8 days' WHERE item = 'x'")
    assert (await clean(database, settings)).dead_letters == 3
    (left,) = await listed(connection)
    assert left.as_data()["data"]["id"] == "y"
