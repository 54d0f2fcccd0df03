"""The server that a proof stops: its own, or one that is lent to it with the commands that stop and start it."""

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from imprint.problem import Problem
from imprint.store.embedded import Server as Embedded
from imprint.store.embedded import running
from imprint.store.throwaway import throwaway

# Killed, and PostgreSQL's immediate stop, by turns.
WAYS = (signal.SIGKILL, signal.SIGQUIT)
COMMAND_SECONDS = 60


class Server(Protocol):
    """A server that can be stopped and started."""

    @property
    def url(self) -> str:
        """Say how its database is reached."""
        ...

    async def stop(self, number: int) -> str:
        """Stop it hard for the so-manieth time, and say how."""
        ...

    async def start(self) -> None:
        """Start it again."""
        ...


@dataclass(frozen=True)
class Lent:
    """A server of somebody else: its address, commands that stop it hard, by turns, and one that starts it."""

    url: str
    stops: Sequence[str]
    starts: str

    async def stop(self, number: int) -> str:
        """Let the next command stop it."""
        place = number % len(self.stops)
        await _run(self.stops[place])
        return f"stop {place + 1}"

    async def start(self) -> None:
        """Let its command start it."""
        await _run(self.starts)


@dataclass
class Own:
    """The embedded server of a home."""

    home: Path
    stack: AsyncExitStack
    running: Embedded

    @property
    def url(self) -> str:
        """Say how its database is reached."""
        return self.running.url

    async def stop(self, number: int) -> str:
        """Kill it, or stop it at once."""
        how = WAYS[number % len(WAYS)]
        os.kill(self.running.pid, how)
        return how.name

    async def start(self) -> None:
        """Start it again, as `imprint up` would."""
        self.running = await self.stack.enter_async_context(running(self.home))


@asynccontextmanager
async def stoppable(home: Path, lent: Lent | None) -> AsyncIterator[Server]:
    """Give the server of a home, or a database of our own on one that is lent, which is thrown away in the end."""
    if lent is None:
        async with AsyncExitStack() as stack:
            yield Own(home, stack, await stack.enter_async_context(running(home)))
        return
    async with throwaway(lent.url, "imprint_proof") as url:
        yield replace(lent, url=url)


async def _run(command: str) -> None:
    """Run a command without a shell; what it says is only of interest when it fails."""
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,  # a server that it leaves behind would keep a pipe open
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        code = await asyncio.wait_for(process.wait(), COMMAND_SECONDS)
    except TimeoutError:
        process.kill()
        raise Problem("proof.command_failed", f"`{command}` does not end; it is to come back by itself.") from None
    if code:
        raise Problem("proof.command_failed", f"`{command}` ended with {code}.")
