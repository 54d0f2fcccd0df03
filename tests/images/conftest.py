"""A maker with one child, and what its child is doing."""

from collections.abc import AsyncIterator

import pytest

from imprint.images.bounds import Bounds
from imprint.images.maker import Maker, open_maker


@pytest.fixture
async def maker() -> AsyncIterator[Maker]:
    """Give a maker with one child and the usual bounds."""
    async with open_maker(Bounds(), children=1) as opened:
        yield opened
