"""Walls: every table has one or a reason, and a connection asks for one person at a time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from imprint.problem import Unavailable
from imprint.settings import load
from imprint.store import wall as walls
from imprint.store.db import Database, open_database
from imprint.store.migrate import migrate
from imprint.store.query import Connection
from imprint.store.wall import DOOR, LACKS, STAND, Standing, Wall, raised
from imprint.work.doctor import Level, examine
from tests.work.posts import Author

ADA, BOB = Wall("ada", "ada", changes=True), Wall("bob", "bob", changes=True)

# Tables without a wall, and why nobody's things are in them.
NOBODYS = {
    "migration": "which steps were applied",
    "lifecycle_move": "which moves are allowed",
    "pace": "how fast hosts and accounts are called; under ids",
    "chore": "when the machine tidies up",
    "worker": "who is at work",
    "incarnation": "which database this is",
    "sweep": "how far the machine has come with its rounds",
    "audit_seal": "hashes over the audit",
    "sign_in_limit": "how often something was tried; under hashes",
    "listener": "processes in which somebody watches",
    "tally": "counts for the metrics",
    "tally_mark": "how far the counting has come",
    "pgqueuer_schedules": "PgQueuer's own",
    "pgqueuer_statistics": "PgQueuer's own counts",
}


async def test_every_table_has_a_wall_or_a_reason(connection: Connection) -> None:
    """A new table with people's things in it fails here until it says whose they are."""
    tables = await connection.fetch(
        "SELECT relname, relrowsecurity, (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid) AS policies "
        "FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    assert {name for name, walled, _ in tables if not walled} == set(NOBODYS)
    assert {name for name, walled, policies in tables if walled and not policies} == set()


async def test_whatever_writes_for_others_has_a_fixed_search_path(connection: Connection) -> None:
    """A function with the rights of its owner finds its tables where we put them, and nowhere else."""
    definers = await connection.fetch(
        "SELECT proname, proconfig FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
    )
    assert {name for name, _ in definers} >= {"lifecycle_guard", "audit_chain", "event_edited", "source_next"}
    assert {name for name, settings in definers if settings != ["search_path=public, pg_temp"]} == set()


async def test_a_connection_shows_what_its_person_has(database: Database) -> None:
    """Nobody's wall shows nothing, the door shows no things, and nobody writes for somebody else."""
    post = await Author(database, "ada").draft(title="Ada's")
    for wall, seen in ((ADA, [post]), (BOB, []), (Wall(), []), (DOOR, []), (Wall(office="people"), [])):
        async with database.behind(wall).connection() as connection:
            assert [row[0] for row in await connection.fetch("SELECT id FROM post")] == seen
            assert await connection.fetchval("SELECT current_user") == "imprint_api"
            changed = await connection.execute("UPDATE post SET title = 'x' WHERE id = $1", post)
            assert changed == f"UPDATE {len(seen)}"
            if wall.owner != "ada":
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute("INSERT INTO post (owner) VALUES ('ada')")
    reads = Wall("ada", "eve")
    async with database.behind(reads).connection() as connection:
        assert await connection.execute("UPDATE post SET title = 'y'") == "UPDATE 0"
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("INSERT INTO post (owner) VALUES ('ada')")


async def test_what_belongs_to_somebody_elses_is_not_referred_to(database: Database) -> None:
    """A publication on an account, a file or a batch of somebody else is refused, though a foreign key would hold."""
    ada, bob = Author(database, "ada"), Author(database, "bob")
    mine, account, content = await bob.draft(), await ada.account(), await ada.content()
    async with database.behind(BOB).connection() as connection:
        for sql, value in (
            ("INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now())", account),
            ("INSERT INTO post_file (post_id, content_id, position) VALUES ($1, $2, 9)", content),
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(sql, mine, value)


async def test_a_connection_asks_for_one_person_at_a_time(database: Database) -> None:
    """However its last use ended: well, by an error, cancelled, or with a transaction left open."""
    await Author(database, "ada").draft()
    await Author(database, "bob").draft()

    async def owners(wall: Wall) -> list[str]:
        async with database.behind(wall).connection() as connection:
            return [row[0] for row in await connection.fetch("SELECT owner FROM post")]

    async def breaks(wall: Wall, how: str) -> None:
        async with database.behind(wall).connection() as connection:
            begun = connection.transaction()
            await begun.start()
            await connection.execute("SELECT set_config('imprint.wall_owner', 'ada', true)")
            if how == "error":
                await connection.execute("SELECT 1 / 0")
            if how != "open":
                await connection.execute("SELECT pg_sleep(60)")

    for how in ("open", "error", *map(str, range(0, 60, 6))):  # or cancelled after so many steps
        for wall in (ADA, BOB):
            task = asyncio.create_task(breaks(wall, how))
            if how.isdigit():
                for _ in range(int(how)):
                    await asyncio.sleep(0)
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert (await owners(ADA), await owners(BOB), await owners(Wall())) == (["ada"], ["bob"], [])
    crowd = await asyncio.gather(*(owners(each) for _ in range(100) for each in (ADA, BOB, Wall(), DOOR)))
    assert crowd == [["ada"], ["bob"], [], []] * 100


async def test_a_wall_costs_one_word_when_the_person_changes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent when a connection stands where it is wanted; the door's always do."""
    said: list[Wall] = []

    class Counting:
        async def one(self, connection: Connection, owner: str, *values: str) -> Standing:
            said.append(Wall(owner))
            return await STAND.one(connection, owner, *values)

    monkeypatch.setattr(walls, "STAND", Counting())
    for each in (DOOR, ADA, DOOR, ADA, ADA, DOOR, BOB, DOOR, BOB, ADA):
        async with database.behind(each).connection() as connection:
            assert await connection.fetchval("SELECT coalesce(wall_owner(), '')") == each.owner
    assert [each.owner for each in said] == ["", "ada", "bob", "ada"]


@pytest.fixture
async def plain_url(server_url: str) -> AsyncIterator[str]:
    """Give an empty database of a user who may not make roles; the role of the walls is there already."""
    name = f"plain_{uuid4().hex[:12]}"
    connection = await asyncpg.connect(server_url)
    try:
        await connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
        await connection.execute(f"CREATE DATABASE {name} OWNER {name}")
        parts = urlsplit(server_url.replace("/imprint?", f"/{name}?"))
        host = parts.netloc.rpartition("@")[2]
        yield urlunsplit(parts._replace(netloc=f"{name}:{name}@{host}"))
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await connection.execute(f"DROP ROLE {name}")
    finally:
        await connection.close()


async def test_who_may_not_make_roles_is_told_what_to_run(plain_url: str, server_url: str, home: Path) -> None:
    """The migration goes through, the API lets nobody in and says which two lines are missing; then it does."""
    await migrate(plain_url)
    name = urlsplit(plain_url).username
    async with open_database(plain_url) as database, database.connection() as connection:
        with pytest.raises(Unavailable) as told:
            await raised(connection)
        assert told.value.code == "database.no_wall"
        assert f'GRANT imprint_api TO "{name}"' in told.value.sentence
        (finding,) = [
            each for each in await examine(load({"IMPRINT_HOME": str(home)}), plain_url) if each.subject == "walls"
        ]
        assert (finding.level, "CREATE ROLE imprint_api NOLOGIN" in finding.seen) == (Level.BAD, True)
        operator = await asyncpg.connect(server_url)
        await operator.execute(f"GRANT imprint_api TO {name}")
        await operator.close()
        await raised(connection)
        await Author(database, "ada").draft()
        async with database.behind(BOB).connection() as walled:
            assert await walled.fetchval("SELECT count(*) FROM post") == 0
        async with database.behind(ADA).connection() as walled:
            assert await walled.fetchval("SELECT count(*) FROM post") == 1


async def test_a_role_that_sees_through_walls_is_refused(connection: Connection) -> None:
    """A role that was made by hand with more rights is no wall; one that lost some gets them back."""
    async with _undone(connection):
        await connection.execute("ALTER ROLE imprint_api BYPASSRLS")
        with pytest.raises(Unavailable, match="NOBYPASSRLS"):
            await raised(connection)
    async with _undone(connection):
        await connection.execute("REVOKE ALL ON post FROM imprint_api")
        assert (await LACKS.one(connection)).what == "rights"
        await raised(connection)
        assert (await LACKS.one(connection)).what == ""


class _undone:  # noqa: N801 - it reads like a word
    """A transaction that is undone, so that other tests keep their role."""

    def __init__(self, connection: Connection) -> None:
        self._begun = connection.transaction()

    async def __aenter__(self) -> None:
        await self._begun.start()

    async def __aexit__(self, *_: object) -> None:
        await self._begun.rollback()


async def test_databases_that_are_migrated_at_once_share_the_role(database_url: str, server_url: str) -> None:
    """Whoever comes second finds the role made, and nobody fails over it."""
    name = f"imprint_race_{uuid4().hex[:8]}"
    other = urlsplit(database_url).path.strip("/") + "_too"
    operator = await asyncpg.connect(server_url)
    await operator.execute(f"CREATE DATABASE {other} TEMPLATE imprint_template")
    urls = [database_url, server_url.replace("/imprint?", f"/{other}?")]
    connections = [await asyncpg.connect(url) for url in urls]
    try:
        for each in connections:
            for function in ("wall_taken_on", "wall_raise"):  # the same, for a role that is not there yet
                text = await each.fetchval("SELECT pg_get_functiondef($1::regproc)", function)
                await each.execute(text.replace("imprint_api", name))
        begun = [each.transaction() for each in connections]
        await asyncio.gather(*(each.start() for each in begun))
        first = asyncio.create_task(connections[0].execute("SELECT wall_raise()"))
        await first
        second = asyncio.create_task(connections[1].execute("SELECT wall_raise()"))  # waits for the first
        await asyncio.wait([second], timeout=0.2)
        assert not second.done()
        await begun[0].commit()
        await second
        await begun[1].commit()
        assert await connections[1].fetchval("SELECT has_table_privilege($1, 'post', 'SELECT')", name)
    finally:
        for each in connections:
            await each.execute(f"DROP OWNED BY {name}")
            await each.close()
        await operator.execute(f"DROP DATABASE {other} WITH (FORCE)")
        await operator.execute(f"DROP ROLE {name}")
        await operator.close()
