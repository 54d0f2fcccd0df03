"""Figures: what publishing has done so far, counted from the rows themselves, so that no restart loses any."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from imprint.store.query import Link, query

WHILE = timedelta(hours=1)


@dataclass(frozen=True)
class Attempts:
    """How many attempts ended in a way, and how many seconds they took together."""

    outcome: str
    attempts: int
    seconds: float


@dataclass(frozen=True)
class Drift:
    """How late the attempts of the last hour began, in seconds."""

    attempts: int
    p50: float
    p99: float


@dataclass(frozen=True)
class Open:
    """How many publications are in a state that is not an end."""

    status: str
    publications: int


@dataclass(frozen=True)
class Alarms:
    """How many publications were accepted twice; there should never be one."""

    publications: int


@dataclass(frozen=True)
class Figures:
    """Everything that is counted."""

    attempts: list[Attempts]
    drift: Drift
    open: list[Open]
    duplicates: int

    def of(self, outcome: str) -> int:
        """Say how many attempts ended in a way."""
        return sum(each.attempts for each in self.attempts if each.outcome == outcome)

    def as_data(self) -> dict[str, Any]:
        """Give them as plain data: success, failure by kind, time, rate limits, recoveries and drift."""
        return {
            "published": self.of("published"),
            "rateLimits": self.of("rate_limited"),
            "recoveries": self.of("died"),
            "duplicates": self.duplicates,
            "attempts": {each.outcome: each.attempts for each in self.attempts},
            "seconds": {each.outcome: round(each.seconds, 3) for each in self.attempts},
            "open": {each.status: each.publications for each in self.open},
            "driftLastHour": asdict(self.drift),
        }


ATTEMPTS = query("figures_attempts", Attempts)
DRIFT = query("figures_drift", Drift)
OPEN = query("figures_open", Open)
ALARMS = query("figures_alarms", Alarms)


async def figures(connection: Link) -> Figures:
    """Count."""
    return Figures(
        await ATTEMPTS.all(connection),
        await DRIFT.one(connection, WHILE),
        await OPEN.all(connection),
        (await ALARMS.one(connection)).publications,
    )
