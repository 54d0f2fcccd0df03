"""Resting: nobody is slowed down while there is plenty, and something is always left."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions.quota import RESERVE, SCARCE, rest

HOUR = timedelta(hours=1)


def test_plenty_is_no_reason_to_wait() -> None:
    """Above the mark nothing changes; below it the wait grows; at the reserve one waits for the next count."""
    assert rest(SCARCE + 1, HOUR) == timedelta(0)
    assert rest(SCARCE, HOUR) == HOUR / (SCARCE - RESERVE)
    assert rest(RESERVE + 1, HOUR) == HOUR
    assert rest(0, HOUR) == HOUR
    assert rest(0, timedelta(seconds=-1)) == timedelta(0)


@given(st.integers(RESERVE, 300), st.integers(1, 10_800), st.integers(1, RESERVE))
def test_whoever_rests_is_never_refused(left: int, seconds: int, cost: int) -> None:
    """Posts that cost a few calls each, one after the other, never use up what is left before it is counted anew."""
    until = timedelta(seconds=seconds)
    while until > timedelta(0):
        assert left >= cost
        left -= cost
        until -= rest(left, until)
