"""Where recorded answers of real services lie; they are not part of the project."""

from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"


@pytest.fixture
def recorded() -> Path:
    """Give the folder of recorded answers, or skip the test where it is not."""
    if not FIXTURES.is_dir():
        pytest.skip("there are no recorded answers here")
    return FIXTURES
