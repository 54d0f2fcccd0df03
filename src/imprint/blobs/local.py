"""A store on the local disk.

By hand and not through obstore, for three reasons found by trying version 0.12: its local store cannot be told to
fsync, so that a power cut may empty a file that was called safe; a streamed write of its always replaces what is
there; and it reads at 0.3 GB/s where a plain read in a thread gives 7.
"""

import asyncio
import errno
import fcntl
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from imprint.blobs.key import checked, checked_prefix, is_key
from imprint.blobs.settled import settled
from imprint.blobs.store import CHUNK, Exists, Found, Leftover, Missing, gathered, slice_of, verified
from imprint.blobs.tally import NOTHING_PROMISED, Promise, Stored, Tally
from imprint.problem import Problem, Unavailable

T = TypeVar("T")

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class LocalBlobs:
    """Keeps objects in `objects/` and what is being written in `temporary/`, both under one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects = folder / "objects"
        self._temporary = folder / "temporary"
        try:
            for each in (folder, self._objects, self._temporary):
                _make(each)
            for each in (folder, folder.parent):
                _sync_folder(each)
        except OSError as error:
            raise self._unavailable(error) from error

    async def put(self, key: str, chunks: AsyncIterable[bytes], promise: Promise = NOTHING_PROMISED) -> Stored:
        """Write to a temporary file, make it durable, and give it its name, which works for one writer only."""
        path = self._path(key)
        if await self._do(path.exists):
            raise Exists  # the link decides in the end; this only spares the bytes their way
        tally = Tally(promise)
        draft = await self._do(partial(_Draft, self._temporary), undo=_Draft.discard)
        try:
            async with aclosing(gathered(chunks)) as pieces:
                async for piece in pieces:
                    await self._do(partial(draft.add, piece, tally))
            stored = tally.stored(key)
            await self._do(partial(draft.publish, path, self._objects), undo=lambda _: _remove(path))
        except BaseException:
            await self._do(draft.discard)
            raise
        return stored  # and nothing to wait for in between: one who is told "cancelled" must find nothing there

    async def accept(self, key: str, promise: Promise) -> Stored:
        """Read through what our own door has put here: a client's bytes come straight to their key."""
        return await verified(self, key, promise)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Read in a thread, a chunk at a time."""
        file = await self._do(partial(_open, self._path(key)), undo=os.close)
        try:
            at, stop = slice_of(os.fstat(file).st_size, start, end)
            while at < stop:
                chunk = await self._do(partial(os.pread, file, min(CHUNK, stop - at), at))
                if not chunk:
                    raise Unavailable("blob.unreachable", "An object became shorter while it was being read.")
                yield chunk
                at += len(chunk)
        finally:
            os.close(file)

    async def stat(self, key: str) -> Found | None:
        """Look at the file."""
        return await self._do(partial(_stat, self._path(key), key))

    async def delete(self, key: str) -> None:
        """Remove the file; its folders stay, for another writer may be about to use them."""
        await self._do(partial(_remove, self._path(key)))

    async def walk(self, prefix: str = "") -> AsyncIterator[Found]:
        """Go through the folders; what is under one of the first level, a 256th of all, is in memory at a time."""
        for folder in [checked_prefix(prefix)] if prefix else await self._do(partial(_names, self._objects)):
            for found in await self._do(partial(_under, self._objects, folder)):
                yield found

    async def leftovers(self, before: datetime) -> AsyncIterator[Leftover]:
        """Give the temporary files whose writer is dead: a living one holds a lock that ends with its process."""
        for name in await self._do(partial(_names, self._temporary)):
            if leftover := await self._do(partial(_abandoned, self._temporary / name, before)):
                yield leftover

    async def reap(self, before: datetime) -> int:
        """Remove the temporary files whose writer is dead."""
        count = 0
        for name in await self._do(partial(_names, self._temporary)):
            count += bool(await self._do(partial(_abandoned, self._temporary / name, before, remove=True)))
        return count

    async def check(self) -> None:
        """Write, and throw away what was written: only that shows that a disk takes bytes."""
        draft = await self._do(partial(_Draft, self._temporary), undo=_Draft.discard)
        try:
            await self._do(partial(draft.add, bytes(4096), Tally()))
            await self._do(draft.sync)
        finally:
            await self._do(draft.discard)

    def local_path(self, key: str) -> Path | None:
        """Give the file; whether it is there is another question."""
        return self._path(key)

    def _path(self, key: str) -> Path:
        return self._objects / checked(key)

    async def _do(self, work: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """Do blocking work in a thread, settled; what the operating system complains about becomes a sentence."""
        try:
            return await settled(
                asyncio.to_thread(work), (lambda done: asyncio.to_thread(undo, done)) if undo else None
            )
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: OSError) -> Problem:
        if error.errno in _FULL:
            return Unavailable("blob.full", f"There is no room left for files in {self._folder}.")
        if error.errno in _DENIED:
            return Unavailable("blob.denied", f"This user may not keep files in {self._folder}.")
        return Unavailable("blob.unreachable", f"Files cannot be kept in {self._folder}: {error.strerror or error}.")


class _Draft:
    """A file that is being written; every call blocks and belongs into a thread."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / uuid4().hex
        self._gone = False
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # The kernel lets go of it when this process ends in whatever way: a reaper then knows that nobody writes here.
        with suppress(OSError):  # a file system without locks has only the age to go by
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def add(self, data: bytes, tally: Tally) -> None:
        tally.add(data)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def sync(self) -> None:
        os.fsync(self._file)

    def publish(self, path: Path, top: Path) -> None:
        self.sync()
        _make(path.parent.parent)
        _make(path.parent)
        try:
            # A link, not a rename: a rename would replace what another writer has put there.
            os.link(self._path, path)
        except FileExistsError:
            raise Exists from None
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise Unavailable(
                    "blob.no_links", f"The file system of {top} has no hard links, which keeping files safely needs."
                ) from error
            raise
        # All three, also when another writer made the folders: it may not have got to this line before a power cut.
        try:
            for folder in (path.parent, path.parent.parent, top):
                _sync_folder(folder)
        except OSError:
            _remove(path)  # nobody can say whether it will be there tomorrow, so it is not there today either
            raise
        with suppress(OSError):  # the object is safe; a second name that stays is a leftover
            self.discard()

    def discard(self) -> None:
        if self._gone:
            return
        self._gone = True
        try:
            _remove(self._path)
        finally:
            os.close(self._file)


def _make(folder: Path) -> None:
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Missing from None


def _stat(path: Path, key: str) -> Found | None:
    try:
        stat = path.stat(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Found(key, stat.st_size, _time(stat), f"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{stat.st_size:x}")


def _time(stat: os.stat_result) -> datetime:
    return datetime.fromtimestamp(stat.st_mtime, UTC)


def _under(top: Path, folder: str) -> list[Found]:
    """List the objects under a folder of the first or of the second level."""
    inner = [folder] if "/" in folder else [f"{folder}/{name}" for name in _names(top / folder)]
    keys = [f"{each}/{name}" for each in inner for name in _names(top / each)]
    # A person may have put something else here; and what was listed may be gone by now.
    return [found for key in keys if is_key(key) and (found := _stat(top / key, key))]


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - of a million names, only those that are keys need to become paths
    except (FileNotFoundError, NotADirectoryError):
        return []


def _abandoned(path: Path, before: datetime, *, remove: bool = False) -> Leftover | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None  # gone, or nothing of ours
    try:
        stat = os.fstat(file)
        if _time(stat) >= before:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None  # its writer lives, however slow it is
        except OSError:
            pass  # no locks here: the age has to do
        if remove:
            _remove(path)
        return Leftover(path.name, stat.st_size, _time(stat))
    finally:
        os.close(file)
