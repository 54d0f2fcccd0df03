"""The queue runs every job at least once, holds what keeps failing, and loses nothing when it stops or is cut off."""

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest

from imprint.engine.queue import Entrypoint, Job, Queue, enqueue
from imprint.store.db import Database
from imprint.store.query import Connection
from tests.engine.scene import queue_runs
from tests.waiting import until

SECOND = timedelta(seconds=1)


class Recorder:
    """A handler that remembers what it was given and does what it is told."""

    def __init__(self, *, fails: int = 0, waits: float = 0) -> None:
        self.jobs: list[Job] = []
        self.ended: list[Job] = []
        self.fails = fails
        self.waits = waits

    async def __call__(self, job: Job) -> None:
        """Take a job."""
        self.jobs.append(job)
        await asyncio.sleep(self.waits)
        if len(self.jobs) <= self.fails:
            raise ValueError("not this time")
        self.ended.append(job)

    async def done(self) -> bool:
        """Say whether a job has come to its end."""
        return bool(self.ended)

    def entrypoint(self, *, attempts: int = 1, timeout: timedelta = 30 * SECOND) -> Entrypoint:
        """Give it as an entrypoint."""
        return Entrypoint("test", self, concurrency=0, attempts=attempts, timeout=timeout)


async def test_a_job_belongs_to_the_transaction_that_put_it_in(database: Database, connection: Connection) -> None:
    """A transaction that is rolled back leaves no job; one that commits leaves one."""
    with pytest.raises(RuntimeError, match="changed my mind"):
        await _change_my_mind(database)
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer") == 0
    async with database.transaction("test") as inside:
        await enqueue(inside, [Job("test", "a")])
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer") == 1


async def test_a_job_that_waits_is_not_put_in_twice(connection: Connection) -> None:
    """The same kind about the same row is one job; another kind or row is another."""
    assert await enqueue(connection, []) == 0
    assert await enqueue(connection, [Job("test", "a"), Job("test", "b")]) == 2
    assert await enqueue(connection, [Job("test", "a"), Job("other", "a")]) == 1


async def test_a_job_runs_and_is_gone(connection: Connection, database_url: str) -> None:
    """A job reaches its handler with its key and leaves the queue."""
    handler = Recorder()
    async with queue_runs(database_url, handler.entrypoint()):
        await enqueue(connection, [Job("test", "k", priority=3)])
        await until(handler.done)
        await until(lambda: connection.fetchval("SELECT count(*) = 0 FROM pgqueuer"))
    assert handler.jobs == [Job("test", "k", 0, 3)]


async def test_a_job_that_fails_is_tried_again_and_then_held(connection: Connection, database_url: str) -> None:
    """After its last attempt a job is a dead letter with its reason, and runs no more."""
    handler = Recorder(fails=99)
    await enqueue(connection, [Job("test", "k")])
    async with queue_runs(database_url, handler.entrypoint(attempts=3)):
        await until(lambda: connection.fetchval("SELECT count(*) FROM pgqueuer WHERE status = 'failed'"))
    assert [job.failures for job in handler.jobs] == [0, 1, 2]
    reason = await connection.fetchval(
        "SELECT traceback->>'exception_message' FROM pgqueuer_log WHERE status = 'failed'"
    )
    assert reason == "not this time"


async def test_a_job_that_works_the_second_time_is_not_held(connection: Connection, database_url: str) -> None:
    """One failure is not the end."""
    handler = Recorder(fails=1)
    await enqueue(connection, [Job("test", "k")])
    async with queue_runs(database_url, handler.entrypoint(attempts=2)):
        await until(handler.done)
        await until(lambda: connection.fetchval("SELECT count(*) = 0 FROM pgqueuer"))


async def test_a_job_that_takes_too_long_has_failed(connection: Connection, database_url: str) -> None:
    """The time-out of an entrypoint ends its handler and counts as a failure."""
    handler = Recorder(waits=60)
    await enqueue(connection, [Job("test", "k")])
    async with queue_runs(database_url, handler.entrypoint(timeout=timedelta(milliseconds=50))):
        await until(lambda: connection.fetchval("SELECT count(*) FROM pgqueuer WHERE status = 'failed'"))
    assert handler.ended == []


async def test_a_stop_lets_running_jobs_end(connection: Connection, database_url: str) -> None:
    """A job that ends within the grace is done and gone."""
    handler = Recorder(waits=0.3)
    await enqueue(connection, [Job("test", "k")])
    async with queue_runs(database_url, handler.entrypoint()) as stop:
        await until(lambda: _began(handler))
        stop.set()
    assert handler.ended
    assert await connection.fetchval("SELECT count(*) FROM pgqueuer") == 0


async def test_a_stop_puts_back_what_does_not_end(connection: Connection, database_url: str) -> None:
    """A job that outlives the grace is back in the queue for the next worker, not lost and not failed."""
    handler = Recorder(waits=60)
    await enqueue(connection, [Job("test", "k")])
    async with queue_runs(database_url, handler.entrypoint(attempts=1), grace_seconds=0.1) as stop:
        await until(lambda: _began(handler))
        stop.set()
    assert await connection.fetchval("SELECT status FROM pgqueuer") == "queued"
    again = Recorder()
    async with queue_runs(database_url, again.entrypoint()):
        await until(again.done)


async def test_cut_connections_are_ridden_out(connection: Connection, database_url: str) -> None:
    """After every connection of the queue was cut, jobs run again within moments."""
    handler = Recorder()
    async with queue_runs(database_url, handler.entrypoint()):
        await until(lambda: _cut(connection))
        await enqueue(connection, [Job("test", "k")])
        await until(handler.done)


async def test_a_cut_does_not_make_new_jobs_wait_for_slow_ones(connection: Connection, database_url: str) -> None:
    """While a slow job goes on after a cut, a quick one is run; and a stop still keeps to its grace."""
    slow, quick = Recorder(waits=60), Recorder()
    other = Entrypoint("quick", quick, concurrency=0, attempts=1, timeout=30 * SECOND)
    async with queue_runs(database_url, slow.entrypoint(), other, grace_seconds=0.1) as stop:
        await enqueue(connection, [Job("test", "slow")])
        await until(lambda: _began(slow))
        await until(lambda: _cut(connection))
        await enqueue(connection, [Job("quick", "k")])
        await until(quick.done)
        stop.set()
    assert await connection.fetchval("SELECT status FROM pgqueuer WHERE entrypoint = 'test'") == "queued"


async def test_a_queue_that_is_cancelled_ends(connection: Connection, database_url: str) -> None:
    """When another part of the worker fails the queue is cancelled, and must not keep a dead worker alive."""
    handler = Recorder(waits=60)
    await enqueue(connection, [Job("test", "k")])
    queue = Queue(database_url, [handler.entrypoint()], concurrency=2, grace_seconds=60)
    running = asyncio.create_task(queue.run(asyncio.Event()))
    await until(lambda: _began(handler))
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=15)
    assert done


async def test_a_killed_workers_job_is_run_by_another(connection: Connection, database_url: str) -> None:
    """A job whose process was killed with -9 is picked up again when its heartbeat is old."""
    await enqueue(connection, [Job("test", "k")])
    victim = subprocess.Popen([sys.executable, "-c", _VICTIM, database_url])
    try:
        await until(lambda: connection.fetchval("SELECT status = 'picked' FROM pgqueuer"), seconds=30)
    finally:
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
    await connection.execute("UPDATE pgqueuer SET heartbeat = now() - interval '1 minute'")
    handler = Recorder()
    async with queue_runs(database_url, handler.entrypoint()):
        await until(handler.done)
    assert handler.jobs[0].key == "k"


_VICTIM = """
import asyncio, sys
from datetime import timedelta
from imprint.engine.queue import Entrypoint, Queue
async def hang(job):
    await asyncio.sleep(600)
entrypoint = Entrypoint("test", hang, concurrency=0, attempts=1, timeout=timedelta(hours=1))
asyncio.run(Queue(sys.argv[1], [entrypoint], concurrency=2, grace_seconds=1).run(asyncio.Event()))
"""


async def _change_my_mind(database: Database) -> None:
    async with database.transaction("test") as inside:
        await enqueue(inside, [Job("test", "a")])
        raise RuntimeError("changed my mind")


async def _began(handler: Recorder) -> bool:
    return bool(handler.jobs)


async def _cut(connection: Connection) -> bool:
    cut = await connection.fetch("""
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'imprint queue' AND datname = current_database()""")
    return len(cut) >= 2
