"""Other processes, as tests need them: begun, spoken with, killed by their own id."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any


class Child:
    """A process of ours that runs tests.blobs.child."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def heard(self) -> Any:
        """Wait for the next thing it says."""
        assert self._process.stdout
        line = await asyncio.wait_for(self._process.stdout.readline(), 120)
        assert line, "the child ended without a word"
        return json.loads(line)

    async def go(self) -> None:
        """Let it go on."""
        assert self._process.stdin
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()

    async def kill(self) -> None:
        """End it as a power cut would."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def child(*arguments: str) -> AsyncIterator[Child]:
    """Run one for as long as the body lasts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.blobs.child",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    one = Child(process)
    try:
        yield one
    finally:
        await one.kill()
