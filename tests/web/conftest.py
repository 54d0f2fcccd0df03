"""What the tests of the pages share: the real server on a free port, and people who visit it."""

from tests.api.conftest import at

__all__ = ["at"]
