"""Content as a person lives with it: files are added on the command line, and their variants are there."""

import json
from pathlib import Path

import psutil

from imprint.problem import Exit
from tests.images.pictures import noise
from tests.journeys.test_up import Up, alive, up
from tests.waiting import until


def pictures(folder: Path, count: int) -> list[str]:
    """Make photographs of some size."""
    files = [folder / f"{number}.jpg" for number in range(count)]
    for number, file in enumerate(files):
        file.write_bytes(noise(900, 700, seed=number * 10 + 1).jpegsave_buffer())
    return [str(file) for file in files]


def counts(it: Up) -> dict[str, int]:
    """Count the contents in each state."""
    found: dict[str, int] = json.loads(it.command("content", "list", "--json").stdout)["counts"]
    return found


async def test_added_on_the_command_line_and_made_by_a_worker(home: Path, tmp_path: Path) -> None:
    """Add, wait, get a thumbnail; verify everything; delete. Nothing is left behind when it stops."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        added = json.loads(it.command("content", "add", *pictures(tmp_path, 3), "--json").stdout)
        assert [each["status"] for each in added] == ["uploaded"] * 3

        async def made() -> bool:
            return counts(it) == {"processed": 3}

        await until(made, seconds=60)
        which = added[0]["fileId"]
        got = it.command("content", "get", which, "--variant", "thumbnail", "--to", str(tmp_path / "t.webp"))
        assert got.returncode == Exit.OK, got.stderr
        assert (tmp_path / "t.webp").read_bytes()[8:12] == b"WEBP"
        report = json.loads(it.command("backfill", "--json").stdout)
        assert (report["contents"], report["objects"], report["found"]) == (3, 12, 0)
        assert it.command("content", "delete", which).returncode == Exit.OK
        assert counts(it) == {"processed": 2}
        bad = [f for f in json.loads(it.command("doctor", "--json").stdout) if f["level"] == "bad"]
        assert bad == []
        family = psutil.Process(it.process.pid).children(recursive=True)
        it.process.terminate()
        assert it.process.wait(30) == 0

        async def gone() -> bool:
            return not [p for p in family if alive(p)]

        await until(gone)


async def test_a_worker_that_is_killed_in_the_middle(home: Path, tmp_path: Path) -> None:
    """Kill -9 while variants are being made: another worker finishes all of them, and every byte is right."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        it.command("content", "add", *pictures(tmp_path, 12))

        async def begun() -> bool:
            return counts(it).get("processed", 0) > 0

        await until(begun, seconds=60)
        for worker in it.children("imprint worker"):
            worker.kill()

        async def made() -> bool:
            return counts(it) == {"processed": 12}

        await until(made, seconds=120)
        report = json.loads(it.command("backfill", "--json").stdout)
        assert (report["objects"], report["found"]) == (48, 0)
