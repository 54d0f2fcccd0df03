"""Serving: the HTTP server on a socket that somebody has opened for us."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from imprint.api.app import Door
from imprint.settings import Settings
from imprint.store.db import Database


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: there is one place in a process that knows what they mean."""
        yield


async def serve(database: Database, settings: Settings, opened: socket.socket, stop: asyncio.Event) -> None:
    """Answer requests until `stop`, then let those that run come to their end."""
    config = uvicorn.Config(
        Door(database, settings),
        log_config=None,
        access_log=False,
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=10,
        limit_concurrency=500,
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
