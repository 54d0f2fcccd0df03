"""Hops: a proof skips the time in which nobody would do anything, and keeps account of what it has skipped.

Leases, quiet periods and the time between two looks keep the length they have in real life; only the waiting is left
out. Every worker has the clock of its birth for life, so a hop is made while none is at work.
"""

import bisect
import time
from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass
class Hops:
    """How far the clock of the database is ahead of this machine's, and since when."""

    _since: list[float] = field(default_factory=lambda: [0.0])
    _ahead: list[float] = field(default_factory=lambda: [0.0])

    @property
    def ahead(self) -> float:
        """Say how many seconds have been skipped."""
        return self._ahead[-1]

    @property
    def count(self) -> int:
        """Count the hops."""
        return len(self._ahead) - 1

    def hop(self, seconds: float) -> None:
        """Skip so many seconds from now on."""
        self._since.append(time.time())
        self._ahead.append(self.ahead + seconds)

    def moment(self, real: float) -> float:
        """Give what the database's clock showed at a moment of this machine's."""
        return real + self._ahead[bisect.bisect_right(self._since, real) - 1]

    def url(self, url: str) -> str:
        """Give the address at which the database shows the time of now."""
        mark = "&" if "?" in url else "?"
        return f"{url}{mark}imprint.clock_offset={quote(f'{self.ahead:.3f} s')}"
