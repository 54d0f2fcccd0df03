"""Bare PgQueuer as a peer: used as its documentation shows, on a database of its own."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Literal, get_args

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver, Driver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.figures import ROUNDS, latency, rate
from bench.pickup import pickup

ENTRYPOINT = "noop"
BULK = 1000  # jobs in one enqueue, as many as BullMQ gets in one addBulk
BATCH_SIZE = 10  # PgQueuer's default
YEAR = timedelta(days=365)
LEAD = 3.0  # seconds until the first job is due: every one is in the queue, and the worker runs, before that
GIVES_UP = 120.0

Kind = Literal["connection", "pool"]
KINDS: tuple[Kind, ...] = get_args(Kind)


async def drift(dsn: str, future: int, due: int, seconds: float, *, batch_size: int = BATCH_SIZE) -> dict[str, object]:
    """Measure how late delayed jobs (execute_after) start, with many far-future ones in the same queue."""
    late: list[float] = []
    done = asyncio.Event()
    async with _driver(dsn, "connection") as ours, _driver(dsn, "pool") as theirs:
        queue = Queries(ours)
        await queue.install()
        await _enqueue(queue, [YEAR + random.random() * YEAR for _ in range(future)])
        # Autovacuum would get there; figures should not depend on when.
        await ours.execute("VACUUM ANALYZE")
        app = PgQueuer(theirs)

        @app.entrypoint(ENTRYPOINT)
        async def start(job: Job) -> None:
            late.append((time.time() - job.execute_after.timestamp()) * 1000)
            if len(late) == due:
                done.set()

        async with _running(app, batch_size):
            await _enqueue(queue, [timedelta(seconds=LEAD + random.uniform(0, seconds)) for _ in range(due)])
            async with asyncio.timeout(GIVES_UP + seconds):
                await done.wait()
    return {**latency(late), "batch_size": batch_size}


async def engine(dsn: str, jobs: int, batch_size: int = BATCH_SIZE) -> dict[str, object]:
    """Measure how many no-op jobs a second are enqueued and drained, and how soon an idle worker picks one up.

    Both of PgQueuer's drivers for asyncpg take turns; its figures are those of the faster one.
    """
    enqueued: list[float] = []
    drained: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    async with _driver(dsn, "connection") as ours:
        queue = Queries(ours)
        await queue.install()
        for kind in KINDS * ROUNDS:
            began = time.perf_counter()
            await _enqueue(queue, [None] * jobs)
            enqueued.append(time.perf_counter() - began)
            await ours.execute("VACUUM ANALYZE")  # as in drift
            async with _driver(dsn, kind) as theirs:
                drained[kind].append(await _drain(theirs, jobs, batch_size))
        faster = min(KINDS, key=lambda kind: median(drained[kind]))
        async with _driver(dsn, faster) as theirs:
            waited = await _pickup(queue, theirs, batch_size)
    return {
        **rate(jobs, enqueued, "enqueue"),
        **rate(jobs, drained[faster], "drain"),
        **latency(waited, "pickup_"),
        "batch_size": batch_size,
        "driver": faster,
        "drivers": {kind: round(jobs / median(drained[kind])) for kind in KINDS},
    }


async def _pickup(queue: Queries, driver: Driver, batch_size: int) -> list[float]:
    """Let an idle worker pick up single jobs."""
    started: asyncio.Queue[float] = asyncio.Queue()
    app = PgQueuer(driver)

    @app.entrypoint(ENTRYPOINT)
    async def start(_: Job) -> None:
        started.put_nowait(time.perf_counter())

    async with _running(app, batch_size):
        return await pickup(lambda: queue.enqueue(ENTRYPOINT, None), started)


async def _drain(driver: Driver, jobs: int, batch_size: int) -> float:
    """Run every queued job and return the seconds from the worker's start to the last acknowledgement."""
    ran = 0
    app = PgQueuer(driver)

    @app.entrypoint(ENTRYPOINT)
    async def noop(_: Job) -> None:
        nonlocal ran
        ran += 1

    began = datetime.now(UTC)
    async with asyncio.timeout(GIVES_UP):
        await app.run(batch_size=batch_size, mode=QueueExecutionMode.drain)
    # Its log knows when the last job was acknowledged; the worker itself needs a little longer to notice and stop.
    [row] = await driver.fetch(
        "SELECT count(*), max(created) FROM pgqueuer_log WHERE status = 'successful' AND created >= $1", began
    )
    acknowledged, last = row["count"], row["max"]
    if ran != jobs or acknowledged != jobs or not isinstance(last, datetime):
        raise RuntimeError(f"of {jobs} jobs {ran} ran and {acknowledged} were acknowledged")
    return (last - began).total_seconds()


async def _enqueue(queue: Queries, delays: Sequence[timedelta | None]) -> None:
    """Enqueue one no-op job for every delay, in bulk."""
    for first in range(0, len(delays), BULK):
        some = list(delays[first : first + BULK])
        await queue.enqueue([ENTRYPOINT] * len(some), [None] * len(some), [0] * len(some), some)


@asynccontextmanager
async def _driver(dsn: str, kind: Kind) -> AsyncIterator[Driver]:
    """Connect, either way PgQueuer offers for asyncpg."""
    async with AsyncExitStack() as leaving:
        if kind == "pool":
            yield AsyncpgPoolDriver(await leaving.enter_async_context(asyncpg.create_pool(dsn, min_size=5, max_size=5)))
        else:
            connection = await asyncpg.connect(dsn)
            leaving.push_async_callback(connection.close)
            yield AsyncpgDriver(connection)


@asynccontextmanager
async def _running(app: PgQueuer, batch_size: int) -> AsyncIterator[None]:
    """Keep a worker running inside the block."""
    worker = asyncio.create_task(app.run(batch_size=batch_size))
    try:
        await asyncio.sleep(0.5)  # it checks the schema and starts to listen
        yield
    finally:
        app.shutdown.set()
        await worker
