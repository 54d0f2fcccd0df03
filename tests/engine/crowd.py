"""What tests of shared state need: a time that stands still, and many who act at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import asyncpg

from imprint.store.query import Connection

T = TypeVar("T")

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)

_STILL = """
    CREATE OR REPLACE FUNCTION imprint_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
        SELECT '2030-01-01T00:00:00Z'::timestamptz
            + coalesce(nullif(current_setting('imprint.clock_offset', true), ''), '0')::interval
    $$"""


async def hold_time(connection: Connection) -> None:
    """Let time in this database stand still at BEGIN: only so can a model say exactly what is to come."""
    await connection.execute(_STILL)


async def move_time(connection: Connection, now: datetime) -> None:
    """Move the time of one connection in such a database."""
    offset = (now - BEGIN) // MOMENT
    await connection.execute("SELECT set_config('imprint.clock_offset', $1, false)", f"{offset} microseconds")


@asynccontextmanager
async def undone(connection: Connection) -> AsyncIterator[None]:
    """Undo what the body did: all examples of a property share one database and must find it the same."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    finally:
        await transaction.rollback()


@asynccontextmanager
async def crowd(url: str, size: int = 20) -> AsyncIterator[list[Connection]]:
    """Open many connections to one database."""
    async with AsyncExitStack() as stack:
        opened: list[Connection] = []
        for _ in range(size):
            one = await asyncpg.connect(url)
            stack.push_async_callback(one.close)
            opened.append(one)
        yield opened


async def until_held_up(watcher: Connection, count: int) -> None:
    """Return once so many connections of this database wait for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(10):
        while await watcher.fetchval(waiting) < count:
            await watcher.execute("SELECT pg_stat_clear_snapshot()")  # else it shows the same all transaction long
            await asyncio.sleep(0.005)


async def at_once(
    gate: Connection, lock: str, crowd: list[Connection], act: Callable[[Connection], Awaitable[T]]
) -> list[T]:
    """Let all act while a lock holds them up, then take the lock back: each has begun before any can end."""
    async with undone(gate):
        await gate.execute(lock)
        acts = [asyncio.ensure_future(act(one)) for one in crowd]
        await until_held_up(gate, len(crowd))
    return await asyncio.gather(*acts)
