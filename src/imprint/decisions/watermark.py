"""A watermark: how far a line of numbers was read, when numbers are drawn before the rows that bear them can be seen.

A transaction draws a number, and commits a while later or never. So a number that is missing may still come, as long as
a transaction runs that had begun when it was missed; once all of those have ended, it will not. `settled` is the number
up to which everything was read that will ever be there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

LAST = 2**63 - 1


@dataclass(frozen=True)
class Gap:
    """Numbers that were missed; whoever drew them began before transaction `after`, if that is known yet."""

    first: int
    last: int
    after: int | None = None


class Watermark:
    """What of the line was read."""

    def __init__(self, newest: int) -> None:
        self.newest = newest
        self._gaps: list[Gap] = []

    @property
    def settled(self) -> int:
        """Give the number up to which nothing is missing."""
        return self._gaps[0].first - 1 if self._gaps else self.newest

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Give what is to be read: what was missed, and all that is new."""
        return [*((gap.first, gap.last) for gap in self._gaps), (self.newest + 1, LAST)]

    @property
    def boundless(self) -> bool:
        """Say whether `bound` is wanted."""
        return any(gap.after is None for gap in self._gaps)

    def bound(self, following: int) -> None:
        """Note a transaction that began after everything that was missed so far was drawn."""
        self._gaps = [gap if gap.after is not None else replace(gap, after=following) for gap in self._gaps]

    def read(self, found: Sequence[int], limit: int, oldest: int) -> bool:
        """Note the numbers that were found in the spans, in order and at most `limit` in each; say if one was full.

        `oldest` is the oldest transaction that ran when they were read.
        """
        spans = [*self._gaps, Gap(self.newest + 1, max([self.newest, *found[-1:]]))]
        gaps: list[Gap] = []
        full = False
        at = 0
        for gap in spans:
            end = at
            while end < len(found) and found[end] <= gap.last:
                end += 1
            inside = found[at:end]
            at = end
            cut = len(inside) >= limit
            full = full or cut
            gaps += _pieces(gap, inside, settled=gap.after is not None and oldest >= gap.after, cut=cut)
        self._gaps = gaps
        self.newest = max([self.newest, *found[-1:]])
        return full


def _pieces(gap: Gap, found: Sequence[int], *, settled: bool, cut: bool) -> Iterator[Gap]:
    """Give what is still missing of a gap; after its last number nothing is known when the reading was cut."""
    first = gap.first
    for number in found:
        if number > first and not settled:
            yield Gap(first, number - 1, gap.after)
        first = number + 1
    if first <= gap.last and (cut or not settled):
        yield Gap(first, gap.last, gap.after)
