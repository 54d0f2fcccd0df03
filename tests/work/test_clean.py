"""Cleaning drops what is past its time and nothing else."""

from datetime import timedelta

from imprint.settings import load
from imprint.store.db import Database
from imprint.store.query import Connection
from imprint.work.clean import clean

HOUR = timedelta(hours=1)


async def _ended(connection: Connection, count: int, age: timedelta) -> None:
    """Leave the log of jobs that were put in, taken and done a while ago."""
    await connection.execute(
        """
        INSERT INTO pgqueuer_log (created, job_id, status, priority, entrypoint)
        SELECT now() - $2::interval - i * interval '1 ms', nextval('pgqueuer_id_seq') - n.n + 1, n.status, 0, 'test'
        FROM generate_series(1, $1::int) i,
             (VALUES (1, 'queued'::pgqueuer_status)) n (n, status)
        """,
        count,
        age,
    )
    await connection.execute(
        "INSERT INTO pgqueuer_log (created, job_id, status, priority, entrypoint)"
        " SELECT created, job_id, s, 0, 'test' FROM pgqueuer_log, unnest('{picked,successful}'::pgqueuer_status[]) s"
        " WHERE status = 'queued' AND created < now() - $1::interval + interval '1 s'"
        " AND NOT EXISTS (SELECT FROM pgqueuer_log d WHERE d.job_id = pgqueuer_log.job_id AND d.status = 'picked')",
        age,
    )


async def _held(connection: Connection, count: int, age: timedelta) -> None:
    """Leave dead letters of a certain age."""
    await connection.execute(
        "INSERT INTO pgqueuer (priority, status, entrypoint, updated)"
        " SELECT 0, 'failed', 'test', now() - $2::interval - i * interval '1 ms' FROM generate_series(1, $1::int) i",
        count,
        age,
    )


async def test_finished_jobs_go_after_two_days(database: Database, connection: Connection) -> None:
    """The log of jobs that ended 49 hours ago goes whole, that of 47 hours ago stays whole."""
    await _ended(connection, 3, 49 * HOUR)
    await _ended(connection, 2, 47 * HOUR)
    cleaned = await clean(database, load({}))
    assert cleaned.log_lines == 9
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer_log") == 6


async def test_only_so_many_finished_jobs_stay(database: Database, connection: Connection) -> None:
    """Beyond the newest so many, finished jobs go whatever their age."""
    await _ended(connection, 30, HOUR)
    await clean(database, load({"IMPRINT_KEEP_FINISHED_JOBS": "10"}))
    assert await connection.fetchval("SELECT count(DISTINCT job_id) FROM pgqueuer_log") == 10


async def test_a_job_that_has_not_ended_keeps_its_log(database: Database, connection: Connection) -> None:
    """However old, what still waits is not forgotten."""
    await connection.execute("INSERT INTO pgqueuer (priority, status, entrypoint) VALUES (0, 'queued', 'test')")
    await connection.execute(
        "INSERT INTO pgqueuer_log (created, job_id, status, priority, entrypoint)"
        " SELECT now() - interval '1 year', id, 'queued', 0, 'test' FROM pgqueuer"
    )
    await clean(database, load({}))
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer_log") == 1
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer") == 1


async def test_dead_letters_go_after_a_week_or_beyond_so_many(database: Database, connection: Connection) -> None:
    """Eight days are too old, six are not; and the newest so many stay."""
    await _held(connection, 3, timedelta(days=8))
    await _held(connection, 5, timedelta(days=6))
    assert (await clean(database, load({}))).dead_letters == 3
    assert (await clean(database, load({"IMPRINT_KEEP_FAILED_JOBS": "2"}))).dead_letters == 3
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer WHERE status = 'failed'") == 2


async def test_the_audit_stays(database: Database, connection: Connection) -> None:
    """Nothing that is cleaned is part of the audit."""
    await connection.execute("SET imprint.clock_offset = '-10 years'")
    await connection.execute("INSERT INTO post DEFAULT VALUES")
    await clean(database, load({}))
    assert await connection.fetchval("SELECT count(*) FROM audit") == 1


async def test_workers_that_died_are_forgotten_in_a_day(database: Database, connection: Connection) -> None:
    """A worker that was last seen 25 hours ago goes, one of an hour ago stays."""
    for hours in (1, 25):
        await connection.execute(
            "INSERT INTO worker (id, name, version, concurrency, seen_at)"
            " VALUES (gen_random_uuid(), 'w', '0', 2, imprint_now() - $1::interval)",
            hours * HOUR,
        )
    assert (await clean(database, load({}))).workers == 1
