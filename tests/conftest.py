"""One PostgreSQL for the whole run, one template, and a fresh clone of it for every test that wants a database."""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from imprint.store.db import Database, open_database
from imprint.store.embedded import Server, running
from imprint.store.migrate import migrate
from imprint.store.query import Connection

TEMPLATE = "imprint_template"
ROOM = 4 * 1024**3


def quick_folder() -> Path:
    """Give a place in memory where there is one with room: what tests write need not outlive a power cut."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM:
        return memory
    return Path(tempfile.gettempdir())


def pytest_xdist_auto_num_workers() -> int:
    """Run one more at a time than there are processors: a third of the time a test waits for another process."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings and the terminal of the person who runs the tests out of them."""
    for name in list(os.environ):
        if name.startswith("IMPRINT_") or name == "COLUMNS":  # a width makes a table think that somebody looks
            monkeypatch.delenv(name)


@pytest.fixture
def home() -> Iterator[Path]:
    """Give a new home; a short path that an OS user without rights can enter, which pytest's own folders are not."""
    folder = Path(tempfile.mkdtemp(prefix="imprint-", dir=quick_folder()))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server(testrun_uid: str) -> Iterator[Server]:
    """Start the run's PostgreSQL, or join the one another test process has started."""
    folder = quick_folder() / f"imprint-tests-{testrun_uid[:12]}"
    folder.mkdir(mode=0o711, exist_ok=True)
    with asyncio.Runner() as runner:
        entered = running(folder)
        started = runner.run(entered.__aenter__())
        try:
            runner.run(_template(started, folder))
            yield started
        finally:
            runner.run(entered.__aexit__(None, None, None))
            if not (folder / "postgres" / "data" / "postmaster.pid").exists():
                shutil.rmtree(folder, ignore_errors=True)


async def _template(server: Server, folder: Path) -> None:
    """Migrate one database for everybody; the test process that comes second finds it done."""
    gate = os.open(folder, os.O_RDONLY)
    try:
        await asyncio.to_thread(fcntl.flock, gate, fcntl.LOCK_EX)
        connection = await asyncpg.connect(server.url)
        try:
            if await connection.fetchval("SELECT count(*) FROM pg_database WHERE datname = $1", TEMPLATE):
                return
            await connection.execute(f"CREATE DATABASE {TEMPLATE}_new")
            await migrate(named(server, f"{TEMPLATE}_new"))
            await connection.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}")
        finally:
            await connection.close()
    finally:
        os.close(gate)


def named(server: Server, database: str) -> str:
    """Give the URL of another database on the same server."""
    return server.url.replace("/imprint?", f"/{database}?")


@pytest.fixture
def server_url(server: Server) -> str:
    """Give the server's first database, which is empty and must stay so."""
    return server.url


@pytest.fixture
async def empty_url(server: Server) -> AsyncIterator[str]:
    """Give a new database that was never migrated."""
    async for url in _created(server, "template0"):
        yield url


@pytest.fixture
async def database_url(server: Server) -> AsyncIterator[str]:
    """Give a new, migrated database."""
    async for url in _created(server, TEMPLATE):
        yield url


async def _created(server: Server, template: str) -> AsyncIterator[str]:
    name = f"t_{uuid4().hex}"
    connection = await asyncpg.connect(server.url)
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        yield named(server, name)
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Give an open, migrated database."""
    async with open_database(database_url) as opened:
        yield opened


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    """Give one connection to a new, migrated database."""
    opened = await asyncpg.connect(database_url)
    yield opened
    await opened.close()
