"""Verify: read stored bytes through and say whether they are what the row says, many at a time, little in memory."""

import asyncio
import errno
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from imprint.blobs.store import CHUNK, Missing, verified
from imprint.blobs.tally import Broken, Promise
from imprint.problem import Unavailable
from imprint.work.stores import Place, Stores

MISSING, WRONG_SIZE, WRONG_HASH, UNREADABLE = "blob.missing", "blob.wrong_size", "blob.wrong_hash", "blob.unreadable"
# So many files are hashed by one call in a thread: most are small, and to change threads costs more than to hash them.
TOGETHER = 32
THREADS = max(2, os.cpu_count() or 1)
STREAMS = 8


async def verify(stores: Stores, places: Sequence[Place]) -> list[str | None]:
    """Give for each object the code of what is wrong with it, None when it is right; raise when a store is away."""
    paths = [stores.of(place.store).local_path(place.key) for place in places]
    room, streams = asyncio.Semaphore(THREADS), asyncio.Semaphore(STREAMS)
    found: list[str | None] = [None] * len(places)

    async def hash_files(numbers: Sequence[int]) -> None:
        async with room:
            work = [(path, places[number]) for number in numbers if (path := paths[number])]
            for number, code in zip(numbers, await asyncio.to_thread(_hash_files, work), strict=True):
                found[number] = code

    async def stream(number: int) -> None:
        place = places[number]
        async with streams:
            try:
                await verified(stores.of(place.store), place.key, Promise(place.size, place.sha256))
            except (Missing, Broken) as problem:
                found[number] = problem.code

    local = [number for number, path in enumerate(paths) if path is not None]
    remote = [number for number, path in enumerate(paths) if path is None]
    await asyncio.gather(
        *(hash_files(local[at : at + TOGETHER]) for at in range(0, len(local), TOGETHER)), *map(stream, remote)
    )
    return found


def _hash_files(work: Sequence[tuple[Path, Place]]) -> list[str | None]:
    return [_hash_file(path, place) for path, place in work]


def _hash_file(path: Path, place: Place) -> str | None:
    """Hash a file in place; only what is the file's own fault is its fault."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        raise Unavailable("blob.unreachable", f"{path} cannot be opened: {error.strerror or error}.") from error
    try:
        if os.fstat(file).st_size != place.size:
            return WRONG_SIZE
        digest = hashlib.sha256()
        while chunk := os.read(file, CHUNK):
            digest.update(chunk)
    except OSError as error:
        if error.errno == errno.EIO:
            return UNREADABLE  # a bad spot on the disk
        raise Unavailable("blob.unreachable", f"{path} cannot be read: {error.strerror or error}.") from error
    finally:
        os.close(file)
    return None if digest.hexdigest() == place.sha256 else WRONG_HASH
