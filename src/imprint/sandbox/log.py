"""The log: everything the sandbox has accepted, in order, never changed; the oracle of every proof.

What reached a platform is decided by the platform, so this log is asked, never our own database.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

# What others would see; these lines are made to last before the answer leaves.
EFFECTS = frozenset({"publish", "upload", "token"})


@dataclass(frozen=True)
class Entry:
    """One thing that happened at one site."""

    number: int
    at: float
    site: str
    what: str
    data: Mapping[str, object]


class Log:
    """An append-only list, in memory and, if a path is given, as lines of JSON on disk."""

    def __init__(self, path: Path | None = None) -> None:
        self._entries: list[Entry] = []
        self._file: int | None = None
        if path is not None:
            self._entries += _read(path)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, site: str, what: str, **data: object) -> Entry:
        """Append; what can be seen by others is on the disk when this returns."""
        entry = Entry(len(self._entries) + 1, time.time(), site, what, data)
        if self._file is not None:
            os.write(self._file, json.dumps(asdict(entry)).encode() + b"\n")
            if what in EFFECTS:
                os.fsync(self._file)
        self._entries.append(entry)
        return entry

    def entries(self, what: str | None = None, site: str | None = None, after: int = 0) -> list[Entry]:
        """Give the entries of a kind and a site, those after a number."""
        return [
            entry
            for entry in self._entries[after:]
            if (what is None or entry.what == what) and (site is None or entry.site == site)
        ]

    def effects(self, site: str | None = None) -> list[Entry]:
        """Give every publication that others could see; two with one key are a duplicate."""
        return self.entries("publish", site)

    def __len__(self) -> int:
        """Count the entries."""
        return len(self._entries)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _read(path: Path) -> Iterator[Entry]:
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        os.truncate(path, len(whole))  # a power cut in the middle of a line: that one never counted
    for line in whole.splitlines():
        yield Entry(**json.loads(line))
