"""A database that was restored or cloned is told from the one that made the last sends, and sends nothing."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from imprint.problem import Problem
from imprint.store import incarnation
from imprint.store.embedded import Server
from imprint.store.incarnation import FILE, Incarnation, Mark, accept, advance, check, judge, read_mark
from imprint.store.query import Connection
from tests.conftest import named

HERE = Incarnation(uuid4(), "place", 5, None, None, "place")


@pytest.mark.parametrize(
    ("found", "mark", "embedded", "held"),
    [
        (HERE, Mark(HERE.id, 5, 1), True, False),
        (HERE, Mark(HERE.id, 4, 1), True, False),
        (HERE, Mark(HERE.id, 6, 1), True, True),  # the home has seen a later time: a backup was restored
        (HERE, Mark(HERE.id, 6, 1), False, True),
        (HERE, Mark(HERE.id, 5, 2), True, True),  # the home is a copy of another folder
        (HERE, Mark(HERE.id, 5, 2), False, False),  # the home of a worker may be copied, its database was not
        (HERE, None, True, True),  # an embedded database never leaves its home
        (HERE, None, False, False),  # a new worker joins a server
        (HERE, Mark(uuid4(), 5, 1), True, True),  # the home knew another database
        (replace(HERE, generation=1), Mark(uuid4(), 5, 1), False, False),  # a new database for an old home
        (replace(HERE, generation=1), None, True, False),
        (replace(HERE, here="elsewhere"), Mark(HERE.id, 5, 1), True, True),  # the database is not where it says
    ],
)
def test_every_case_is_judged(found: Incarnation, mark: Mark | None, embedded: bool, held: bool) -> None:  # noqa: FBT001
    """The table of cases: who is held and who is not."""
    assert (judge(found, mark, embedded=embedded, folder=1) is not None) is held


async def test_a_start_goes_forward_and_the_home_remembers(connection: Connection, tmp_path: Path) -> None:
    """Each start and each sign of life grows the generation, in the database and in the home."""
    first = await check(connection, tmp_path, embedded=True)
    await advance(connection, tmp_path, embedded=True)
    again = await check(connection, tmp_path, embedded=True)
    mark = read_mark(tmp_path)
    assert mark is not None
    assert (first.held_why, again.held_why) == (None, None)
    assert again.generation == first.generation + 2 == mark.generation


async def test_an_older_database_is_held_until_accepted(connection: Connection, tmp_path: Path) -> None:
    """A database that went back in time is held, stays held over starts, and goes on when a person says so."""
    await check(connection, tmp_path, embedded=True)
    for _ in range(3):
        await advance(connection, tmp_path, embedded=True)
    before = read_mark(tmp_path)
    await connection.execute("UPDATE incarnation SET generation = 2")  # what an hour-old backup brings back
    for _ in range(2):
        assert "backup" in str((await check(connection, tmp_path, embedded=True)).held_why)
    await advance(connection, tmp_path, embedded=True)
    assert read_mark(tmp_path) == before  # a held database does not become the home's truth
    accepted = await accept(connection, tmp_path)
    assert accepted.held_why is None
    assert before is not None
    assert accepted.generation > before.generation
    assert (await check(connection, tmp_path, embedded=True)).held_why is None


async def test_a_database_that_goes_back_under_a_running_worker_is_held(connection: Connection, tmp_path: Path) -> None:
    """The next sign of life notices, holds the sends, and does not let the home forget."""
    await check(connection, tmp_path, embedded=False)
    for _ in range(3):
        await advance(connection, tmp_path, embedded=False)
    before = read_mark(tmp_path)
    await connection.execute("UPDATE incarnation SET generation = 2")
    await advance(connection, tmp_path, embedded=False)
    assert "backup" in str((await incarnation.READ.one(connection)).held_why)
    assert read_mark(tmp_path) == before


async def test_a_cloned_database_is_held(connection: Connection, server: Server, tmp_path: Path) -> None:
    """A copy made with CREATE DATABASE … TEMPLATE knows that it is not where it says it is."""
    await check(connection, tmp_path, embedded=False)
    original = await connection.fetchval("SELECT current_database()")
    await connection.close()
    admin = await asyncpg.connect(server.url)
    try:
        await admin.execute(f"CREATE DATABASE {original}_clone TEMPLATE {original}")
        clone = await asyncpg.connect(named(server, f"{original}_clone"))
        found = await check(clone, tmp_path, embedded=False)
        await clone.close()
        assert "copied" in str(found.held_why)
    finally:
        await admin.execute(f"DROP DATABASE IF EXISTS {original}_clone WITH (FORCE)")
        await admin.close()


async def test_nothing_held_is_nothing_to_accept(connection: Connection, tmp_path: Path) -> None:
    """Accepting a database that is not held is refused, so that it cannot become a habit."""
    await check(connection, tmp_path, embedded=True)
    with pytest.raises(Problem, match="Nothing is held"):
        await accept(connection, tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"id": 3}', '{"id": "x", "generation": 1, "folder": 1}', "null"])
def test_a_mark_that_cannot_be_read_is_no_mark(tmp_path: Path, content: str) -> None:
    """A damaged file never stops the start; it only means that nobody can tell."""
    (tmp_path / FILE).write_text(content)
    assert read_mark(tmp_path) is None


async def test_two_holds_keep_the_first_reason(connection: Connection) -> None:
    """The reason that was there first is the one a person reads."""
    await incarnation.BEGIN.run(connection)
    await incarnation.HOLD.run(connection, "first")
    await incarnation.HOLD.run(connection, "second")
    assert (await incarnation.READ.one(connection)).held_why == "first"
