"""Schedule: when something may go out, and what becomes of it when its time was missed. No clock: `now` is given.

A wall-clock time is what a person sees on the wall of a zone. Twice a year some of those times do not exist, or exist
twice. One rule for all of them: a time that is skipped means the first moment after the gap, a time that comes twice
means the first of the two.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import count
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from imprint.problem import Problem

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
_MOMENT = timedelta(microseconds=1)
WEEK = 7
MONTHS = 12
LAST_DAY = 31


class BadTime(Problem):
    """A time, a zone or a rule that cannot be used; the sentence says why."""


@dataclass(frozen=True)
class Bounds:
    """How soon and how late something may be scheduled, and how far chance may move it."""

    lead: timedelta = timedelta(hours=1)
    horizon: timedelta = timedelta(days=365)
    jitter: timedelta = timedelta(seconds=300)


@dataclass(frozen=True)
class Slot:
    """When one publication goes out: what the person asked for, in which zone, and how far chance moved it."""

    scheduled_at: datetime
    zone: str
    jitter: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        """Refuse a moment without a zone: nobody could say when it is."""
        if self.scheduled_at.tzinfo is None:
            raise ValueError("a slot is a moment")

    @property
    def due_at(self) -> datetime:
        """Give the moment at which it really goes out."""
        return self.scheduled_at + self.jitter

    def moved(self, scheduled_at: datetime, zone: str) -> "Slot":
        """Give another time with the same jitter: chance is asked once."""
        return Slot(scheduled_at, zone, self.jitter)


def slot(now: datetime, at: datetime, zone: str, bounds: Bounds, roll: float) -> Slot:
    """Accept a time a person asked for; `roll` (0 up to but not 1) is the chance, drawn once and stored."""
    refuse(now, at, bounds)
    return Slot(at.astimezone(UTC), zone, jitter(roll, bounds))


def at_once(now: datetime, zone: str) -> Slot:
    """Give the slot of what is published now: due now, moved by nothing."""
    return Slot(now.astimezone(UTC), zone)


def refuse(now: datetime, at: datetime, bounds: Bounds) -> None:
    """Raise when a time is too soon or too far away."""
    if at < now + bounds.lead:
        raise BadTime(
            "schedule.too_soon",
            f"The time must be at least {_length(bounds.lead)} ahead; to publish at once, publish now.",
        )
    if at > now + bounds.horizon:
        raise BadTime("schedule.too_far", f"The time must be at most {_length(bounds.horizon)} ahead.")


def jitter(roll: float, bounds: Bounds) -> timedelta:
    """Turn a roll into whole seconds from nothing to the most, both included, all equally likely."""
    if not 0 <= roll < 1:
        raise ValueError(f"a roll is from 0 up to but not 1, not {roll}")
    return timedelta(seconds=int(roll * (int(bounds.jitter.total_seconds()) + 1)))


# Wall clocks


def zone_of(name: str) -> ZoneInfo:
    """Give the zone of a name such as Europe/Berlin; raise BadTime when there is none."""
    try:
        if _ZONE.fullmatch(name):  # a name only: never a path into the file system
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise BadTime("schedule.no_zone", f"There is no time zone {name[:60]!r}; a name reads like Europe/Berlin.")


def moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """Give the moment of a wall-clock time: of two the first, of none the first one after the gap."""
    first = _as_utc(wall, zone, fold=0)
    if first.astimezone(zone).replace(tzinfo=None) == wall:
        return first
    # In a gap the clock jumps somewhere between these two; the jump itself is the first moment after it.
    low, high = _as_utc(wall, zone, fold=1), first
    before = low.astimezone(zone).utcoffset()
    while high - low > _MOMENT:
        middle = low + (high - low) // 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def parse(text: str, zone: ZoneInfo) -> datetime:
    """Read an ISO 8601 time; without an offset of its own it is on the wall of the zone."""
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadTime(
            "schedule.bad_time", f"{text[:60]!r} is not a time; one reads like 2030-05-01T18:00 or 2030-05-01T16:00Z."
        ) from None
    try:
        return moment(read, zone) if read.tzinfo is None else read.astimezone(UTC)
    except OverflowError:
        raise BadTime("schedule.bad_time", f"{text[:60]!r} is outside of all calendars.") from None


def shown(at: datetime, zone: ZoneInfo) -> str:
    """Write a moment as it is on the wall of a zone, with its offset, so that it can be read back."""
    return at.astimezone(zone).isoformat(timespec="seconds")


def _as_utc(wall: datetime, zone: ZoneInfo, fold: int) -> datetime:
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


# What comes back


class Every(StrEnum):
    """How often a rule comes back."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True)
class Rule:
    """A time on the wall that comes back every so many days, weeks or months, counted from `begin`.

    Weekly rules name days of the week (0 is Monday), monthly ones a day of the month; a month that is too short for it
    has it on its last day. Both are taken from `begin` when they are not given.
    """

    every: Every
    begin: date
    at: time
    interval: int = 1
    weekdays: frozenset[int] = field(default_factory=frozenset)
    day: int | None = None

    def __post_init__(self) -> None:
        """Refuse what never comes back, or has a zone of its own."""
        if self.interval < 1:
            raise BadTime("schedule.bad_rule", "A rule comes back every 1, 2, 3 … days, weeks or months.")
        if self.at.tzinfo is not None:
            raise BadTime("schedule.bad_rule", "A rule's time is on the wall and has no zone of its own.")
        if self.weekdays - set(range(WEEK)) or (self.weekdays and self.every is not Every.WEEK):
            raise BadTime("schedule.bad_rule", "Only a weekly rule has days of the week, from 0 (Monday) to 6.")
        if self.day is not None and (self.every is not Every.MONTH or not 1 <= self.day <= LAST_DAY):
            raise BadTime("schedule.bad_rule", "Only a monthly rule has a day of the month, from 1 to 31.")

    def dates(self) -> Iterator[date]:
        """Give every date of the rule from `begin` on, until the calendar ends."""
        try:
            for turn in count(0, self.interval):
                yield from (each for each in self._turn(turn) if each >= self.begin)
        except (OverflowError, ValueError):
            return

    def _turn(self, turn: int) -> Iterator[date]:
        match self.every:
            case Every.DAY:
                yield self.begin + timedelta(days=turn)
            case Every.WEEK:
                monday = self.begin - timedelta(days=self.begin.weekday()) + timedelta(weeks=turn)
                for weekday in sorted(self.weekdays or {self.begin.weekday()}):
                    yield monday + timedelta(days=weekday)
            case Every.MONTH:
                months = self.begin.year * MONTHS + self.begin.month - 1 + turn
                year, month = months // MONTHS, months % MONTHS + 1
                yield date(year, month, min(self.day or self.begin.day, monthrange(year, month)[1]))


def occurrences(rule: Rule, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Give the moments of a rule that come after a moment, in order, each once."""
    last = after
    for day in rule.dates():
        at = moment(datetime.combine(day, rule.at), zone)
        if at > last:
            last = at
            yield at


# What was missed


class Late(StrEnum):
    """What a person wants of a post whose time was missed, because nothing ran or its account was away."""

    PUBLISH = "publish"
    SKIP = "skip"
    ASK = "ask"


class Verdict(StrEnum):
    """What becomes of a publication now."""

    WAIT = "wait"  # its time has not come
    GO = "go"
    SKIP = "skip"  # too late: it is not published
    ASK = "ask"  # a person decides


def verdict(now: datetime, due_at: datetime, policy: Late, most: timedelta, grace: timedelta) -> Verdict:
    """Decide about something due at a time: early never, on time always, late as its policy says.

    Within `grace` nothing counts as late. `publish` goes up to `most` after its time; later than that a person is
    asked, because what was held for days may no longer be wanted, and dropping it unasked would be worse.
    """
    late = now - due_at
    if late < timedelta(0):
        return Verdict.WAIT
    if late <= grace:
        return Verdict.GO
    match policy:
        case Late.PUBLISH:
            return Verdict.GO if late <= most else Verdict.ASK
        case Late.SKIP:
            return Verdict.SKIP
        case Late.ASK:
            return Verdict.ASK


def _length(duration: timedelta) -> str:
    seconds = int(duration.total_seconds())
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % size == 0 and seconds >= size:
            number = seconds // size
            return f"{number} {unit}" + ("" if number == 1 else "s")
    return "0 seconds"
