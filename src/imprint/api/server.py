"""Serving: the HTTP server on a socket that somebody may have opened for us."""

import asyncio
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from imprint.api.app import build
from imprint.problem import Unavailable
from imprint.store.db import Database
from imprint.store.home import explained

KEY_FILE = "operator.key"


def listen(host: str, port: int) -> socket.socket:
    """Open the address, or say in one sentence why it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        opened = socket.socket(family)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
    except OSError as error:
        raise Unavailable(
            "address.taken",
            f"Imprint cannot listen on {host} port {port}: {error.strerror}; set IMPRINT_PORT to another one, or 0 for any.",
        ) from error
    return opened


def address(opened: socket.socket) -> str:
    """Give the URL at which a socket is reached."""
    host, port = opened.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - only to show an address one can click
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def operator_key(home: Path) -> str:
    """Read the operator's key, made at the first start and readable by its owner only."""
    file = home / KEY_FILE
    with explained(home):
        if not file.exists():
            temporary = home / f".{KEY_FILE}.{secrets.token_hex(4)}"
            temporary.touch(mode=0o600)
            temporary.write_text(secrets.token_urlsafe(24))
            try:
                file.hardlink_to(temporary)  # never over another process's key
            except FileExistsError:
                pass
            finally:
                temporary.unlink()
        return file.read_text().strip()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to us: there is one place in a process that knows what they mean."""
        yield


async def serve(database: Database, key: str, opened: socket.socket, stop: asyncio.Event) -> None:
    """Answer requests until `stop`, then let those that run come to their end."""
    config = uvicorn.Config(
        build(database, key), log_config=None, access_log=False, log_level="warning", lifespan="off", timeout_graceful_shutdown=10
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
