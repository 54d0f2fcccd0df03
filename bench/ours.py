"""Imprint's own side of the engine's benches: the clock and the queue as a worker runs them."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import psutil

from bench.figures import ROUNDS, latency, rate
from bench.pickup import pickup
from imprint.engine.clock import Clock, timers
from imprint.engine.queue import Entrypoint, Job, Queue, enqueue
from imprint.store.migrate import migrate
from imprint.store.query import Connection

BULK = 1000  # jobs in one enqueue, as many as the peers get
LEAD = timedelta(seconds=3)
IDLE_SECONDS = 10.0
GIVES_UP = 120.0
LONG = timedelta(minutes=5)


async def drift(dsn: str, server_pid: int, future: int, due: int, seconds: float) -> dict[str, object]:
    """Measure how late publications start, with many far-future ones in the same table, and what idling costs."""
    await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    late: list[float] = []
    due_at: dict[str, float] = {}
    done = asyncio.Event()

    async def start(job: Job) -> None:
        late.append((time.time() - due_at[job.key]) * 1000)
        if len(late) == due:
            done.set()

    try:
        await _fill(connection, future)
        entrypoint = Entrypoint("publish", start, concurrency=0, attempts=1, timeout=LONG)
        async with _running(dsn, [entrypoint]):
            idle = await _idle_percent(server_pid)
            for row in await _schedule(connection, due, seconds):
                due_at[str(row["id"])] = row["due_at"].timestamp()
            async with asyncio.timeout(GIVES_UP + seconds):
                await done.wait()
    finally:
        await connection.close()
    return {
        **latency(late),
        "early": sum(ms < 0 for ms in late),
        "idle_cpu_percent": idle,
        "future": future,
        "due": due,
    }


async def engine(dsn: str, jobs: int, batch_size: int) -> dict[str, object]:
    """Measure how many no-op jobs a second are enqueued and drained, and how soon an idle worker picks one up."""
    await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    enqueued: list[float] = []
    drained: list[float] = []
    try:
        for _ in range(ROUNDS * 2):
            began = time.perf_counter()
            for first in range(0, jobs, BULK):
                await enqueue(connection, [Job("noop", uuid4().hex) for _ in range(min(BULK, jobs - first))])
            enqueued.append(time.perf_counter() - began)
            await connection.execute("VACUUM ANALYZE")
            drained.append(await _drain(connection, dsn, jobs, batch_size))
        waited = await _pickup(connection, dsn, batch_size)
    finally:
        await connection.close()
    return {
        **rate(jobs, enqueued, "enqueue"),
        **rate(jobs, drained, "drain"),
        **latency(waited, "pickup_"),
        "batch_size": batch_size,
    }


async def _drain(connection: Connection, dsn: str, jobs: int, batch_size: int) -> float:
    """Run every queued job and return the seconds from the worker's start to the last acknowledgement."""
    ran = 0
    done = asyncio.Event()

    async def noop(_: Job) -> None:
        nonlocal ran
        ran += 1
        if ran == jobs:
            done.set()

    began = datetime.now(UTC)
    entrypoint = Entrypoint("noop", noop, concurrency=0, attempts=1, timeout=LONG)
    async with _running(dsn, [entrypoint], concurrency=2 * batch_size), asyncio.timeout(GIVES_UP):
        await done.wait()
    row = await connection.fetchrow(
        "SELECT count(*), max(created) FROM pgqueuer_log WHERE status = 'successful' AND created >= $1", began
    )
    if row is None or ran != jobs or row["count"] != jobs:
        raise RuntimeError(f"of {jobs} jobs {ran} ran and {row and row['count']} were acknowledged")
    last: datetime = row["max"]
    return (last - began).total_seconds()


async def _pickup(connection: Connection, dsn: str, batch_size: int) -> list[float]:
    started: asyncio.Queue[float] = asyncio.Queue()

    async def start(_: Job) -> None:
        started.put_nowait(time.perf_counter())

    entrypoint = Entrypoint("noop", start, concurrency=0, attempts=1, timeout=LONG)
    async with _running(dsn, [entrypoint], concurrency=2 * batch_size):
        return await pickup(lambda: enqueue(connection, [Job("noop", uuid4().hex)]), started)


@asynccontextmanager
async def _running(dsn: str, entrypoints: Collection[Entrypoint], concurrency: int = 20) -> AsyncIterator[None]:
    """Keep a queue and a clock running inside the block, as a worker does."""
    stop = asyncio.Event()
    names = [entrypoint.name for entrypoint in entrypoints]
    async with asyncio.TaskGroup() as group:
        group.create_task(Queue(dsn, entrypoints, concurrency=concurrency, grace_seconds=5).run(stop))
        group.create_task(Clock(dsn, timers(crashes_before_quarantine=3), names).run(stop))
        try:
            yield
        finally:
            stop.set()


async def _fill(connection: Connection, future: int) -> None:
    """Put far-future publications into the table; without its triggers, which are not what is measured."""
    await connection.execute("ALTER TABLE publication DISABLE TRIGGER ALL")
    await connection.execute(
        """
        WITH a AS (
                 INSERT INTO account (platform, name)
                 SELECT 'bench', i::text FROM generate_series(1, 100) i RETURNING id),
             p AS (
                 INSERT INTO post (title) SELECT 'far' FROM generate_series(1, ($1::int + 99) / 100) RETURNING id)
        INSERT INTO publication (post_id, account_id, status, due_at)
        SELECT p.id, a.id, 'pending', imprint_now() + interval '1 day' + random() * interval '364 days'
        FROM p, a LIMIT $1::int
        """,
        future,
    )
    await connection.execute("ALTER TABLE publication ENABLE TRIGGER ALL")
    await connection.execute("VACUUM ANALYZE")


async def _schedule(connection: Connection, due: int, seconds: float) -> "list[asyncpg.Record]":
    """Schedule one publication each on accounts of their own, at random moments."""
    async with connection.transaction():
        accounts = await connection.fetch(
            "INSERT INTO account (platform, name)"
            " SELECT 'bench', i::text FROM generate_series(1, $1::int) i RETURNING id",
            due,
        )
        posts = await connection.fetch("INSERT INTO post SELECT FROM generate_series(1, $1::int) RETURNING id", due)
        await connection.execute("UPDATE post SET status = 'draft' WHERE id = ANY ($1)", [row["id"] for row in posts])
        rows: list[asyncpg.Record] = await connection.fetch(
            """
            INSERT INTO publication (post_id, account_id, due_at)
            SELECT p, a, clock_timestamp() + $3::interval + random() * $4::interval
            FROM unnest($1::uuid[], $2::uuid[]) AS u (p, a)
            RETURNING id, due_at
            """,
            [row["id"] for row in posts],
            [row["id"] for row in accounts],
            LEAD,
            timedelta(seconds=seconds),
        )
    return rows


async def _idle_percent(server_pid: int) -> float:
    """Measure how much of one core the worker and its database use while nothing is due."""
    await asyncio.sleep(1)  # let the start settle
    server = psutil.Process(server_pid)
    watched = [psutil.Process(), server, *server.children(recursive=True)]
    began, used = time.perf_counter(), _cpu(watched)
    await asyncio.sleep(IDLE_SECONDS)
    return round((_cpu(watched) - used) / (time.perf_counter() - began) * 100, 2)


def _cpu(processes: Collection[psutil.Process]) -> float:
    used = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            used += sum(process.cpu_times()[:2])
    return used
