"""What the properties share."""

import pytest

from imprint.store.db import Database
from tests.work.posts import Author


@pytest.fixture
def author(database: Database) -> Author:
    """Give a person who writes posts."""
    return Author(database)
