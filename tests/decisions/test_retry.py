"""How long to wait before something is tried again."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions.retry import FIRST, LONGEST, pause

ROLLS = st.floats(0, 1, exclude_max=True)
FAILURES = st.integers(-5, 10_000)
TIMES = st.timedeltas(timedelta(microseconds=1), timedelta(hours=1))


@given(FAILURES, ROLLS, TIMES, TIMES)
def test_a_pause_is_never_negative_nor_longer_than_the_longest(
    failures: int, roll: float, first: timedelta, longest: timedelta
) -> None:
    """Whatever the count, and also where the first pause is longer than the longest, the pause is within bounds."""
    assert timedelta(0) <= pause(failures, roll, first=first, longest=longest) <= longest


@given(st.integers(1, 10_000), TIMES, TIMES)
def test_the_ceiling_doubles_from_the_first_until_it_stays_at_the_longest(
    failures: int, first: timedelta, longest: timedelta
) -> None:
    """One failure waits up to the first pause; each further one up to twice as long, or the longest."""
    before, after = (pause(n, 1.0, first=first, longest=longest) for n in (failures, failures + 1))
    assert pause(1, 1.0, first=first, longest=longest) == min(first, longest)
    assert after == min(before * 2, longest)


@given(st.integers(1, 50), ROLLS, ROLLS)
def test_the_jitter_is_full(failures: int, one: float, other: float) -> None:
    """The pause is the roll's share of the whole ceiling, so that those who failed together part."""
    ceiling = pause(failures, 1.0)
    assert pause(failures, 0.0) == timedelta(0)
    assert abs(pause(failures, one) - ceiling * one) <= timedelta(microseconds=1)
    assert (pause(failures, one) <= pause(failures, other)) or one > other


def test_the_pauses_are_those_of_the_specification() -> None:
    """2 s doubling up to 64 s."""
    assert [pause(n, 1.0).total_seconds() for n in range(1, 9)] == [2, 4, 8, 16, 32, 64, 64, 64]
    assert FIRST.total_seconds() == 2
    assert LONGEST.total_seconds() == 64
