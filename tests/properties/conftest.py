"""What the properties share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from imprint.store.db import Database
from tests.work.posts import Author
from tests.work.stage import Stage, stage, unhurried


@pytest.fixture
def author(database: Database) -> Author:
    """Give a person who writes posts."""
    return Author(database)


@pytest.fixture
async def play(database_url: str, home: Path) -> AsyncIterator[Stage]:
    """Set a stage for publishing up, where nobody waits for a pace or a circuit."""
    with unhurried():
        async with stage(database_url, home) as made:
            yield made
