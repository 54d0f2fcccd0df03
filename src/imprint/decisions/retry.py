"""How long to wait before something is tried again."""

from datetime import timedelta

FIRST = timedelta(seconds=2)
LONGEST = timedelta(seconds=64)


def pause(failures: int, roll: float, *, first: timedelta = FIRST, longest: timedelta = LONGEST) -> timedelta:
    """Wait up to first, twice that, four times that, …: a full-jitter share of it, `roll` being in [0, 1).

    Full jitter spreads those who failed together, so that they do not come back together.
    """
    ceiling = min(first * int(2 ** min(max(failures - 1, 0), 32)), longest)
    return ceiling * roll
