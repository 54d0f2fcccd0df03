"""The demo: Imprint's story in a minute, in a home of its own that is gone afterwards."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic
from urllib.parse import quote, urlsplit

import typer

from imprint import log
from imprint.cli import session
from imprint.cli.output import AsJson, print_json, say
from imprint.cli.processes import PROGRAM
from imprint.cli.sandbox import Open
from imprint.engine.address import listen
from imprint.engine.roster import WORKERS
from imprint.problem import Exit, Problem
from imprint.settings import PREFIX, Settings, load
from imprint.store.db import Database, open_database
from imprint.store.embedded import running
from imprint.store.migrate import migrate
from imprint.work.demo import Told, tell
from imprint.work.props import Sandbox, Stage
from imprint.work.stores import open_stores

START_SECONDS = 60.0
LOOK_EVERY = 0.05
QUIET = "error"


def register(app: typer.Typer, open_town: Open) -> None:
    """Add the command."""

    @app.command()
    def demo(*, as_json: AsJson = False) -> None:
        """Tell Imprint's story in a minute.

        In a home of its own, with simulated platforms: nothing leaves this machine, and nothing is left behind. Exits
        with 1 when anything went out twice or got lost.
        """
        settings = session.begin()
        log.configure(settings.log_format, QUIET)  # what goes wrong on purpose is told, not logged
        began = monotonic()
        said: list[str] = []

        def speak(text: str) -> None:
            said.append(text)
            if not as_json:
                say(text)

        told = session.run(_demo(settings, open_town, speak))
        seconds = round(monotonic() - began, 1)
        speak(
            f"\n{told.posts} posts, {told.publications} publications: {told.published} out, {told.duplicates} twice, "
            f"{told.lost} lost. That took {seconds} seconds, and everything is gone again."
        )
        if as_json:
            print_json(told.as_data() | {"seconds": seconds, "said": said})
        if not told.well:
            raise typer.Exit(Exit.FAILED)


async def _demo(settings: Settings, open_town: Open, speak: Callable[[str], None]) -> Told:
    home = Path(tempfile.mkdtemp(prefix="imprint-demo-"))
    home.chmod(0o711)  # the database's own user must be able to pass
    speak("Starting an embedded PostgreSQL and a sandbox of platforms…")
    try:
        async with (
            running(home, start_seconds=settings.database_start_seconds) as server,
            open_town(listen("127.0.0.1", 0), log=None, seed=0, faults=()) as town,
        ):
            await migrate(server.url)
            variables = _variables(home, server.url, town.url)
            own = load(variables)
            async with _workers(variables) as workers, open_database(server.url) as database:
                return await tell(Stage(database, own, open_stores(own), Sandbox(town.url), workers, speak))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _variables(home: Path, url: str, sandbox: str) -> dict[str, str]:
    """Give the settings of the demo, whatever those of the person are."""
    return {
        "IMPRINT_HOME": str(home),
        "IMPRINT_DATABASE_URL": url,
        "IMPRINT_LOG_LEVEL": QUIET,
        "IMPRINT_ALLOWED_HOSTS": urlsplit(sandbox).netloc,
        "IMPRINT_MANGADEX_BASE": f"{sandbox}/mangadex",
        "IMPRINT_FETCH_GAP_MS": "1",
    }


@dataclass
class _Workers:
    """Worker processes, one at a time."""

    variables: dict[str, str]
    _running: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def start(self, ahead: timedelta = timedelta(0)) -> None:
        """Start one, and come back when it is at work."""
        others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        url = _ahead(self.variables["IMPRINT_DATABASE_URL"], ahead)
        # Its standard input closes when we end, however that is: it never stays behind alone.
        process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            "worker",
            "--until-stdin-closes",
            env=others | self.variables | {"IMPRINT_DATABASE_URL": url},
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
            start_new_session=True,
        )
        self._running.append(process)
        async with self.open(ahead) as database, asyncio.timeout(START_SECONDS):
            while not await self._alive(database, process):  # noqa: ASYNC110 - it happens in another process
                await asyncio.sleep(LOOK_EVERY)

    async def kill(self) -> None:
        """End the one that runs at once, without a goodbye."""
        for process in self._running:
            if process.returncode is None:
                process.kill()
            await process.wait()
        self._running.clear()

    def open(self, ahead: timedelta) -> AbstractAsyncContextManager[Database]:
        """Open the database with a clock that is so much ahead."""
        return open_database(_ahead(self.variables["IMPRINT_DATABASE_URL"], ahead), size=4)

    async def _alive(self, database: Database, process: asyncio.subprocess.Process) -> bool:
        if process.returncode is not None:
            raise Problem("demo.no_worker", "The demo's worker ended by itself; what it said is above.")
        async with database.connection() as connection:
            return any(
                known.alive and known.name.endswith(f":{process.pid}") for known in await WORKERS.all(connection)
            )


@asynccontextmanager
async def _workers(variables: dict[str, str]) -> AsyncIterator[_Workers]:
    """Give workers that are gone when the block ends."""
    workers = _Workers(variables)
    try:
        yield workers
    finally:
        await workers.kill()


def _ahead(url: str, time: timedelta) -> str:
    """Name a database as seen with a clock that is ahead."""
    return f"{url}&imprint.clock_offset={quote(f'{time.total_seconds():.0f} s')}" if time else url
