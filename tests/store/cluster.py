"""A PostgreSQL of its own for tests that must set up a server as somebody else might have done."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from imprint.store import binaries
from tests.waiting import until

DEBIAN = Path("/usr/lib/postgresql/15/bin")


@dataclass(frozen=True)
class Cluster:
    """A running server, reached through its folder."""

    folder: Path

    def url(self, database: str = "postgres", user: str = "postgres", password: str = "") -> str:
        """Say how to reach a database."""
        return f"postgresql://{user}{password and f':{password}'}@/{database}?host={self.folder}"


@asynccontextmanager
async def cluster(programs: Path | None = None, *, hba: str = "", **settings: str) -> AsyncIterator[Cluster]:
    """Start a fresh server with these settings, from the wheel or from a folder of programs; delete it on leaving."""
    who = binaries.account()
    programs = programs or binaries.binary("postgres", who).parent
    folder = Path(tempfile.mkdtemp(prefix="imprint-pg-"))
    try:
        os.chown(folder, who.uid, who.gid)
        data = folder / "data"
        made = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        process = binaries.start([programs / "initdb", "-D", data, *made], who)
        written = await binaries.finish(process)
        assert process.returncode == 0, written
        rules = data / "pg_hba.conf"
        await asyncio.to_thread(rules.write_text, hba + await asyncio.to_thread(rules.read_text))
        options = {"listen_addresses": "", "unix_socket_directories": str(folder), "shared_buffers": "16MB", **settings}
        given = [f"--{name}={value}" for name, value in options.items()]
        with (folder / "log").open("wb") as output:
            process = binaries.start([programs / "postgres", "-D", data, *given], who, output=output.fileno())
        try:
            found = Cluster(folder)
            await until(lambda: _answers(found))
            yield found
        finally:
            process.send_signal(signal.SIGQUIT)
            await asyncio.to_thread(process.wait, 30)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _answers(found: Cluster) -> bool:
    try:
        connection = await asyncpg.connect(found.url())
    except (OSError, asyncpg.CannotConnectNowError):
        return False
    await connection.close()
    return True
