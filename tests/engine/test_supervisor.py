"""The supervisor keeps its children running and stops them together, and they do not outlive it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from imprint.engine import supervisor as module
from imprint.engine.supervisor import Child, Supervisor
from tests.waiting import until

# A child that writes its pid, and on SIGTERM a goodbye; `stubborn` ignores the signal.
CHILD = """
import os, signal, sys, time
folder, manner = sys.argv[1:]
def goodbye(*_):
    open(f"{folder}/goodbye-{os.getpid()}", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if manner == "stubborn" else goodbye)
open(f"{folder}/pid-{os.getpid()}", "w").close()
if manner == "crash":
    sys.exit(3)
if manner == "watch":
    sys.stdin.read()
    goodbye()
time.sleep(600)
"""


def child(folder: Path, manner: str) -> Child:
    """Describe a child that behaves in this manner."""
    return Child(manner, [sys.executable, "-c", CHILD, str(folder), manner])


def pids(folder: Path) -> list[int]:
    """List the children that have started."""
    return [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]


@asynccontextmanager
async def supervised(folder: Path, *manners: str, grace: float = 5) -> AsyncIterator[Supervisor]:
    """Run a supervisor while the body looks on."""
    supervisor = Supervisor([child(folder, manner) for manner in manners], grace)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(supervisor.run())
        try:
            yield supervisor
        finally:
            supervisor.ask_to_stop()


async def test_a_stop_is_passed_on_and_waited_for(tmp_path: Path) -> None:
    """Every child hears of the stop and says goodbye before the supervisor is done."""
    async with supervised(tmp_path, "good", "good"):
        await until(lambda: _many(tmp_path, 2))
    assert len(list(tmp_path.glob("goodbye-*"))) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids(tmp_path))


async def test_a_killed_child_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that was killed with -9 is replaced by another."""
    monkeypatch.setattr(module, "FIRST_PAUSE", module.FIRST_PAUSE / 100)
    async with supervised(tmp_path, "good") as supervisor:
        await until(lambda: _many(tmp_path, 1))
        os.kill(pids(tmp_path)[0], signal.SIGKILL)
        await until(lambda: _many(tmp_path, 2))
        assert supervisor.restarts == 1


async def test_a_child_that_keeps_crashing_is_started_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses grow, and a stop ends a pause at once."""
    pauses: list[int] = []

    def remember(failures: int, *_: object, **__: object) -> timedelta:
        pauses.append(failures)
        return timedelta(milliseconds=1)

    monkeypatch.setattr(module, "pause", remember)
    async with supervised(tmp_path, "crash"):
        await until(lambda: _many(tmp_path, 4))
    assert pauses[:4] == [1, 2, 3, 4][: len(pauses[:4])]
    assert len(pauses) >= 3


async def test_a_child_that_does_not_listen_is_killed_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grace is given once; then the child is ended for good."""
    monkeypatch.setattr(module, "EXTRA_SECONDS", 0.1)
    async with supervised(tmp_path, "stubborn", grace=0.1):
        await until(lambda: _many(tmp_path, 1))
    assert not any(psutil.pid_exists(pid) for pid in pids(tmp_path))


async def test_asking_twice_is_asking_at_once(tmp_path: Path) -> None:
    """A second Ctrl-C does not wait for the grace."""
    async with supervised(tmp_path, "stubborn", grace=600) as supervisor:
        await until(lambda: _many(tmp_path, 1))
        supervisor.ask_to_stop()
        supervisor.ask_to_stop()
    assert not any(psutil.pid_exists(pid) for pid in pids(tmp_path))


async def test_children_do_not_outlive_a_killed_supervisor(tmp_path: Path) -> None:
    """When the supervisor is killed with -9 its children see their standard input close, and end by themselves."""
    program = (
        "import asyncio, sys; from imprint.engine.supervisor import Child, Supervisor; "
        "asyncio.run(Supervisor([Child('c', sys.argv[1:])], 5).run())"
    )
    command = [sys.executable, "-c", program, *child(tmp_path, "watch").command]
    parent = subprocess.Popen(command)
    try:
        await until(lambda: _many(tmp_path, 1), seconds=30)
    finally:
        parent.kill()
        parent.wait()
    await until(lambda: _goodbye(tmp_path))


async def _many(folder: Path, count: int) -> bool:
    return len(pids(folder)) >= count


async def _goodbye(folder: Path) -> bool:
    return any(folder.glob("goodbye-*"))
