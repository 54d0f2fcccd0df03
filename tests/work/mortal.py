"""A mortal worker: a process that does one job and dies, or falls asleep, where it is told to."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.waiting import until
from tests.work.stage import Stage


@dataclass
class Mortal:
    """The process that forks them; one at a time."""

    process: asyncio.subprocess.Process
    play: Stage
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def do(self, what: str, about: UUID, fatal: int | str) -> list[str]:
        """Let one do a job and be killed at a step; 0: at none. Give the steps it took when it was not."""
        found = await self._order(what, about, fatal, "SIGKILL")
        assert found["killed"] == (fatal != 0), found
        steps: list[str] = found["steps"]
        return steps

    async def may_die(self, what: str, about: UUID, fatal: int) -> bool:
        """Let one do a job and be killed at a step if it comes so far; say whether it was."""
        return bool((await self._order(what, about, fatal, "SIGKILL"))["killed"])

    @asynccontextmanager
    async def asleep(self, what: str, about: UUID, step: int | str, seconds: float = 0) -> AsyncIterator[None]:
        """Let one fall asleep at a step; it wakes up when the body has ended, and comes to its end.

        `seconds` is how long its request may take, where that shall be less than usual.
        """
        note = self.play.at.settings.home / "asleep"
        note.unlink(missing_ok=True)
        working = asyncio.create_task(self._order(what, about, step, "SIGSTOP", str(note), seconds))
        try:
            await until(lambda: _stopped(note))
            yield
        finally:
            pid = int(await asyncio.to_thread(note.read_text))
            await asyncio.to_thread(_wake, pid)
            found = await working
        assert found["status"] == 0, found

    async def _order(
        self, what: str, about: UUID, fatal: int | str, ends: str, note: str = "", seconds: float = 0
    ) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        home, url = str(self.play.at.settings.home), self.play.database.url
        order = {"do": what, "about": str(about), "fatal": fatal, "ends": ends, "note": note}
        async with self.turn:
            line = json.dumps({**order, "url": url, "home": home, "seconds": seconds})
            self.process.stdin.write(line.encode() + b"\n")
            found: dict[str, Any] = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 60))
        return found


@asynccontextmanager
async def mortal_worker(play: Stage) -> AsyncIterator[Mortal]:
    """Start it, and end it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.work.publisher_dies", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Mortal(process, play)
    finally:
        process.kill()
        await process.wait()


async def _stopped(note: Path) -> bool:
    try:
        pid = await asyncio.to_thread(note.read_text)
        state = await asyncio.to_thread(Path(f"/proc/{pid}/stat").read_text)
    except OSError:
        return False
    return bool(pid) and state.rpartition(")")[2].split()[0] == "T"


def _wake(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
