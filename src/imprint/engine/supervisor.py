"""The supervisor: child processes that are started, restarted when they crash, and stopped together."""

import asyncio
import random
import signal
import subprocess
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic

import structlog

from imprint.decisions.retry import pause

log = structlog.get_logger()

FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(seconds=30)
HEALTHY_SECONDS = 60
EXTRA_SECONDS = 5  # beyond the grace children give their own work, for closing what they have open


@dataclass(frozen=True)
class Child:
    """A process to keep running."""

    name: str
    command: Sequence[str]
    pass_fds: Collection[int] = ()


@dataclass
class Supervisor:
    """Keeps children running until `stop`; `hurry` ends them at once."""

    children: Collection[Child]
    grace_seconds: float
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    restarts: int = 0

    async def run(self) -> None:
        """Start every child and come back when all have ended."""
        async with asyncio.TaskGroup() as group:
            for child in self.children:
                group.create_task(self._keep(child))

    def ask_to_stop(self) -> None:
        """Stop; asked a second time, stop at once."""
        if self.stop.is_set():
            self.hurry.set()
        self.stop.set()

    async def _keep(self, child: Child) -> None:
        failures = 0
        while not self.stop.is_set():
            began = monotonic()
            process = await self._start(child)
            try:
                await _first(process.wait(), self.stop.wait())
            finally:
                if self.stop.is_set():
                    await self._end(process)
                elif process.returncode is None:  # cancelled: leave nobody behind
                    process.kill()
                    await process.wait()
            if self.stop.is_set():
                return
            failures = 1 if monotonic() - began > HEALTHY_SECONDS else failures + 1
            wait = pause(failures, random.uniform(0.5, 1), first=FIRST_PAUSE, longest=LONGEST_PAUSE)  # noqa: S311
            self.restarts += 1
            log.warning(
                "a process ended and is started again",
                process=child.name,
                exit_code=process.returncode,
                in_s=round(wait.total_seconds(), 1),
            )
            await _first(asyncio.sleep(wait.total_seconds()), self.stop.wait())

    async def _start(self, child: Child) -> asyncio.subprocess.Process:
        # Its own session keeps the terminal's Ctrl-C from it: it is told by us, once. Its standard input is a pipe
        # that closes when we die, however we die, so that it never stays behind alone.
        return await asyncio.create_subprocess_exec(
            *child.command, stdin=subprocess.PIPE, pass_fds=tuple(child.pass_fds), start_new_session=True
        )

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            patience = asyncio.sleep(self.grace_seconds + EXTRA_SECONDS)
            await _first(process.wait(), self.hurry.wait(), patience)
        if process.returncode is None:
            why = "at once, as asked" if self.hurry.is_set() else "it did not end in time"
            log.warning("a process is killed", pid=process.pid, why=why)
            process.kill()
            await process.wait()


async def _first(*awaitables: Coroutine[object, object, object]) -> None:
    """Wait for whichever comes first and drop the others."""
    tasks = [asyncio.create_task(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
