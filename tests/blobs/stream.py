"""Streams of bytes for tests."""

import asyncio
from collections.abc import AsyncIterator
from random import Random

from imprint.blobs.store import Blobs

MB = 1024 * 1024


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    """Give these chunks."""
    for chunk in chunks:
        yield chunk


async def cut(data: bytes, size: int = 64 * 1024) -> AsyncIterator[bytes]:
    """Give bytes as a network would, a few at a time."""
    for at in range(0, len(data), size):
        yield data[at : at + size]
        await asyncio.sleep(0)


async def endless(begun: asyncio.Event, megabytes: int) -> AsyncIterator[bytes]:
    """Give some megabytes, say so, and then nothing more for ever."""
    for _ in range(megabytes):
        yield bytes(MB)
    begun.set()
    await asyncio.Event().wait()


async def whole(blobs: Blobs, key: str, start: int = 0, end: int | None = None) -> bytes:
    """Read a range into one piece."""
    return b"".join([chunk async for chunk in blobs.read(key, start, end)])


def noise(size: int, seed: int = 0) -> bytes:
    """Make bytes that are the same for the same seed."""
    return Random(seed).randbytes(size)  # noqa: S311 - repeatable, not secret
