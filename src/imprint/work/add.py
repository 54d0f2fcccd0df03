"""Add: everything from a file on this machine to verified content, for the command line."""

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from imprint.blobs.store import CHUNK
from imprint.images.sniff import ALLOWED, HEAD_BYTES, sniff
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.stores import Stores, read_file
from imprint.work.upload import Confirmed, Wanted, ask, ask_again, confirm, label, take

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Unfinished:
    """A content that waits for the very bytes that are to be added."""

    id: UUID


UNFINISHED = query("upload_unfinished", Unfinished)


def _nothing(_: int) -> None:
    """Tell nobody how far it has come."""


async def add(
    database: Database, stores: Stores, settings: Settings, path: Path, owner: str, progress: Progress = _nothing
) -> Confirmed:
    """Upload and confirm a file; one whose upload was cut short before is gone on with, not begun a second time."""
    wanted = await _promise(path, settings.upload_largest_mb * 1_000_000)
    async with database.connection() as connection:
        earlier = await UNFINISHED.first(connection, wanted.sha256, owner, label(wanted.filename))
    if earlier:
        asked = await ask_again(database, stores, settings, earlier.id, wanted, owner)
    else:
        asked = await ask(database, stores, settings, wanted, owner)
    await take(database, stores, asked.storage_key, owner, _told(path, progress))
    return await confirm(database, stores, asked.file_id, owner)


async def _promise(path: Path, largest: int) -> Wanted:
    """Say what a file is, by its bytes and not by its name."""
    try:
        head, digest, size = await asyncio.to_thread(_look, path, largest)
    except IsADirectoryError:
        raise Problem("content.folder", f"{path} is a folder; name the files in it.") from None
    except OSError as error:
        raise Problem("content.unreadable", f"{path} cannot be read: {error.strerror or error}.") from error
    if not size:
        raise Problem("upload.empty", f"{path} has no bytes.")
    kind = sniff(head)
    if kind not in ALLOWED:
        raise Problem(
            "upload.type_not_allowed",
            f"{path} is {kind or 'of no known type'}, whatever its name says; "
            "JPEG, PNG, WebP, GIF, TIFF and AVIF are taken.",
        )
    return Wanted(path.name, kind, size, digest)


def _look(path: Path, largest: int) -> tuple[bytes, str, int]:
    digest, size, head = hashlib.sha256(), 0, b""
    # Without waiting: a named pipe that nobody writes to would hold us for ever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - of a descriptor
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Problem("content.not_a_file", f"{path} is not a file that can be stored.")
        if found.st_size > largest:
            raise Problem(
                "upload.too_large", f"{path} is too large; {largest // 1_000_000} megabytes are taken at most."
            )
        while chunk := file.read(CHUNK):
            head = head or chunk[:HEAD_BYTES]
            digest.update(chunk)
            size += len(chunk)
    return head, digest.hexdigest(), size


async def _told(path: Path, progress: Progress) -> AsyncIterator[bytes]:
    async for chunk in read_file(path):
        yield chunk
        progress(len(chunk))
