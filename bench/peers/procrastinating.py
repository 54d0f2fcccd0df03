"""Procrastinate does no-op jobs; reads one request, answers with the seconds and milliseconds that it took.

Used as its documentation shows: an async task, jobs deferred in bulk, one worker that drains or waits.
"""

import asyncio
import json
import random
import sys
from contextlib import suppress
from time import perf_counter
from typing import Any

import procrastinate  # type: ignore[import-not-found,unused-ignore] # in a folder of its own
import psycopg  # type: ignore[import-not-found,unused-ignore] # in a folder of its own

BULK = 1000  # jobs in one call, as many as the others get


async def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """Enqueue and drain in rounds, then let an idle worker pick up single jobs."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=asked["dsn"]))
    started: asyncio.Queue[float] = asyncio.Queue()

    @app.task(name="noop")  # type: ignore[untyped-decorator,unused-ignore]
    async def noop() -> None:
        started.put_nowait(perf_counter())

    enqueued, drained = [], []
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for _ in range(asked["rounds"]):
            began = perf_counter()
            for _ in range(0, asked["jobs"], BULK):
                await noop.batch_defer_async(*[{}] * min(BULK, asked["jobs"]))
            enqueued.append(perf_counter() - began)
            async with await psycopg.AsyncConnection.connect(asked["dsn"], autocommit=True) as connection:
                await connection.execute("VACUUM ANALYZE")  # as everybody's
            began = perf_counter()
            await app.run_worker_async(wait=False, concurrency=asked["concurrency"], install_signal_handlers=False)
            drained.append(perf_counter() - began)
            if started.qsize() != asked["jobs"]:
                raise RuntimeError(f"of {asked['jobs']} jobs {started.qsize()} ran")
            started = asyncio.Queue()
        working = asyncio.create_task(
            app.run_worker_async(concurrency=asked["concurrency"], install_signal_handlers=False)
        )
        await asyncio.sleep(1)  # it listens by then
        waited = []
        for _ in range(asked["pickups"]):
            await asyncio.sleep(random.uniform(*asked["gap_ms"]) / 1000)
            began = perf_counter()
            await noop.defer_async()
            waited.append((await asyncio.wait_for(started.get(), 30) - began) * 1000)
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
    return {"enqueue_s": enqueued, "drain_s": drained, "pickup_ms": waited, "version": procrastinate.__version__}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(json.loads(sys.stdin.readline())))))
