"""A scene for engine tests: accounts, posts and publications, and engines that run while a test looks on."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from imprint.engine.clock import Clock, timers
from imprint.engine.queue import Entrypoint, Queue
from imprint.store.query import Link


async def add_account(connection: Link) -> UUID:
    """Add an account."""
    added: UUID = await connection.fetchval("INSERT INTO account (platform, name) VALUES ('sandbox', 'a') RETURNING id")
    return added


async def add_publication(connection: Link, account: UUID, due_in: timedelta = timedelta(0)) -> UUID:
    """Add a post that is ready and one publication of it, due after a while."""
    post = await connection.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id")
    await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
    added: UUID = await connection.fetchval(
        "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now() + $3) RETURNING id",
        post,
        account,
        due_in,
    )
    return added


async def handed(connection: Link) -> list[str]:
    """List the publications the clock has handed over, in the order of their jobs."""
    rows = await connection.fetch(
        "SELECT convert_from(payload, 'UTF8') FROM pgqueuer WHERE entrypoint = 'publish' ORDER BY id"
    )
    return [row[0] for row in rows]


@asynccontextmanager
async def clock_runs(url: str, entrypoints: Collection[str] = ("publish",), clocks: int = 1) -> AsyncIterator[None]:
    """Let one or several clocks run while the body looks on."""
    stop = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(clocks):
            group.create_task(Clock(url, timers(crashes_before_quarantine=3), entrypoints).run(stop))
        try:
            yield
        finally:
            stop.set()


@asynccontextmanager
async def queue_runs(
    url: str, *entrypoints: Entrypoint, concurrency: int = 4, grace_seconds: float = 5
) -> AsyncIterator[asyncio.Event]:
    """Let a queue run while the body looks on; yields the event that stops it."""
    stop = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(Queue(url, entrypoints, concurrency=concurrency, grace_seconds=grace_seconds).run(stop))
        try:
            yield stop
        finally:
            stop.set()
