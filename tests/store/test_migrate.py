"""Migrations: each step once, whole or not at all, by one at a time; what does not fit is refused."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from importlib import metadata

import asyncpg
import pytest

from imprint.problem import Exit, Problem, Unavailable, WrongVersion
from imprint.store import migrate as module
from imprint.store.jobs import NAMES, queries_on
from imprint.store.migrate import JOBS_PART, LIFECYCLES_PART, Migration, known, migrate, pending
from imprint.store.query import Connection
from tests.store.cluster import DEBIAN, cluster
from tests.store.test_query import queries
from tests.waiting import until

REAL = known()
ALL = [step.number for step in REAL]


FAILS = "CREATE TABLE b (); DO $$BEGIN RAISE 'it does not work.' USING HINT = 'Do not.'; END$$"


def step(number: int, sql: str) -> Migration:
    """Make up a step."""
    return Migration(number, "made_up", sql, f"checksum of {sql}")


@pytest.fixture
async def empty(empty_url: str) -> AsyncIterator[Connection]:
    """Give a connection to a database that was never migrated."""
    connection = await asyncpg.connect(empty_url)
    yield connection
    await connection.close()


async def applied(connection: Connection) -> list[tuple[int, str]]:
    """Read what a database has behind it."""
    return [tuple(row) for row in await connection.fetch("SELECT number, checksum FROM migration ORDER BY number")]


async def tables(connection: Connection) -> set[str]:
    """Name the tables there are."""
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {row["tablename"] for row in rows}


def knowing(monkeypatch: pytest.MonkeyPatch, *steps: Migration) -> None:
    """Let this program know these steps."""
    monkeypatch.setattr(module, "known", lambda: steps)


def test_the_steps_have_numbers_without_gaps() -> None:
    """PgQueuer's tables come first, the lifecycles last, and the files in between count from one."""
    numbers = [each.number for each in REAL]
    assert numbers == [JOBS_PART, *range(1, len(numbers) - 1), LIFECYCLES_PART]
    assert all(each.name.isidentifier() for each in REAL)
    assert len({each.checksum for each in REAL}) == len(REAL)


async def test_the_first_run_applies_everything_and_the_second_nothing(empty: Connection, empty_url: str) -> None:
    """Also the list of what is missing says so before and after."""
    assert await pending(empty) == REAL
    assert await tables(empty) == set()
    assert await migrate(empty_url) == REAL
    assert await pending(empty) == ()
    assert await migrate(empty_url) == ()
    assert dict(await applied(empty)) == {each.number: each.checksum for each in REAL}
    assert {"post", "publication", "audit", NAMES.queue_table} < await tables(empty)


async def test_five_at_once_apply_each_step_once(empty: Connection, empty_url: str) -> None:
    """Whoever comes second waits and finds nothing to do."""
    outcomes = await asyncio.gather(*(migrate(empty_url) for _ in range(5)))
    assert sorted(map(len, outcomes)) == [0, 0, 0, 0, len(REAL)]
    assert len(await applied(empty)) == len(REAL)


async def test_five_processes_at_once_apply_each_step_once(empty: Connection, empty_url: str) -> None:
    """As when a machine starts and every worker of it comes up together."""
    program = (
        "import asyncio, sys; from imprint.store.migrate import migrate; print(len(asyncio.run(migrate(sys.argv[1]))))"
    )
    children = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", program, empty_url, stdout=subprocess.PIPE)
        for _ in range(5)
    ]
    outputs = [(await child.communicate())[0] for child in children]
    assert sorted(int(output) for output in outputs) == [0, 0, 0, 0, len(REAL)]
    assert len(await applied(empty)) == len(REAL)


async def test_a_step_that_fails_leaves_nothing_of_itself(
    empty: Connection, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps before it stay, the steps after it are not tried, and mended it goes on from there."""
    good, bad, later = step(1, "CREATE TABLE a ()"), step(2, FAILS), step(3, "CREATE TABLE c ()")
    knowing(monkeypatch, good, bad, later)
    with pytest.raises(Problem) as caught:
        await migrate(empty_url)
    assert caught.value.code == "database.migration_failed"
    assert caught.value.sentence == "The migration made_up failed: it does not work."
    assert await tables(empty) == {"migration", "a"}
    assert [number for number, _ in await applied(empty)] == [1]
    knowing(monkeypatch, good, replace(bad, sql="CREATE TABLE b ()"), later)
    assert [each.number for each in await migrate(empty_url)] == [2, 3]
    assert await tables(empty) == {"migration", "a", "b", "c"}


async def test_a_database_of_a_newer_imprint_is_refused(
    connection: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is touched."""
    before = await applied(connection)
    knowing(monkeypatch, *[each for each in REAL if each.number < max(ALL)])
    for attempt in (migrate(database_url), pending(connection)):
        with pytest.raises(WrongVersion) as caught:
            await attempt
        assert (caught.value.code, caught.value.exit) == ("database.newer", Exit.VERSION)
        assert f"(to {max(ALL):03}, this one knows {max(ALL) - 1:03})" in caught.value.sentence
    assert await applied(connection) == before


async def test_a_step_that_was_changed_afterwards_is_refused(
    connection: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database made with other statements than these is not one of ours to change."""
    before = await applied(connection)
    changed = [replace(each, checksum="other") if each.number == 2 else each for each in REAL]
    knowing(monkeypatch, *changed, step(max(ALL) + 1, "CREATE TABLE later ()"))
    with pytest.raises(WrongVersion) as caught:
        await migrate(database_url)
    assert caught.value.code == "database.migration_changed"
    assert caught.value.sentence.startswith("Migration 002 (things) is not the one this database was made with")
    assert await applied(connection) == before
    assert "later" not in await tables(connection)


async def test_a_changed_lifecycle_is_written_anew(connection: Connection, database_url: str) -> None:
    """The lifecycles have no number: a new declaration takes the place of the old one, also on a migrated database."""
    await connection.execute("UPDATE migration SET checksum = 'of an older declaration' WHERE number = 0")
    await connection.execute("DELETE FROM lifecycle_move WHERE lifecycle = 'post'")
    await connection.execute("ALTER TABLE post DROP CONSTRAINT lifecycle_states")
    assert [each.name for each in await migrate(database_url)] == ["lifecycles"]
    assert await connection.fetchval("SELECT count(*) FROM lifecycle_move WHERE lifecycle = 'post'") > 0
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute("INSERT INTO post (status) VALUES ('nowhere')")
    assert await migrate(database_url) == ()


async def test_a_backup_is_made_only_before_an_existing_database_is_changed(
    empty: Connection, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for a new one, not when there is nothing to do; and when it fails nothing is changed."""
    seen: list[set[str]] = []

    async def back_up() -> None:
        seen.append(await tables(empty))

    async def fail() -> None:
        raise Unavailable("backup.failed", "The disk is full.")

    first, second = step(1, "CREATE TABLE a ()"), step(2, "CREATE TABLE b ()")
    knowing(monkeypatch, first)
    await migrate(empty_url, before_change=back_up)
    await migrate(empty_url, before_change=back_up)
    assert seen == []
    knowing(monkeypatch, first, second)
    with pytest.raises(Unavailable):
        await migrate(empty_url, before_change=fail)
    assert await tables(empty) == {"migration", "a"}
    await migrate(empty_url, before_change=back_up)
    assert seen == [{"migration", "a"}]
    assert await tables(empty) == {"migration", "a", "b"}


async def test_an_unfit_server_is_not_migrated(empty: Connection, empty_url: str) -> None:
    """What would be refused a moment later is not changed before."""
    name = await empty.fetchval("SELECT current_database()")
    await empty.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(Unavailable, match="synchronous_commit"):
        await migrate(empty_url)
    assert await tables(empty) == set()


async def test_a_process_killed_in_the_middle_leaves_a_database_that_migrates(
    empty: Connection, empty_url: str
) -> None:
    """Killed with -9 while a step runs: nothing of the step is kept, its lock is free, and the next one goes on."""
    await empty.execute("SELECT pg_advisory_lock(42)")
    program = """if True:
        import asyncio, sys
        from imprint.store import migrate
        real = migrate.known()
        slow = migrate.Migration(2, "slow", "CREATE TABLE half (); SELECT pg_advisory_lock(42)", "slow")
        migrate.known = lambda: (*real[:2], slow, *real[3:])
        asyncio.run(migrate.migrate(sys.argv[1]))"""
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, empty_url)
    await until(
        lambda: empty.fetchval(  # of this database: others are tested at the same time
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE d.datname = current_database() AND locktype = 'advisory' AND objid = 42 AND NOT granted"
        )
    )
    child.send_signal(signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL
    await empty.execute("SELECT pg_advisory_unlock(42)")
    assert [each.number for each in await migrate(empty_url)] == ALL[2:]
    assert await pending(empty) == ()
    assert "half" not in await tables(empty)


async def test_a_connection_that_is_lost_in_the_middle_is_said_in_a_sentence(
    empty: Connection, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the session while a step runs; to start again is all there is to do."""
    knowing(monkeypatch, step(1, "CREATE TABLE half (); SELECT pg_terminate_backend(pg_backend_pid())"))
    with pytest.raises(Unavailable) as caught:
        await migrate(empty_url)
    assert caught.value.code == "database.lost"
    assert await tables(empty) == {"migration"}


async def test_an_older_schema_of_pgqueuer_is_upgraded(connection: Connection, database_url: str) -> None:
    """What an older PgQueuer had not yet is added, nothing that waits is lost, and it converges."""
    jobs = queries_on(connection)
    await jobs.enqueue(["publish"], [b"x"], [0])
    assert not (await jobs.plan_upgrade()).statements
    indexes = await connection.fetch(
        "SELECT indexname FROM pg_indexes WHERE tablename = $1 AND indexname NOT LIKE '%pkey'", NAMES.queue_table
    )
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['indexname']}")
    await connection.execute(f"ALTER TABLE {NAMES.queue_table} DROP COLUMN headers CASCADE")
    await connection.execute("UPDATE migration SET checksum = 'pgqueuer 0.9' WHERE number = $1", JOBS_PART)
    assert (await jobs.plan_upgrade()).statements
    assert [each.name for each in await migrate(database_url)] == ["jobs"]
    assert not (await jobs.plan_upgrade()).statements
    assert dict(await applied(connection))[JOBS_PART] == f"pgqueuer {metadata.version('pgqueuer')}"
    assert await connection.fetchval(f"SELECT count(*) FROM {NAMES.queue_table}") == 1
    assert await migrate(database_url) == ()


async def test_an_upgrade_of_pgqueuer_that_was_cut_short_is_done_again(empty: Connection, empty_url: str) -> None:
    """Tables that are there without being remembered are taken over."""
    await queries_on(empty).install()
    assert await migrate(empty_url) == REAL
    assert await pending(empty) == ()


@pytest.mark.skipif(not DEBIAN.exists(), reason=f"there is no PostgreSQL 15 in {DEBIAN}")
async def test_it_works_on_postgresql_15_too() -> None:
    """Debian's server is migrated, plans every query, and holds a lifecycle."""
    async with cluster(DEBIAN) as found:
        assert await migrate(found.url()) == REAL
        assert await migrate(found.url()) == ()
        connection = await asyncpg.connect(found.url())
        assert 150000 <= await connection.fetchval("SELECT current_setting('server_version_num')::int") < 160000
        for each in queries().values():
            await connection.prepare(each.sql)
        await connection.execute("INSERT INTO post DEFAULT VALUES")
        with pytest.raises(asyncpg.CheckViolationError, match="a post cannot go from review to published"):
            await connection.execute("UPDATE post SET status = 'published'")
        await connection.close()
