"""The journal: results that the database could not take, kept on this machine's disk until it can.

One file for each, written beside its place, synced and renamed: it is there whole or not at all. Whoever starts next in
this home reads them; to record one twice does no harm.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from imprint.work.outcome import Ended

log = structlog.get_logger()

FOLDER = "journal"
KEPT = ".json"
DAMAGED = ".damaged"


@dataclass(frozen=True)
class Journal:
    """The journal of one home."""

    folder: Path

    @classmethod
    def of(cls, home: Path) -> "Journal":
        """Give the journal of a home."""
        return cls(home / FOLDER)

    def write(self, ended: Ended) -> None:
        """Keep a result; when this returns it survives a power cut."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(ended)
        temporary = path.with_suffix(".partial")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(ended.text())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        self._sync()

    def forget(self, ended: Ended) -> None:
        """Drop a result that the database has taken."""
        with suppress(FileNotFoundError):
            self._path(ended).unlink()

    def put_aside(self, ended: Ended) -> None:
        """Keep a result that cannot be recorded where only a person looks."""
        with suppress(FileNotFoundError):
            self._path(ended).rename(self._path(ended).with_suffix(DAMAGED))

    def entries(self) -> Iterator[Ended]:
        """Give every result that waits; one that cannot be read is put aside, since nobody else has it."""
        for path in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            try:
                yield Ended.read(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # another worker of this home was faster
            except (ValueError, KeyError, TypeError):
                log.error("a kept result cannot be read and is put aside", file=path.name)  # noqa: TRY400 - no traceback
                path.rename(path.with_suffix(DAMAGED))

    def count(self, ending: str = KEPT) -> int:
        """Count the results that wait, or those that were put aside; nothing is changed."""
        return sum(1 for _ in self.folder.glob(f"*{ending}")) if self.folder.is_dir() else 0

    def _path(self, ended: Ended) -> Path:
        return self.folder / f"{ended.publication}-{ended.fence}.json"

    def _sync(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
