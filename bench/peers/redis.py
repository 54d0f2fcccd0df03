"""A throw-away Redis on loopback, with its persistence said aloud."""

import asyncio
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from bench.cluster import DISK

STARTS_WITHIN = 10.0


@dataclass(frozen=True)
class Setup:
    """How a Redis is set up: the name of its figures, and the settings that matter, all explicit."""

    name: str
    save: str
    appendonly: bool
    appendfsync: str = "everysec"
    hz: int = 10

    @property
    def sentence(self) -> str:
        """Say what this Redis keeps and how often it looks at its timers."""
        log = f"appendonly yes, appendfsync {self.appendfsync}" if self.appendonly else "appendonly no"
        return f"save '{self.save}', {log}, hz {self.hz}"

    def arguments(self) -> list[str]:
        """Spell the set-up as redis-server's arguments."""
        appendonly = "yes" if self.appendonly else "no"
        return [
            *("--save", self.save, "--appendonly", appendonly),
            *("--appendfsync", self.appendfsync, "--hz", str(self.hz)),
        ]


SNAPSHOTS = "3600 1 300 100 60 10000"
# What redis-server does when nobody sets anything: snapshots; a crash forgets up to minutes.
DEFAULT = Setup("default", SNAPSHOTS, appendonly=False)
# As durable as a commit in PostgreSQL: flushed before it is answered.
DURABLE = Setup("durable", SNAPSHOTS, appendonly=True, appendfsync="always")
# Redis ends a blocking read's time-out when its cron ticks, `hz` times a second, which makes every delayed job up to
# 100 ms late by default; 100 is the most that Redis's own configuration file recommends.
TUNED = Setup("tuned", SNAPSHOTS, appendonly=False, hz=100)


@asynccontextmanager
async def redis(setup: Setup) -> AsyncIterator[int]:
    """Start a fresh Redis and say its port; stop and delete it on leaving."""
    with tempfile.TemporaryDirectory(prefix="imprint-bench-", dir=DISK, ignore_cleanup_errors=True) as home:
        port = _free_port()
        server = await asyncio.create_subprocess_exec(
            *("redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", home, "--daemonize", "no"),
            *setup.arguments(),
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the bench; it stops the server itself
        )
        try:
            await _ready(port, server)
            yield port
        finally:
            with suppress(ProcessLookupError):
                server.kill()  # its data is thrown away, so it need not save it
            await server.wait()


def installed() -> bool:
    """Say whether there is a redis-server to start."""
    return shutil.which("redis-server") is not None


def _free_port() -> int:
    """Find a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _ready(port: int, server: asyncio.subprocess.Process) -> None:
    """Wait until the server answers a PING."""
    async with asyncio.timeout(STARTS_WITHIN):
        while True:
            if server.returncode is not None:
                raise RuntimeError(f"redis-server ended at once with code {server.returncode}")
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.write(b"PING\r\n")
            answer = await reader.readline()
            writer.close()
            if answer.startswith(b"+PONG"):
                return
            await asyncio.sleep(0.02)
