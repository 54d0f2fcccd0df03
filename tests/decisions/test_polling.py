"""When a source is asked again: never too soon, never not at all, and as its own rhythm suggests."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions import polling
from imprint.decisions.polling import Intervals, Missing, Priority

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
INTERVALS = Intervals(timedelta(minutes=30), 6 * HOUR, DAY)
spans = st.timedeltas(timedelta(0), timedelta(days=20_000))
beats = st.none() | st.timedeltas(polling.SHORTEST_RHYTHM, polling.LONGEST_RHYTHM)


@pytest.mark.parametrize(
    ("days", "beat", "found"),
    [
        (0, None, "HOT"),
        (14, None, "HOT"),
        (15, None, "WARM"),
        (60, None, "WARM"),
        (61, None, "COLD"),
        (80, timedelta(days=30), "HOT"),  # a monthly one is not in a pause yet
        (200, timedelta(days=30), "WARM"),
        (241, timedelta(days=30), "COLD"),
        (20, HOUR, "WARM"),
    ],
)
def test_the_priority_follows_from_how_long_it_was_quiet(days: int, beat: timedelta | None, found: str) -> None:
    """Measured by its own rhythm, and by weeks at least."""
    assert polling.priority(timedelta(days=days), beat) == found


@pytest.mark.parametrize(
    ("urgency", "beat", "quiet", "waits"),
    [
        (Priority.HOT, None, 0 * DAY, timedelta(minutes=30)),
        (Priority.HOT, 7 * DAY, 1 * DAY, 2 * HOUR),  # weekly, and it was out yesterday
        (Priority.HOT, 7 * DAY, 6 * DAY, timedelta(minutes=30)),  # it is about to come
        (Priority.HOT, 7 * DAY, 13 * DAY, 2 * HOUR),
        (Priority.HOT, HOUR, 5 * HOUR, timedelta(minutes=15)),
        (Priority.WARM, None, 20 * DAY, 6 * HOUR),
        (Priority.COLD, None, 20 * DAY, DAY),
        (Priority.COLD, None, 90 * DAY, 3 * DAY),
        (Priority.COLD, None, 9000 * DAY, 7 * DAY),
    ],
)
def test_the_wait_follows_from_the_rhythm(
    urgency: Priority, beat: timedelta | None, quiet: timedelta, waits: timedelta
) -> None:
    """More often when the next one is expected, down to once a week in a hiatus."""
    assert polling.wait(urgency, INTERVALS, beat, quiet, 0.5) == waits


@given(beats, spans, st.floats(0, 1, exclude_max=True))
def test_no_wait_is_shorter_than_half_or_longer_than_a_week(
    beat: timedelta | None, quiet: timedelta, chance: float
) -> None:
    """Whatever a source does, it is neither hammered nor forgotten."""
    found = polling.wait(polling.priority(quiet, beat), INTERVALS, beat, quiet, chance)
    assert INTERVALS.hot / 2 * 0.9 <= found <= 7 * DAY * 1.1


@given(st.lists(st.datetimes(timezones=st.just(UTC)), max_size=30), st.none() | spans, st.none() | spans)
def test_a_rhythm_is_never_absurd(published: list[datetime], before: timedelta | None, quiet: timedelta | None) -> None:
    """Any dates make one between an hour and half a year, or none."""
    found = polling.rhythm(published, before, quiet)
    assert found is None or polling.SHORTEST_RHYTHM <= found <= polling.LONGEST_RHYTHM
    assert found is not None or (before is None and quiet is None)


def test_a_rhythm_is_read_from_the_dates() -> None:
    """By the middle one of the gaps: a pause in between, or many at once, does not change it."""
    weekly = [NOW - 7 * DAY * at for at in range(8)]
    assert polling.rhythm([*weekly, NOW - 400 * DAY, NOW - 7 * DAY], None, None) == 7 * DAY
    assert polling.rhythm([NOW], None, 3 * DAY) == 3 * DAY
    assert polling.rhythm([], 10 * DAY, 20 * DAY) == 13 * DAY
    assert polling.rhythm([], None, None) is None


@given(spans, st.none() | spans, st.sets(st.integers(0, 23)), st.sets(st.integers(0, 6)))
def test_a_wish_puts_off_by_a_day_and_an_hour_at_most(
    ahead: timedelta, after: timedelta | None, hours: set[int], days: set[int]
) -> None:
    """And it never makes a poll earlier."""
    at = NOW + ahead
    found = polling.heeded(at, NOW, after, hours, days)
    assert at <= found <= max(at, NOW + DAY) + DAY + HOUR
    if len(hours) < 24 and not days:
        assert found.hour not in hours


def test_hours_and_days_to_skip() -> None:
    """The next hour that is allowed; a feed that skips every day is asked all the same."""
    assert polling.heeded(NOW, NOW, None, {12, 13}) == NOW + 2 * HOUR
    assert polling.heeded(NOW, NOW, 5 * HOUR, {12, 13}) == NOW + 5 * HOUR
    assert polling.heeded(NOW, NOW, None, (), {2}) == NOW + 12 * HOUR  # a Wednesday
    assert polling.heeded(NOW, NOW, None, (), range(7)) == NOW


def test_failures_wait_ever_longer_but_not_longer_than_without() -> None:
    """Five minutes, ten, twenty; and as long as the priority's wait."""
    waits = [polling.back_off(failures, Priority.WARM, INTERVALS) for failures in range(1, 9)]
    assert waits[:4] == [timedelta(minutes=each) for each in (5, 10, 20, 40)]
    assert waits[-1] == 6 * HOUR
    assert polling.back_off(10**9, Priority.HOT, INTERVALS) == timedelta(minutes=30)


@pytest.mark.parametrize(
    ("known", "seen", "found"),
    [
        (None, [(1, None), (9, None)], None),
        (45, [(46, None)], None),
        (45, [(47, None)], (46, 46)),
        (45, [(46.5, None)], None),
        (45.5, [(47, None)], (46, 46)),
        (45, [(46, 48), (49, None)], None),
        (45, [(50, None), (47, None)], (46, 49)),
        (45, [(3, None), (44, 45)], None),
        (45, [(999999, None)], None),  # another way to count, not a million missing ones
    ],
)
def test_numbers_that_were_jumped_over(
    known: float | None, seen: list[tuple[float, float | None]], found: tuple[int, int] | None
) -> None:
    """Only whole numbers, only behind the latest one, and ranges carry all of theirs."""
    exact = [(Decimal(str(first)), None if last is None else Decimal(str(last))) for first, last in seen]
    latest = None if known is None else Decimal(str(known))
    assert polling.missing(latest, exact) == (Missing(Decimal(found[0]), Decimal(found[1])) if found else None)
