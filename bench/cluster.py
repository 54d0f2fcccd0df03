"""A throw-away PostgreSQL, the embedded one as Imprint runs it, that every contender gets a database in."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from imprint.store.embedded import Server, running

# A real disk on Debian and macOS, whereas /tmp may be memory; each cluster's folder in it is unique.
DISK = Path("/var/tmp")  # noqa: S108 - see above


@dataclass(frozen=True)
class Cluster:
    """A running server that is deleted with all its databases when the bench ends."""

    server: Server

    async def database(self, name: str) -> str:
        """Make an empty database and say how to reach it."""
        connection = await asyncpg.connect(self.server.url)
        try:
            await connection.execute(f'CREATE DATABASE "{name}"')
        finally:
            await connection.close()
        return self.server.url.replace("/imprint?", f"/{name}?")


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """Start a fresh, durable server; stop and delete it on leaving."""
    home = Path(tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK))
    home.chmod(0o711)  # the server's own user must be able to pass
    try:
        async with running(home) as server:
            yield Cluster(server)
    finally:
        shutil.rmtree(home, ignore_errors=True)
