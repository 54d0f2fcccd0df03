"""How long to wait before something is tried again."""

from datetime import timedelta
from math import ceil, log2

FIRST = timedelta(seconds=2)
LONGEST = timedelta(seconds=64)


def pause(failures: int, roll: float, *, first: timedelta = FIRST, longest: timedelta = LONGEST) -> timedelta:
    """Wait up to first, twice that, four times that, …: a full-jitter share of it, `roll` being in [0, 1).

    Full jitter spreads those who failed together, so that they do not come back together.
    """
    doublings = min(max(failures - 1, 0), max(ceil(log2(longest / first)), 0))  # no more, or it would overflow
    return min(first * (1 << doublings), longest) * roll
