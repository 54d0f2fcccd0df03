"""A spool: a stream of bytes in a temporary file, hashed on its way, so that memory stays flat."""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path


@dataclass(frozen=True)
class Spooled:
    """Bytes in a file of our own; whoever knows what their hash should be compares it."""

    path: Path
    size: int
    sha256: str


@asynccontextmanager
async def spooled(chunks: AsyncIterable[bytes], folder: Path) -> AsyncIterator[Spooled]:
    """Write a stream into a temporary file of a folder; the file is gone when the body ends."""
    descriptor, name = await asyncio.to_thread(tempfile.mkstemp, prefix="spool-", dir=folder)
    path = Path(name)
    try:
        digest, size = hashlib.sha256(), 0
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            async for chunk in chunks:
                await asyncio.to_thread(
                    _take, file, digest, chunk
                )  # neither the disk nor the hash may hold up the loop
                size += len(chunk)
        yield Spooled(path, size, digest.hexdigest())
    finally:
        path.unlink(missing_ok=True)


def _take(file: FileIO, digest: "hashlib._Hash", chunk: bytes) -> None:
    digest.update(chunk)
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]
