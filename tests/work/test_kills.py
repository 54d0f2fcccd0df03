"""kill -9 at each step of an upload and of a derivation: everything completes by itself, and nothing is left over."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from imprint.work.add import add
from imprint.work.backfill import Options, backfill
from imprint.work.orphans import collect
from imprint.work.tend import tend
from tests.images.pictures import plain
from tests.work.scene import OWNER, Scene
from tests.work.test_derive import DONE

HOUR = timedelta(hours=1)


class Mortal:
    """A process that forks others, which die where they are told to."""

    def __init__(self, process: asyncio.subprocess.Process, at: Scene) -> None:
        self._process = process
        self._at = at

    async def do(self, what: str, about: object, fatal: int) -> dict[str, Any]:
        """Let one do something and die at a step; 0: at none."""
        assert self._process.stdin
        assert self._process.stdout
        home = str(self._at.settings.home)
        order = {"do": what, "about": str(about), "fatal": fatal, "url": self._at.database.url, "home": home}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        answer = await asyncio.wait_for(self._process.stdout.readline(), 60)
        found: dict[str, Any] = json.loads(answer)
        assert found["killed"] == (fatal > 0), found
        return found


@pytest.fixture
async def mortal(at: Scene) -> AsyncIterator[Mortal]:
    """Start it, and end it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.work.dies", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    yield Mortal(process, at)
    process.kill()
    await process.wait()


def picture(folder: Path, number: int) -> Path:
    """Make a file that is like no other."""
    path = folder / f"{number}.png"
    path.write_bytes(plain(8, 8, (number % 256, number // 256, 7)).pngsave_buffer())
    return path


async def contents(at: Scene) -> list[UUID]:
    """Give every content there is."""
    async with at.database.connection() as connection:
        return [row[0] for row in await connection.fetch("SELECT id FROM content ORDER BY created_at")]


async def clean(at: Scene, expected: int) -> None:
    """Assert that after a day there are only bytes that rows speak of, and that all of them are right."""
    await collect(at.database, at.stores, at.settings)
    assert len(at.files()) == expected
    report = await backfill(at.database, at.stores, at.settings, Options())
    assert (report.found, report.objects) == (0, expected)


async def test_killed_at_each_step_of_an_upload(at: Scene, mortal: Mortal, tmp_path: Path) -> None:
    """What had come whole is confirmed by the chore; what had not fails, and to add it again goes on with it."""
    steps = (await mortal.do("add", picture(tmp_path, 0), 0))["steps"]
    assert steps >= 12
    ends = {"nothing": 0, "confirmed": 0, "failed": 0}
    for step in range(1, steps + 1):
        before = set(await contents(at))
        file = picture(tmp_path, step)
        await mortal.do("add", file, step)
        await at.pass_time(2 * step * HOUR)
        await tend(at.database, at.stores, at.settings)
        new = set(await contents(at)) - before
        assert len(new) <= 1
        status = (await at.states(next(iter(new))))[0] if new else "nothing"
        assert status in ("nothing", "failed", "uploaded")
        ends["confirmed" if status == "uploaded" else status] += 1
        if status != "uploaded":
            confirmed = await add(at.database, at.stores, at.settings, file, OWNER)
            assert not new or {confirmed.file_id} == new  # the same one, gone on with
    assert all(ends.values()), ends
    added = await contents(at)
    assert len(added) == steps + 1
    assert set(await at.jobs()) == {str(content) for content in added}
    for content in added:
        await at.derive(content)
        assert await at.states(content) == DONE
    await at.pass_time((2 * steps + 48) * HOUR)
    await clean(at, 4 * len(added))


async def test_killed_at_each_step_of_a_derivation(at: Scene, mortal: Mortal, tmp_path: Path) -> None:
    """The next delivery finishes it, whatever was done before; each variant is there once."""
    first = await add(at.database, at.stores, at.settings, picture(tmp_path, 0), OWNER)
    steps = (await mortal.do("derive", first.file_id, 0))["steps"]
    assert steps >= 23
    for step in range(1, steps + 1):
        content = (await add(at.database, at.stores, at.settings, picture(tmp_path, step), OWNER)).file_id
        await mortal.do("derive", content, step)
        assert (await at.states(content))[0] in ("uploaded", "processing", "processed")
        await at.pass_time(step * HOUR)  # its lease is over
        assert str(content) in await at.jobs()
        await at.derive(content)
        assert await at.states(content) == DONE
        async with at.database.connection() as connection:
            assert await connection.fetchval("SELECT max(crashes) FROM derivation WHERE parent_id = $1", content) == 0
    await at.pass_time((steps + 48) * HOUR)
    await clean(at, 4 * (steps + 1))
