"""The queue: jobs that wait in the database and the loop that runs them, on PgQueuer.

A job is put in on the caller's own connection, inside its transaction, and is delivered at least once.
What a job is about lives in a row of ours, under our own fence: the queue only says "look at it now".
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from time import monotonic

import asyncpg
import structlog
from pgqueuer.adapters.drivers.asyncpg import AsyncpgPoolDriver
from pgqueuer.core.executors import EntrypointExecutor, EntrypointExecutorParameters
from pgqueuer.core.qm import QueueManager
from pgqueuer.domain.errors import RetryRequested
from pgqueuer.domain.models import Context
from pgqueuer.domain.models import Job as PickedJob
from pgqueuer.ports.driver import Driver
from pgqueuer.ports.repository import EntrypointExecutionParameter

from imprint.decisions.retry import pause
from imprint.store.db import GONE, TROUBLE, keep_session
from imprint.store.jobs import NAMES, patient_queries, queries_on
from imprint.store.query import Connection, Link, Pool

log = structlog.get_logger()

# A dead worker's job is taken for dead after the one, and found by an idle worker after the other at the latest:
# together less than half a minute, so that a lease that has ended is never in nobody's hands for longer.
HEARTBEAT = timedelta(seconds=15)
IDLE_LOOK = timedelta(seconds=10)
RETRY_SETTLES = 0.05  # a job that is put back is in the queue again by then
RECONNECT_FIRST = timedelta(seconds=0.5)
RECONNECT_LONGEST = timedelta(seconds=5)
HEALTHY_SECONDS = 30
LAST_SECONDS = 5


@dataclass(frozen=True)
class Job:
    """One piece of work: what kind, about which row, and how often it was tried before."""

    entrypoint: str
    key: str
    failures: int = 0
    priority: int = 0


@dataclass(frozen=True)
class Entrypoint:
    """A kind of job: who does it, how many at once over all workers (0: any), how often, how long.

    After the last failed attempt the job is held as a dead letter. `begin` is done before the first job, and again
    after each outage of the database.
    """

    name: str
    handler: Callable[[Job], Awaitable[None]]
    concurrency: int
    attempts: int
    timeout: timedelta
    begin: Callable[[], Awaitable[object]] | None = None


async def enqueue(connection: Link, jobs: Collection[Job]) -> int:
    """Put jobs in, in the caller's transaction; one that already waits or runs is not put in again."""
    if not jobs:
        return 0
    ids = await queries_on(connection).enqueue(
        [job.entrypoint for job in jobs],
        [job.key.encode() for job in jobs],
        [job.priority for job in jobs],
        dedupe_key=[f"{job.entrypoint}:{job.key}" for job in jobs],
        on_conflict="skip",
    )
    return sum(id_ is not None for id_ in ids)


_CHANGED = json.dumps(
    {
        "channel": NAMES.channel,
        "sent_at": "2000-01-01T00:00:00Z",
        "type": "table_changed_event",
        "operation": "update",
        "table": NAMES.queue_table,
    }
)


async def ring(connection: Link) -> None:
    """Wake the workers, once the caller's transaction is committed, for jobs that were put back rather than put in."""
    await queries_on(connection).driver.notify(NAMES.channel, _CHANGED)


First = Callable[[], Awaitable[None]]


async def nothing_first() -> None:
    """Look at nothing before the work begins."""


class Queue:
    """Runs jobs until it is told to stop, and through any outage of the database.

    `first` is called before the first job of every new connection: the moment to see that it is the same database.
    """

    def __init__(
        self,
        url: str,
        entrypoints: Iterable[Entrypoint],
        *,
        concurrency: int,
        grace_seconds: float,
        first: First = nothing_first,
    ) -> None:
        self._url = url
        self._entrypoints = tuple(entrypoints)
        self._batch_size = max(1, concurrency // 2)
        self._room = Room(concurrency)
        self._grace_seconds = grace_seconds
        self._first = first
        self._running: set[asyncio.Task[None]] = set()
        self._rings: set[asyncio.Task[None]] = set()
        self._hurried = False

    async def run(self, stop: asyncio.Event) -> None:
        """Take jobs and run them; after `stop` give running ones their grace, then put them back.

        When a connection is cut, what runs goes on to its end while new jobs are taken over new connections.
        """
        failures = 0
        draining: set[asyncio.Task[None]] = set()
        try:
            while not stop.is_set():
                began = monotonic()
                broken = asyncio.Event()
                cycle = asyncio.create_task(self._cycle(stop, broken))
                cut = asyncio.create_task(broken.wait())
                draining.add(cycle)
                await asyncio.wait([cycle, cut], return_when=asyncio.FIRST_COMPLETED)
                cut.cancel()
                if stop.is_set():
                    break
                error = cycle.exception() if cycle.done() else ConnectionResetError("a connection was cut")
                if error is None:
                    continue
                if not isinstance(error, TROUBLE):
                    raise error
                failures = 1 if monotonic() - began > HEALTHY_SECONDS else failures + 1
                wait = pause(failures, random.uniform(0.5, 1), first=RECONNECT_FIRST, longest=RECONNECT_LONGEST)  # noqa: S311
                log.warning("the database does not serve; jobs wait", error=str(error), again_in_s=wait.total_seconds())
                await _sleep(wait, stop)
        finally:
            if not stop.is_set():  # we are being ended, not stopped: nobody will tell the cycles to come to their end
                for cycle in draining:
                    cycle.cancel()
            await asyncio.gather(*draining, return_exceptions=True)

    async def _cycle(self, stop: asyncio.Event, broken: asyncio.Event) -> None:
        await self._first()
        for entrypoint in self._entrypoints:
            if entrypoint.begin is not None:
                await entrypoint.begin()
        async with self._pool(broken) as pool:
            driver = AsyncpgPoolDriver(pool)
            manager = _Manager(patient_queries(driver), channel=NAMES.channel)
            manager.room = self._room
            for entrypoint in self._entrypoints:
                manager.entrypoint(
                    entrypoint.name,
                    concurrency_limit=entrypoint.concurrency,
                    accepts_context=False,
                    on_failure="hold",
                    executor_factory=partial(_Executor, entrypoint=entrypoint, queue=self, driver=driver),
                )(_unused)
            running = asyncio.create_task(
                manager.run(
                    dequeue_timeout=IDLE_LOOK,
                    batch_size=self._batch_size,
                    heartbeat_timeout=HEARTBEAT,
                    max_concurrent_tasks=None,
                )
            )
            stopped, cut = asyncio.create_task(stop.wait()), asyncio.create_task(broken.wait())
            try:
                await asyncio.wait([running, stopped, cut], return_when=asyncio.FIRST_COMPLETED)
                manager.shutdown.set()
                await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    await asyncio.wait([running], timeout=self._grace_seconds)
                await self._hurry(running)
                await running
            finally:
                if not running.done():  # we are cancelled ourselves: what runs is put back, or it would be waited for
                    manager.shutdown.set()
                    await self._hurry(running)
                    await asyncio.wait([running], timeout=LAST_SECONDS)
                left = (stopped, cut, running, *self._rings)
                for task in left:
                    task.cancel()
                await asyncio.gather(*left, return_exceptions=True)

    async def _hurry(self, running: "asyncio.Task[None]") -> None:
        """Put the jobs that did not end in their grace back into the queue, for the next worker."""
        if running.done():
            return
        self._hurried = True
        log.warning("putting jobs back that did not end in time", jobs=len(self._running))
        for task in tuple(self._running):
            task.cancel()

    def later(self, delay: timedelta, driver: Driver) -> None:
        """Wake the workers when a job that was put back is due; else an idle one would look only after a while."""

        async def ring() -> None:
            await asyncio.sleep(delay.total_seconds() + RETRY_SETTLES)
            with suppress(*GONE):
                await driver.notify(NAMES.channel, _CHANGED)

        task = asyncio.create_task(ring())
        self._rings.add(task)
        task.add_done_callback(self._rings.discard)

    @asynccontextmanager
    async def _pool(self, broken: asyncio.Event) -> AsyncIterator[Pool]:
        async def watch(connection: Connection) -> None:
            connection.add_termination_listener(lambda _: broken.set())

        pool = await asyncpg.create_pool(
            self._url,
            min_size=2,
            max_size=4,
            max_inactive_connection_lifetime=0,  # else the pool's own tidying looks like an outage
            init=watch,
            reset=keep_session,
            command_timeout=60,
            server_settings={"application_name": "imprint queue"},
        )
        try:
            yield pool
        finally:
            try:
                await asyncio.wait_for(pool.close(), timeout=5)
            except (*GONE, TimeoutError):
                pool.terminate()


class Room:
    """How many more jobs this process may take.

    PgQueuer's own limit counts jobs in the database until their end is recorded there, a tenth of a second later;
    a worker with short jobs would stand still most of the time.
    """

    def __init__(self, size: int) -> None:
        self.free = size
        self._freed = asyncio.Event()

    async def wait(self, end: asyncio.Event) -> int:
        """Wait until at least one more fits, and say how many do; or until the end."""
        while self.free <= 0 and not end.is_set():
            self._freed.clear()
            waits = [asyncio.create_task(self._freed.wait()), asyncio.create_task(end.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()
        return self.free

    def enter(self) -> None:
        """Take one place."""
        self.free -= 1

    def leave(self) -> None:
        """Give one place back."""
        self.free += 1
        self._freed.set()


class _Manager(QueueManager):
    """PgQueuer's loop, which takes no more jobs than there is room for."""

    room: Room

    async def fetch_jobs(
        self, batch_size: int, global_concurrency_limit: int | None, heartbeat_timeout: timedelta
    ) -> AsyncGenerator[PickedJob, None]:
        """Yield jobs as long as there are some; waits while there is no room for another."""
        entrypoints = {
            name: EntrypointExecutionParameter(executor.parameters.concurrency_limit)
            for name, executor in self.entrypoint_registry.items()
        }
        while (room := await self.room.wait(self.shutdown)) > 0 and not self.shutdown.is_set():
            jobs = await self.queries.dequeue(
                batch_size=min(batch_size, room),
                entrypoints=entrypoints,
                queue_manager_id=self.queue_manager_id,
                global_concurrency_limit=global_concurrency_limit,
                heartbeat_timeout=heartbeat_timeout,
            )
            if not jobs:
                return
            for job in jobs:
                if job.id not in self.job_context:  # one that runs here already is passed over by the caller
                    self.room.enter()
                yield job


async def _unused(_: PickedJob) -> None:
    """Stand where PgQueuer wants a function; the executor calls the entrypoint's handler itself."""


class _Executor(EntrypointExecutor):
    """Runs one job: in time, counted, put back when it fails, held when it failed too often."""

    def __init__(
        self, given: EntrypointExecutorParameters, entrypoint: Entrypoint, queue: Queue, driver: Driver
    ) -> None:
        super().__init__(given)
        self.entrypoint = entrypoint
        self.queue = queue
        self.driver = driver

    async def execute(self, job: PickedJob, context: Context) -> None:
        """Run the handler; what it raises becomes a retry or, after the last attempt, a dead letter."""
        del context
        task = asyncio.current_task()
        if task is None:  # pragma: no cover - PgQueuer always runs a job in a task
            raise RuntimeError("a job must run in a task")
        self.queue._running.add(task)  # noqa: SLF001 - one room, two classes
        try:
            async with asyncio.timeout(self.entrypoint.timeout.total_seconds()):
                await self.entrypoint.handler(
                    Job(self.entrypoint.name, (job.payload or b"").decode(), job.attempts, job.priority)
                )
        except asyncio.CancelledError:
            if not self.queue._hurried:  # noqa: SLF001
                raise
            task.uncancel()
            raise RetryRequested(delay=timedelta(0), reason="the worker was stopped") from None
        except Exception as error:
            if job.attempts + 1 >= self.entrypoint.attempts:
                raise
            delay = pause(job.attempts + 1, random.random())  # noqa: S311 - no secret
            self.queue.later(delay, self.driver)
            raise RetryRequested(delay=delay, reason=f"{type(error).__name__}: {error}") from error
        finally:
            self.queue._running.discard(task)  # noqa: SLF001
            self.queue._room.leave()  # noqa: SLF001


async def _sleep(duration: timedelta, stop: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stop.wait(), timeout=duration.total_seconds())
    except TimeoutError:
        return
