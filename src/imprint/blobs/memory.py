"""A store in memory: the twin that tests of other rooms use; it passes the same behaviour kit."""

from collections.abc import AsyncIterable, AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from imprint.blobs.key import checked, checked_prefix
from imprint.blobs.store import CHUNK, Exists, Found, Leftover, Missing, slice_of, verified
from imprint.blobs.tally import NOTHING_PROMISED, Promise, Stored, Tally


class MemoryBlobs:
    """Keeps objects for as long as it lives."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, datetime]] = {}

    async def put(self, key: str, chunks: AsyncIterable[bytes], promise: Promise = NOTHING_PROMISED) -> Stored:
        """Collect, check, and show it in one step."""
        if checked(key) in self._objects:
            raise Exists
        tally = Tally(promise)
        parts = []
        async for chunk in chunks:
            tally.add(chunk)
            parts.append(chunk)
        stored = tally.stored(key)
        if key in self._objects:
            raise Exists
        self._objects[key] = b"".join(parts), datetime.now(UTC)
        return stored

    async def accept(self, key: str, promise: Promise) -> Stored:
        """Read it through."""
        return await verified(self, key, promise)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Give slices."""
        if checked(key) not in self._objects:
            raise Missing
        data, _ = self._objects[key]
        first, stop = slice_of(len(data), start, end)
        for at in range(first, stop, CHUNK):
            yield data[at : min(at + CHUNK, stop)]

    async def stat(self, key: str) -> Found | None:
        """Look it up."""
        if checked(key) not in self._objects:
            return None
        data, modified = self._objects[key]
        return Found(key, len(data), modified, f"{modified.timestamp()}-{len(data)}")

    async def delete(self, key: str) -> None:
        """Forget it."""
        self._objects.pop(checked(key), None)

    async def walk(self, prefix: str = "") -> AsyncIterator[Found]:
        """Go through a copy of the keys: others may come and go meanwhile."""
        start = f"{checked_prefix(prefix)}/".lstrip("/")
        for key in [each for each in self._objects if each.startswith(start)]:
            if found := await self.stat(key):
                yield found

    async def leftovers(self, before: datetime) -> AsyncIterator[Leftover]:
        """Give nothing: what a killed process had in memory is gone with it."""
        del before
        nothing: tuple[Leftover, ...] = ()
        for each in nothing:
            yield each

    async def reap(self, before: datetime) -> int:
        """Do nothing, for the same reason."""
        del before
        return 0

    async def check(self) -> None:
        """Do nothing: memory is there."""

    def local_path(self, key: str) -> Path | None:
        """Give nothing: there is no file."""
        checked(key)
        return None
