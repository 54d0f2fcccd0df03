"""A PostgreSQL of its own for tests that must set up a server as somebody else might have done."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from imprint.store import binaries
from tests.waiting import until

DEBIAN = Path("/usr/lib/postgresql/15/bin")


@dataclass
class Cluster:
    """A running server, reached through its folder."""

    folder: Path
    command: list[str | Path]
    process: "subprocess.Popen[bytes] | None" = None

    def url(self, database: str = "postgres", user: str = "postgres", password: str = "") -> str:
        """Say how to reach a database."""
        return f"postgresql://{user}{password and f':{password}'}@/{database}?host={self.folder}"

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "log").open("ab") as output:
            self.process = binaries.start(self.command, binaries.account(), output=output.fileno())
        await until(lambda: _answers(self))

    async def stop(self) -> None:
        """End it at once, as a crash would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            await asyncio.to_thread(self.process.wait, 30)


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
        found = Cluster(folder, [programs / "postgres", "-D", data, *given])
        try:
            await found.start()
            yield found
        finally:
            await found.stop()
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _answers(found: Cluster) -> bool:
    try:
        connection = await asyncpg.connect(found.url())
    except (OSError, asyncpg.CannotConnectNowError):
        return False
    await connection.close()
    return True
