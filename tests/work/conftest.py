"""What the tests of use cases share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from imprint.store.db import Database
from tests.work.posts import Author
from tests.work.scene import Scene, scene
from tests.work.stage import Stage, stage


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
