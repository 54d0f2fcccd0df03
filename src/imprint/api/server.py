"""Serving: the HTTP server on a socket that somebody has opened for us."""

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from imprint.api.app import Build, Door
from imprint.store.db import Database
from imprint.store.wall import raised
from imprint.work.live import MOST_STREAMS

REQUESTS = 500  # at once, besides those who only watch


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: there is one place in a process that knows what they mean."""
        yield


async def serve(database: Database, build: Build, opened: socket.socket, stop: asyncio.Event) -> None:
    """Answer requests until `stop`, then let those that run come to their end; nobody without walls between people."""
    async with database.connection() as connection:
        await raised(connection)
    _make_room()
    config = uvicorn.Config(
        Door(database, build, stop),
        log_config=None,
        access_log=False,
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=10,
        limit_concurrency=REQUESTS + MOST_STREAMS,
    )
    server = _Server(config)

    async def end() -> None:
        await stop.wait()
        server.should_exit = True

    ending = asyncio.create_task(end())
    try:
        await server.serve(sockets=[opened])
    finally:
        ending.cancel()


def _make_room() -> None:
    """Let this process hold as many connections as it may; many systems begin with fewer than may watch."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < (wanted := 2 * (REQUESTS + MOST_STREAMS)):
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
