"""The day: the last 24 hours in parts of a quarter of an hour, and what stands in the way now; for charts.

It is read from the attempts and the workers themselves, so that nothing need be sampled and no restart leaves a gap.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from imprint.log import hide_in_text
from imprint.store.query import Link, query

SECONDS = 15 * 60


@dataclass(frozen=True)
class Read:
    """A part as it is read; None where nothing happened that would tell."""

    at: datetime
    published: int
    failed: int
    put_off: int
    p50: float | None
    p99: float | None
    most: int | None
    left_over: int | None
    workers: int


@dataclass(frozen=True)
class Part:
    """A quarter of an hour: attempts by their end, seconds late, most that waited though due, workers."""

    at: datetime
    published: int
    failed: int
    put_off: int
    p50: float | None
    p99: float | None
    waited: int
    workers: int

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "at": self.at,
            "published": self.published,
            "failed": self.failed,
            "putOff": self.put_off,
            "p50": self.p50,
            "p99": self.p99,
            "waited": self.waited,
            "workers": self.workers,
        }


@dataclass(frozen=True)
class Circuit:
    """An open circuit: of an account, a target, a source or a host, until when and why."""

    kind: str
    about: str
    open_until: datetime
    last_error: str | None

    @property
    def why(self) -> str:
        """Give the reason, without what must not be seen."""
        return hide_in_text(self.last_error or "")


PARTS = query("day_parts", Read)
CIRCUITS = query("day_circuits", Circuit)


async def day(connection: Link) -> list[Part]:
    """Give the parts of the last day, the oldest first."""
    parts, waiting = [], 0
    for each in await PARTS.all(connection):
        # Where nothing began and nothing became due, as many wait as before.
        waited = waiting if each.most is None else max(each.most, waiting)
        waiting = waiting if each.left_over is None else each.left_over
        parts.append(Part(each.at, each.published, each.failed, each.put_off, each.p50, each.p99, waited, each.workers))
    return parts
