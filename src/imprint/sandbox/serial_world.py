"""The world behind the simulated sources: series that grow, change and lose chapters, and a log nobody rewrites."""

import json
import os
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from imprint.sandbox.serial_faults import Faults


@dataclass(frozen=True)
class Item:
    """One upload of one chapter."""

    id: str
    serial: int
    number: str | None
    title: str | None
    volume: str | None
    language: str
    group: str | None
    external: str | None
    created_at: datetime
    updated_at: datetime


@dataclass
class Series:
    """A series and its uploads; `every` lets a new chapter appear that often."""

    id: str
    serial: int
    title: str
    started_at: datetime
    changed_at: datetime
    every: timedelta | None = None
    items: dict[str, Item] = field(default_factory=dict)
    made: int = 0
    grown: int = 0
    revision: int = 1

    def newest_first(self) -> list[Item]:
        """List the uploads as feeds do."""
        return sorted(self.items.values(), key=lambda item: (item.created_at, item.serial), reverse=True)


@dataclass(frozen=True)
class Line:
    """One request, as the simulated server saw and answered it."""

    at: str
    method: str
    path: str
    query: str
    status: int  # 0: no answer was given
    faults: tuple[str, ...]
    items: int  # how many the answer carried


class Log:
    """Lines are only ever added; with a file they are on disk before the answer is complete."""

    def __init__(self, file: Path | None = None) -> None:
        self._lines: list[Line] = []
        self._file = file

    def add(self, line: Line) -> None:
        """Add a line."""
        self._lines.append(line)
        if self._file is not None:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(descriptor, json.dumps(asdict(line)).encode() + b"\n")
            finally:
                os.close(descriptor)

    @property
    def lines(self) -> tuple[Line, ...]:
        """Give all lines, oldest first."""
        return tuple(self._lines)


class World:
    """All series of one sandbox; the same seed and the same calls make the same world."""

    def __init__(
        self,
        *,
        seed: int = 1,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        log: Path | None = None,
        rate: int | None = None,
    ) -> None:
        self.now = now
        self.dice = random.Random(seed)  # noqa: S311 - faults, not secrets
        self.faults = Faults(self.dice)
        self.log = Log(log)
        self.rate = rate  # requests a second that a client may make
        self.series: dict[str, Series] = {}

    def add(self, title: str, chapters: int = 0, *, every: timedelta | None = None) -> Series:
        """Begin a series with so many chapters, published a day apart until now."""
        serial = len(self.series) + 1
        own = str(uuid5(NAMESPACE_URL, f"imprint-sandbox:{title}:{serial}"))
        one = Series(own, serial, title, self.now(), self.now(), every)
        self.series[one.id] = one
        for at in range(chapters):
            self.publish(one, str(at + 1), at=self.now() - timedelta(days=chapters - at))
        return one

    def find(self, ref: str) -> Series | None:
        """Find a series by its id or its serial number, grown to what it is by now."""
        found = self.series.get(ref) or next((s for s in self.series.values() if str(s.serial) == ref), None)
        if found is not None and found.every:
            while found.grown < (self.now() - found.started_at) // found.every:
                found.grown += 1
                self.publish(found, self.next_number(found), at=found.started_at + found.grown * found.every)
        return found

    def publish(
        self,
        series: Series,
        number: str | None,
        *,
        title: str | None = None,
        volume: str | None = None,
        language: str = "en",
        group: str | None = "Sandbox Scans",
        external: str | None = None,
        at: datetime | None = None,
    ) -> Item:
        """Add an upload."""
        series.made += 1
        own = str(uuid5(NAMESPACE_URL, f"{series.id}:{series.made}"))
        when = (at or self.now()).replace(microsecond=0)
        item = Item(
            own, series.serial * 1_000_000 + series.made, number, title, volume, language, group, external, when, when
        )
        series.items[own] = item
        self._changed(series)
        return item

    def next_number(self, series: Series) -> str:
        """Give the number that follows the greatest one."""
        return str(self._latest(series) + 1)

    def edit(self, series: Series, own: str, *, title: str | None = None, volume: str | None = None) -> Item:
        """Change an upload's title or volume."""
        before = series.items[own]
        series.items[own] = replace(
            before,
            title=before.title if title is None else title,
            volume=before.volume if volume is None else volume,
            updated_at=self.now().replace(microsecond=0),
        )
        self._changed(series)
        return series.items[own]

    def delete(self, series: Series, own: str) -> None:
        """Take an upload away."""
        del series.items[own]
        self._changed(series)

    def _changed(self, series: Series) -> None:
        series.revision += 1
        series.changed_at = self.now().replace(microsecond=0)

    @staticmethod
    def _latest(series: Series) -> int:
        return max(
            (int(item.number) for item in series.items.values() if item.number and item.number.isdecimal()), default=0
        )
