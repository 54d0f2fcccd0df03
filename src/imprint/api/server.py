"""Serving: the HTTP server on a socket that somebody has opened for us."""

import asyncio
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from time import monotonic

import structlog
import uvicorn

from imprint.api.app import Build, Door
from imprint.store.db import Database
from imprint.store.wall import raised
from imprint.work.live import MOST_STREAMS

log = structlog.get_logger()

REQUESTS = 500  # at once, besides those who only watch
GRACE_SECONDS = 10.0
STALLED_SECONDS = 2.0
LOOK_SECONDS = 0.1
EXTRA_SECONDS = 3


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: there is one place in a process that knows what they mean."""
        yield


async def serve(
    database: Database,
    build: Build,
    opened: socket.socket,
    stop: asyncio.Event,
    *,
    grace_seconds: float = GRACE_SECONDS,
) -> None:
    """Answer requests until `stop`, then let those that run come to their end; nobody without walls between people.

    Whoever does not take the rest of an answer is not waited for, and nobody longer than `grace_seconds`.
    """
    async with database.connection() as connection:
        await raised(connection)
    _make_room()
    config = uvicorn.Config(
        Door(database, build, stop),
        log_config=None,
        access_log=False,
        log_level="warning",
        lifespan="off",
        # Only for what does not even end when it is cut off: uvicorn logs it as a bug, which it is then.
        timeout_graceful_shutdown=ceil(grace_seconds) + EXTRA_SECONDS,
        limit_concurrency=REQUESTS + MOST_STREAMS,
    )
    server = _Server(config)

    ending = asyncio.create_task(_end(server, stop, grace_seconds))
    try:
        await server.serve(sockets=[opened])
    finally:
        ending.cancel()


async def _end(server: _Server, stop: asyncio.Event, grace_seconds: float) -> None:
    """Let what runs come to its end: cut off who takes nothing for a while, and in the end whatever is left."""
    await stop.wait()
    server.should_exit = True
    state, began = server.server_state, monotonic()
    moved: dict[object, tuple[int, float]] = {}  # how many bytes of each answer are left, and since when
    while (now := monotonic()) < began + grace_seconds:
        for transport in [each.transport for each in state.connections]:
            left = transport.get_write_buffer_size()
            before, since = moved.get(transport, (0, now))
            if not left or left != before:
                moved[transport] = (left, now)
            elif now - since >= STALLED_SECONDS:
                transport.abort()
        await asyncio.sleep(LOOK_SECONDS)
    for connection in list(state.connections):
        connection.transport.abort()
    await asyncio.sleep(LOOK_SECONDS)  # each request knows now that nobody reads its answer
    if state.tasks:
        log.warning("requests are cut off, since there is no time left", requests=len(state.tasks))
    for task in list(state.tasks):
        task.cancel()


def _make_room() -> None:
    """Let this process hold as many connections as it may; many systems begin with fewer than may watch."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < (wanted := 2 * (REQUESTS + MOST_STREAMS)):
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
