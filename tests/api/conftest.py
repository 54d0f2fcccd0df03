"""What the tests of the HTTP server share: the real server on a free port, and people who visit it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from imprint.store.db import Database
from tests.api.visitor import Town, town


@pytest.fixture
async def at(database: Database, database_url: str, home: Path) -> AsyncIterator[Town]:
    """Run the real server on a free port."""
    async with town(database, database_url, home) as running:
        yield running
