"""What the tests of use cases share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from imprint.store.db import Database
from tests.work.posts import Author
from tests.work.scene import Scene, scene


@pytest.fixture
async def at(database_url: str, home: Path) -> AsyncIterator[Scene]:
    """Set a scene with content up."""
    async with scene(database_url, home) as made:
        yield made


@pytest.fixture
def author(database: Database) -> Author:
    """Give a person who writes posts."""
    return Author(database)
