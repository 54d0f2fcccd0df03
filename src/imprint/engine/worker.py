"""A worker: the queue, the clock and a sign of life, in one process."""

import asyncio
import os
import socket
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import structlog

from imprint import __version__
from imprint.engine.clock import Clock, Timer
from imprint.engine.queue import Entrypoint, First, Queue
from imprint.store import incarnation
from imprint.store.db import TROUBLE, Database
from imprint.store.query import Nothing, query

log = structlog.get_logger()

BEAT_SECONDS = 10


@dataclass(frozen=True)
class Seen:
    """A worker that was known."""

    id: UUID


BEGIN = query("worker_begin", Nothing)
SEEN = query("worker_seen", Seen)
END = query("worker_end", Nothing)


@dataclass(frozen=True)
class Worker:
    """Runs jobs and the clock until it is told to stop."""

    database: Database
    same_database: First
    queue: Queue
    clock: Clock
    concurrency: int

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then let what runs come to its end."""
        me = uuid4()
        alive = asyncio.create_task(self._live(me))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.queue.run(stop))
                group.create_task(self.clock.run(stop))
        finally:
            alive.cancel()
            await asyncio.gather(alive, return_exceptions=True)
            await self._say_goodbye(me)

    async def _live(self, me: UUID) -> None:
        name = f"{socket.gethostname()}:{os.getpid()}"
        while True:
            try:
                async with self.database.connection() as connection:
                    if await SEEN.first(connection, me) is None:
                        await BEGIN.run(connection, me, name, __version__, self.concurrency)
                await self.same_database()
            except TROUBLE as error:
                log.debug("could not say that this worker is alive", error=str(error))
            await asyncio.sleep(BEAT_SECONDS)

    async def _say_goodbye(self, me: UUID) -> None:
        try:
            async with asyncio.timeout(5), self.database.connection() as connection:
                await END.run(connection, me)
        except TROUBLE:
            log.debug("the database is away; this worker will be forgotten in a day")


def worker(
    database: Database,
    home: Path,
    *,
    entrypoints: Collection[Entrypoint],
    timers: Collection[Timer],
    concurrency: int,
    grace_seconds: float,
    embedded: bool,
) -> Worker:
    """Put a worker together; its clock watches the timers whose entrypoints it was given."""

    async def same_database() -> None:
        async with database.connection() as connection:
            await incarnation.advance(connection, home, embedded=embedded)

    names = [entrypoint.name for entrypoint in entrypoints]
    return Worker(
        database,
        same_database,
        Queue(database.url, entrypoints, concurrency=concurrency, grace_seconds=grace_seconds, first=same_database),
        Clock(database.url, timers, names, first=same_database),
        concurrency,
    )
