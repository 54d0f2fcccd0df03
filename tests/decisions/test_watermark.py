"""The watermark: whatever the order in which numbers are drawn and committed, everything is read, and once."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions.watermark import LAST, Watermark


@dataclass
class Line:
    """A line of numbers as a database keeps one: drawn by transactions that end later, or come to nothing."""

    drawn: int = 0
    transactions: int = 0
    running: dict[int, list[int]] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)

    def draw(self, which: int) -> None:
        """Let a running transaction, or a new one, draw a number."""
        if which % 3 == 0 or not self.running:
            self.transactions += 1
            self.running[self.transactions] = []
        self.drawn += 1
        self.running[sorted(self.running)[which % len(self.running)]].append(self.drawn)

    def end(self, which: int, *, well: bool) -> None:
        """End a running transaction."""
        if self.running:
            numbers = self.running.pop(sorted(self.running)[which % len(self.running)])
            self.committed += numbers if well else []

    def look(self, mark: Watermark, limit: int) -> list[int]:
        """Read what the mark asks for, as one statement would."""
        found: list[int] = []
        for first, last in mark.spans:
            found += sorted(number for number in self.committed if first <= number <= last)[:limit]
        mark.read(found, limit, min([*self.running, self.transactions + 1]))
        if mark.boundless:
            self.transactions += 1
            mark.bound(self.transactions)
        return found


STEPS = st.lists(st.tuples(st.sampled_from(["draw", "commit", "undo", "read"]), st.integers(0, 100)), max_size=80)


@given(STEPS, st.integers(1, 5))
def test_every_number_is_read_once(steps: list[tuple[str, int]], limit: int) -> None:
    """Nothing is missed, nothing is read twice, and what is said to be settled is."""
    line, mark, seen = Line(), Watermark(0), list[int]()
    for what, which in steps:
        if what == "draw":
            line.draw(which)
        elif what == "read":
            seen += line.look(mark, limit)
            coming = {number for numbers in line.running.values() for number in numbers}
            assert all(number in seen for number in line.committed if number <= mark.settled)
            assert not any(number <= mark.settled for number in coming)
        else:
            line.end(which, well=what == "commit")
    while line.running:
        line.end(0, well=True)
    for _ in range(len(line.committed) + 2):
        seen += line.look(mark, limit)
    assert sorted(seen) == sorted(line.committed)
    assert mark.settled == mark.newest == max([0, *line.committed])


def test_what_was_undone_is_not_waited_for_for_ever() -> None:
    """A number that nobody will ever use is forgotten once those who could have are gone."""
    mark = Watermark(10)
    mark.read([11, 14], 100, oldest=5)
    assert mark.settled == 11
    assert mark.spans == [(12, 13), (15, LAST)]
    mark.bound(9)
    mark.read([], 100, oldest=8)
    assert mark.settled == 11
    mark.read([], 100, oldest=9)
    assert mark.settled == 14
    assert mark.spans == [(15, LAST)]
