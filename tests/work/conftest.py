"""What the tests of use cases share."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from imprint.store.db import Database
from imprint.store.embedded import Server
from tests.conftest import TEMPLATE, _created, quick_folder
from tests.work.mortal import Mortal, mortal_worker
from tests.work.posts import Author
from tests.work.scene import Scene, scene
from tests.work.stage import Stage, stage, unhurried


@pytest.fixture
async def at(database_url: str, home: Path) -> AsyncIterator[Scene]:
    """Set a scene with content up."""
    async with scene(database_url, home) as made:
        yield made


@pytest.fixture
def author(database: Database) -> Author:
    """Give a person who writes posts."""
    return Author(database)


@pytest.fixture
async def play(database_url: str, home: Path) -> AsyncIterator[Stage]:
    """Set a stage for publishing up."""
    async with stage(database_url, home) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def long_play(server: Server) -> AsyncIterator[Stage]:
    """Set one stage up for all tests of a file, which then run in one loop."""
    home = Path(tempfile.mkdtemp(prefix="imprint-", dir=quick_folder()))
    async for url in _created(server, TEMPLATE):
        async with stage(url, home) as made:
            yield made
    shutil.rmtree(home, ignore_errors=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def long_worker(long_play: Stage) -> AsyncIterator[Mortal]:
    """Give a worker at that stage that can be killed."""
    async with mortal_worker(long_play) as made:
        yield made


@pytest.fixture
async def worker(play: Stage) -> AsyncIterator[Mortal]:
    """Give a worker at that stage that can be killed."""
    async with mortal_worker(play) as made:
        yield made


@pytest.fixture
def _unhurried() -> Iterator[None]:
    """Let nobody wait for a pace or a circuit."""
    with unhurried():
        yield
