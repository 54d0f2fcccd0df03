"""When a source is asked again: often while it brings news, seldom while it is quiet, never not at all.

The priority follows from how long a source has been quiet, measured by its own rhythm; the wait follows from the
priority, the rhythm, and what the server asked for. Nothing here knows the time by itself.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from statistics import median

SHORTEST_RHYTHM, LONGEST_RHYTHM = timedelta(hours=1), timedelta(days=180)
LOOKED_AT = 12  # publications that tell the rhythm; what was years ago tells little
HOT_FOR, WARM_FOR = timedelta(days=14), timedelta(days=60)  # at least, however fast the rhythm
HOT_BEATS, WARM_BEATS = 3, 8  # so many missed ones are a pause
PER_BEAT = 24  # looks from one publication to the next
EXPECTED_FROM, EXPECTED_TO = 0.75, 1.5  # of a rhythm: the next one is about to come
STRETCH = 4
COLD_STRETCH = 7  # a hiatus is looked at once a week
QUIET_SHARE = 30
LONGEST_WISH = timedelta(days=1)
FIRST_BACK_OFF = timedelta(minutes=5)
SPREAD = 0.1
WIDEST_LOOK = 1000  # numbers between which a missing one is looked for


class Priority(StrEnum):
    """How urgently a source is asked."""

    HOT = "HOT"
    WARM = "WARM"
    COLD = "COLD"


@dataclass(frozen=True)
class Intervals:
    """How long the wait of each priority is."""

    hot: timedelta
    warm: timedelta
    cold: timedelta

    def of(self, priority: Priority) -> timedelta:
        """Give the wait of a priority."""
        return {Priority.HOT: self.hot, Priority.WARM: self.warm, Priority.COLD: self.cold}[priority]


@dataclass(frozen=True)
class Missing:
    """The first and the last number that should be there and is not."""

    first: Decimal
    last: Decimal


def rhythm(published: Iterable[datetime], before: timedelta | None, quiet: timedelta | None) -> timedelta | None:
    """Say how far apart publications usually are: by their dates; by the one before and the last pause without them."""
    moments = sorted({each.replace(minute=0, second=0, microsecond=0) for each in published})[-LOOKED_AT:]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    if len(gaps) > 1:
        found = timedelta(seconds=median(gap.total_seconds() for gap in gaps))
    elif quiet is not None:
        found = quiet if before is None else before * 0.7 + quiet * 0.3
    elif before is not None:
        found = before
    else:
        return None
    return min(max(found, SHORTEST_RHYTHM), LONGEST_RHYTHM)


def priority(quiet: timedelta, beat: timedelta | None) -> Priority:
    """Say how urgent a source is that has been quiet so long; with news it is hot again at once."""
    beat = beat or timedelta(0)
    if quiet <= max(HOT_FOR, beat * HOT_BEATS):
        return Priority.HOT
    return Priority.WARM if quiet <= max(WARM_FOR, beat * WARM_BEATS) else Priority.COLD


def wait(urgency: Priority, intervals: Intervals, beat: timedelta | None, quiet: timedelta, chance: float) -> timedelta:
    """Say how long to wait after a poll that worked; `chance` in [0, 1) spreads those that were added together."""
    base = intervals.of(urgency)
    if urgency is Priority.COLD:
        found = min(max(quiet / QUIET_SHARE, base), base * COLD_STRETCH)
    elif beat is None or beat * EXPECTED_FROM <= quiet <= beat * EXPECTED_TO:
        found = base
    else:
        found = min(max(beat / PER_BEAT, base / 2), base * STRETCH)
    return found * (1 + SPREAD * (2 * chance - 1))


def heeded(
    at: datetime,
    now: datetime,
    after: timedelta | None,
    skip_hours: Collection[int] = (),
    skip_days: Collection[int] = (),
) -> datetime:
    """Put a time off as the server wishes, by a day at most."""
    at = max(at, now + min(after, LONGEST_WISH)) if after else at
    for hours in range(25):
        later = at if not hours else at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=hours)
        if later.hour not in skip_hours and later.weekday() not in skip_days:
            return later
    return at


def back_off(failures: int, urgency: Priority, intervals: Intervals) -> timedelta:
    """Say how long to wait after so many failures in a row: ever longer, but no longer than without any."""
    return min(FIRST_BACK_OFF * (1 << min(max(failures - 1, 0), 10)), intervals.of(urgency))


def missing(known: Decimal | None, seen: Iterable[tuple[Decimal, Decimal | None]]) -> Missing | None:
    """Find whole numbers that were jumped over: between the latest known and what was seen, ends of ranges included."""
    if known is None:
        return None
    ahead = [(first, last or first) for first, last in seen if (last or first) > known]
    top = max((int(last) for _, last in ahead), default=0)
    start = int(known) + 1
    if not start < top <= start + WIDEST_LOOK:
        return None
    there = {number for first, last in ahead for number in range(max(int(first), start), min(int(last), top) + 1)}
    lacking = [number for number in range(start, top) if number not in there]
    return Missing(Decimal(lacking[0]), Decimal(lacking[-1])) if lacking else None
