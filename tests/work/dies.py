"""Processes that die at a chosen step: `python -m tests.work.dies` waits for orders, forks for each, and tells the end.

The steps are: before a transaction, before its commit and after it; before bytes are stored, in the middle of them
and after; before bytes are accepted and after; before variants are made and after.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from imprint.blobs.local import LocalBlobs
from imprint.blobs.tally import NOTHING_PROMISED, Promise, Stored
from imprint.images.maker import Maker
from imprint.store.db import Database
from imprint.store.query import Link
from imprint.work.add import add
from tests.work.scene import OWNER, scene


class Steps:
    """Counts the steps, and ends the process as a power cut would at the chosen one."""

    def __init__(self, fatal: int) -> None:
        self.taken = 0
        self._fatal = fatal

    def take(self) -> None:
        """Take a step."""
        self.taken += 1
        if self.taken == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def watched(steps: Steps) -> None:
    """Make every step of this process count."""
    transaction, put, accept, make = Database.transaction, LocalBlobs.put, LocalBlobs.accept, Maker.make

    @asynccontextmanager
    async def stepping(self: Database, actor: str, reason: str = "") -> AsyncIterator[Link]:
        steps.take()
        async with transaction(self, actor, reason) as connection:
            yield connection
            steps.take()
        steps.take()

    async def putting(
        self: LocalBlobs, key: str, chunks: AsyncIterable[bytes], promise: Promise = NOTHING_PROMISED
    ) -> Stored:
        async def halves() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                yield chunk[: len(chunk) // 2]
                steps.take()
                yield chunk[len(chunk) // 2 :]

        steps.take()
        stored = await put(self, key, halves(), promise)
        steps.take()
        return stored

    async def accepting(self: LocalBlobs, key: str, promise: Promise) -> Stored:
        steps.take()
        stored = await accept(self, key, promise)
        steps.take()
        return stored

    async def making(self: Maker, *given: Any) -> Any:
        steps.take()
        made = await make(self, *given)
        steps.take()
        return made

    for owner, name, new in (
        (Database, "transaction", stepping),
        (LocalBlobs, "put", putting),
        (LocalBlobs, "accept", accepting),
        (Maker, "make", making),
    ):
        setattr(owner, name, new)


async def obey(order: dict[str, Any]) -> int:
    """Do what was ordered and give the number of steps it took."""
    steps = Steps(order["fatal"])
    async with scene(order["url"], Path(order["home"])) as at:
        watched(steps)
        if order["do"] == "add":
            await add(at.database, at.stores, at.settings, Path(order["about"]), OWNER)
        else:
            await at.derive(UUID(order["about"]))
    return steps.taken


def main() -> None:
    """Fork for every order: everything is imported once, and each child is a process that can be killed."""
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, str(asyncio.run(obey(json.loads(line)))).encode())
            os._exit(0)
        os.close(write)
        said = os.read(read, 100).decode()
        os.close(read)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        sys.stdout.write(json.dumps({"killed": killed, "steps": int(said or 0), "status": status}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
