"""What another process does with a store: `python -m tests.blobs.child WHAT KEY ADDRESS…`."""

import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

from imprint.blobs.key import new_key
from imprint.blobs.local import LocalBlobs
from imprint.blobs.s3 import S3Blobs
from imprint.blobs.store import Blobs, verified
from imprint.blobs.tally import Promise
from imprint.problem import Problem
from tests.blobs.rclone import Server
from tests.blobs.stream import MB, cut, noise


def opened(kind: str, *address: str) -> Blobs:
    """Open the store at an address."""
    if kind == "local":
        return LocalBlobs(Path(address[0]))
    port, folder, prefix = address
    return S3Blobs(Server(int(port), Path(folder)).place(prefix))


def say(answer: object) -> None:
    """Tell the parent."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def hang(blobs: Blobs, key: str) -> None:
    """Put 20 MB and never end."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield bytes(MB)
        await asyncio.sleep(0.2)  # the last of them is with the store by now
        say("begun")
        await asyncio.Event().wait()

    await blobs.put(key, chunks())


async def race(blobs: Blobs, key: str) -> None:
    """Put five objects with the same key at once; say what came of it."""

    async def one(number: int) -> str:
        data = noise(300_000, number)
        try:
            return (await blobs.put(key, cut(data))).sha256
        except Problem as problem:
            return problem.code

    say("begun")
    sys.stdin.readline()
    say(await asyncio.gather(*(one(os.getpid() * 10 + number) for number in range(5))))


async def fill(blobs: Blobs, size: str) -> None:
    """Put one object after the other until killed."""
    data = noise(int(size))
    say("begun")
    while True:
        await blobs.put(new_key(), cut(data))


async def measure(blobs: Blobs, megabytes: str) -> None:
    """Put and read a large object; say by how much the memory in use has grown at the most."""

    async def chunks(count: int) -> AsyncIterator[bytes]:
        block = noise(MB)
        for number in range(count):
            yield number.to_bytes(8) + block[8:]

    count = int(megabytes)
    await blobs.put(small := new_key(), chunks(1))
    await verified(blobs, small)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    digest = sha256()
    async for chunk in chunks(count):
        digest.update(chunk)
    stored = await blobs.put(key := new_key(), chunks(count), Promise(count * MB, digest.hexdigest()))
    assert await verified(blobs, key) == stored
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    say({"grown_mb": (after - before) / 1024, "peak_mb": after / 1024})


def main() -> None:
    """Do it."""
    what, key, *address = sys.argv[1:]
    asyncio.run({"hang": hang, "race": race, "fill": fill, "measure": measure}[what](opened(*address), key))


if __name__ == "__main__":
    main()
