"""Made: a rendition in a file, and the files a child writes renditions into."""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from imprint.images.facts import Facts
from imprint.images.sniff import HEAD_BYTES, sniff


@dataclass(frozen=True)
class Made:
    """A rendition; its file belongs to whoever asked for it."""

    variant: str
    version: int
    path: Path
    facts: Facts
    sha256: str


class Outputs:
    """Temporary files to write into; those that are not kept are gone when the body ends."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._count = count
        self._files: dict[Path, int] = {}

    @property
    def descriptors(self) -> list[int]:
        """Give the open files, in order."""
        return list(self._files.values())

    def __enter__(self) -> Self:
        """Make the files."""
        for _ in range(self._count):
            descriptor, name = tempfile.mkstemp(prefix="made-", dir=self._folder)
            self._files[Path(name)] = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them all, and remove them unless somebody has them now."""
        for path, descriptor in self._files.items():
            os.close(descriptor)
            if error is not None or path.stat().st_size == 0:
                path.unlink(missing_ok=True)

    def keep(self, made: Sequence[tuple[tuple[str, int], Facts]]) -> list[Made]:
        """Take what was written, with a hash and a size of our own; raise ValueError when it is not what was said."""
        return [
            self._kept(path, descriptor, *named, facts)
            for (path, descriptor), (named, facts) in zip(self._files.items(), made, strict=True)
        ]

    def _kept(self, path: Path, descriptor: int, variant: str, version: int, facts: Facts) -> Made:
        if sniff(os.pread(descriptor, HEAD_BYTES, 0)) != facts.type:
            raise ValueError("what was written is not of the type that was said")
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256")
        return Made(variant, version, path, replace(facts, size=os.fstat(descriptor).st_size), digest.hexdigest())
