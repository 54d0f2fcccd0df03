"""kill -9 at each step of gathering, of sending and of announcing: nothing is lost, nothing is told a third time."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from imprint.store.db import Database
from imprint.work import rule as rules
from imprint.work.notify import LEASE
from tests.work.posts import Author
from tests.work.readers import Readers, readers
from tests.work.serials import OWNER, chapter, take_in
from tests.work.test_announce import Press


class Mortal:
    """A process that forks others, which die where they are told to."""

    def __init__(self, process: asyncio.subprocess.Process, at: Readers) -> None:
        self._process = process
        self._at = at

    async def do(self, what: str, about: object, fatal: int) -> int:
        """Let one do something and die at a step; 0: at none, and how many there are is given."""
        assert self._process.stdin
        assert self._process.stdout
        order = {
            "do": what,
            "about": str(about),
            "fatal": fatal,
            "url": self._at.database.url,
            "home": str(self._at.settings.home),
            "port": self._at.receiver.port,
        }
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await asyncio.wait_for(self._process.stdout.readline(), 60))
        assert answer["killed"] == (fatal > 0), answer
        return int(answer["steps"])


@pytest.fixture
async def at(database: Database, home: Path) -> AsyncIterator[Readers]:
    """Set the scene up."""
    async with readers(database, home) as made:
        yield made


@pytest.fixture
async def mortal(at: Readers) -> AsyncIterator[Mortal]:
    """Start it, and end it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.work.dies_telling", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    yield Mortal(process, at)
    process.kill()
    await process.wait()


async def test_killed_at_each_step_of_gathering(at: Readers, mortal: Mortal) -> None:
    """The next delivery of the job puts every notice into one message."""
    await at.reader()
    await take_in(at.database, at.series, at.source, ["Chapter 1"])
    steps = await mortal.do("notify", at.series, 0)
    assert steps == 3
    for step in range(1, steps + 1):
        await take_in(at.database, at.series, at.source, [f"Chapter {step + 1}"])
        await mortal.do("notify", at.series, step)
        await at.gather()
        assert await at.value("SELECT count(*) FROM delivery_notice") == step + 1
    await at.deliver()
    assert len(at.receiver.heard) == 1


async def test_killed_at_each_step_of_sending(at: Readers, mortal: Mortal) -> None:
    """After the lease it is sent by another; only what died between sending and recording is told twice, never more."""
    await at.reader()
    await at.news("Chapter 0")
    steps = await mortal.do("deliver", (await at.due())[0], 0)
    assert steps == 8
    heard: list[int] = []
    for step in range(1, steps + 1):
        before = len(at.receiver.heard)
        await at.news(f"Chapter {step}")
        (one,) = await at.due()
        await mortal.do("deliver", one, step)
        await at.pass_time(2 * step * LEASE)
        await at.deliver()
        await at.deliver()
        assert await at.value("SELECT outcome FROM delivery WHERE id = $1", one) == "sent"
        heard.append(len(at.receiver.heard) - before)
    # claim: before, in, after; send: before, after; record: before, in, after.
    assert heard == [1, 1, 1, 1, 2, 2, 2, 1]


async def test_killed_at_each_step_of_announcing(at: Readers, mortal: Mortal) -> None:
    """The next delivery of the job makes the post; there is one for each chapter, on one publication each."""
    press = Press(at.database, at.series, at.source)
    account = await Author(at.database, OWNER).account()
    await rules.add(at.database, OWNER, at.series, [account], title="{series} {number}", body="{title}")
    await take_in(at.database, at.series, at.source, [chapter("Chapter 1")])
    steps = await mortal.do("announce", at.series, 0)
    assert steps == 3
    for step in range(1, steps + 1):
        await press.found(f"Chapter {step + 1}")
        await mortal.do("announce", at.series, step)
        assert len(await press.posts()) == step + (step == 3)
        await press.announce()
        assert len(await press.posts()) == step + 1
    assert await at.value("SELECT count(*) FROM publication") == await at.value("SELECT count(*) FROM post") == 4
    assert await at.value("SELECT count(*) FROM announcement") == 4
