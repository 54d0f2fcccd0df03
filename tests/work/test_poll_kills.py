"""kill -9 at each step of a poll and of what it takes in: the next poll completes it, and nobody is told twice."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from imprint.engine.clock import timers
from imprint.store.db import Database
from tests.work.serials import Serials, a_world, add_series, follow

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def mortal() -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a process that forks others, which die where they are told to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.work.poll_dies", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    yield process
    process.kill()
    await process.wait()


async def polled(mortal: asyncio.subprocess.Process, serial: Serials, source: UUID, fatal: int) -> dict[str, Any]:
    """Let one poll a source that is due, and die at a step; 0: at none."""
    async with serial.database.connection() as connection:
        await connection.execute("UPDATE source SET next_check_at = imprint_now(), held_until = NULL")
    home, url = str(serial.settings.home), serial.database.url
    order = {"about": str(source), "fatal": fatal, "url": url, "home": home, "base": serial.url}
    assert mortal.stdin
    assert mortal.stdout
    mortal.stdin.write(json.dumps(order).encode() + b"\n")
    found: dict[str, Any] = json.loads(await asyncio.wait_for(mortal.stdout.readline(), 60))
    assert found["killed"] == (fatal > 0), found
    return found


async def test_killed_at_each_step_of_a_poll(
    database: Database, home: Path, mortal: asyncio.subprocess.Process
) -> None:
    """Whatever was done before, each new chapter is there once and each follower is told of it once."""
    async with a_world(database, home) as serial:
        grown = serial.world.add("A", 3)
        async with database.connection() as connection:
            series = await add_series(connection)
            await follow(connection, series, "one", "two")
        source = await serial.add(grown, to=series)
        await serial.poll(source)
        serial.world.publish(grown, "4")
        steps = (await polled(mortal, serial, source, 0))["steps"]
        assert steps >= 25
        lost = next(each for each in timers(3) if each.name == "source_lost")
        ends = {"before": 0, "leased": 0, "done": 0}
        for step in range(1, steps + 1):
            number = 4 + step
            serial.world.publish(grown, str(number))
            await polled(mortal, serial, source, step)
            there = await serial.value("SELECT count(*) FROM chapter WHERE number = $1", number)
            told = await serial.value("SELECT count(*) FROM notice")
            assert told == 2 * (there + step)  # all or nothing
            leased = (await serial.row(source))["lease_until"] is not None
            ends["done" if there else "leased" if leased else "before"] += 1
            assert not (there and leased)
            await serial.pass_time(step * 3 * MINUTE)
            async with database.connection() as connection:
                assert len(await lost.fire(connection)) == int(leased)
                await connection.execute("UPDATE source SET next_check_at = imprint_now(), held_until = NULL")
            await serial.poll(source)
            assert await serial.value("SELECT count(*) FROM chapter WHERE number = $1", number) == 1
            assert await serial.value("SELECT count(*) FROM notice") == 2 * (1 + step)
            row = await serial.row(source)
            assert (row["crashes"], row["status"], row["lease_until"]) == (0, "active", None)
        assert all(ends.values()), ends
        assert await serial.value("SELECT count(*) FROM release") == 4 + steps
        assert await serial.value("SELECT latest_chapter FROM series") == 4 + steps
