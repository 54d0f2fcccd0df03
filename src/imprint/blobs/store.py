"""The contract of every store of bytes; its behaviour kit is tests/blobs/test_kit.py.

An object is written once and whole: it is either there, complete and what was promised, or not there at all,
whoever was cancelled or killed. Bytes always come in chunks; no object is ever held in memory as one piece.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from imprint.blobs.tally import NOTHING_PROMISED, Promise, Stored, Tally
from imprint.problem import Problem

CHUNK = 1024 * 1024


class Exists(Problem):
    """There is an object with this key already, and objects are written once."""

    def __init__(self) -> None:
        super().__init__("blob.exists", "There is an object with this key already; objects are written only once.")


class Missing(Problem):
    """There is no object with this key."""

    def __init__(self) -> None:
        super().__init__("blob.missing", "There is no object with this key in the store.")


@dataclass(frozen=True)
class Found:
    """An object as a store describes it."""

    key: str
    size: int
    modified: datetime
    etag: str | None


@dataclass(frozen=True)
class Leftover:
    """What a killed writer, or a client who never came back, has left behind; never seen as an object."""

    name: str
    size: int
    modified: datetime


class Blobs(Protocol):
    """Where bytes live; every operation refuses a key that is not one (`blob.bad_key`)."""

    async def put(self, key: str, chunks: AsyncIterable[bytes], promise: Promise = NOTHING_PROMISED) -> Stored:
        """Write an object, once and whole; raise Exists, Broken, or Unavailable when the store cannot take it."""
        ...

    async def accept(self, key: str, promise: Promise) -> Stored:
        """Take over what a client has uploaded by a signed URL, and read it through; raise Missing or Broken.

        Can be called again after a crash. The caller sees to it that nobody else accepts the same key meanwhile.
        """
        ...

    def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Give the bytes from start up to and without end, as a slice would; raise Missing at the first one."""
        ...

    async def stat(self, key: str) -> Found | None:
        """Describe an object; None when there is none."""
        ...

    async def delete(self, key: str) -> None:
        """See to it that there is no such object; it is no mistake when there was none."""
        ...

    def walk(self, prefix: str = "") -> AsyncIterator[Found]:
        """Give every object, or those under one or two folders of keys (`ab`, `ab/cd`), in no order."""
        ...

    def leftovers(self, before: datetime) -> AsyncIterator[Leftover]:
        """Give what was left behind and not touched since a time."""
        ...

    async def reap(self, before: datetime) -> int:
        """Remove what was left behind and not touched since a time; say how many there were."""
        ...

    async def check(self) -> None:
        """Raise Unavailable, with what to do about it, when the store cannot be used as it is."""
        ...

    def local_path(self, key: str) -> Path | None:
        """Give the file that holds an object, for those who read in place; None when it is not on this disk."""
        ...


async def verified(blobs: Blobs, key: str, promise: Promise = NOTHING_PROMISED) -> Stored:
    """Read an object through and say what it is; raise Broken when it is not what was promised."""
    tally = Tally(promise)
    async for chunk in blobs.read(key):
        # In a thread: hashing lets go of the interpreter, and a heartbeat must not wait for it.
        await asyncio.to_thread(tally.add, chunk)
    return tally.stored(key)


def slice_of(size: int, start: int, end: int | None) -> tuple[int, int]:
    """Clamp a range to what there is."""
    if start < 0 or (end is not None and end < start):
        raise Problem("blob.bad_range", "A range begins at 0 or later and does not end before it begins.")
    return min(start, size), size if end is None else min(end, size)


async def gathered(chunks: AsyncIterable[bytes], least: int = CHUNK) -> AsyncGenerator[bytes, None]:
    """Join small chunks: a network gives a few kilobytes at a time, and each step of a store has a price."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size >= least:
            yield b"".join(parts) if len(parts) > 1 else chunk
            parts, size = [], 0
    if size:
        yield b"".join(parts)
