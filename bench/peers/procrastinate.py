"""Procrastinate (Python, PostgreSQL) as a peer: our own small script drives it, in a process with its own packages."""

import asyncio
import json
import os
import sys
from pathlib import Path

from bench.figures import ROUNDS, latency, rate
from bench.pickup import GAP_MS, PICKUPS

SCRIPT = Path(__file__).parent / "procrastinating.py"
FOLDER = Path(__file__).parents[1] / ".peers" / "procrastinate"
PINS = ("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.8")
# As many as PgQueuer takes at once; its default is 1.
CONCURRENCY = 10
GIVES_UP = 120.0
SLOWEST_PER_S = 100


def available() -> str | None:
    """Say that it is missing, or None when it can be measured."""
    return None if (FOLDER / "procrastinate").is_dir() else "not installed: Procrastinate (make bench-peers)"


async def install() -> None:
    """Install the pinned versions into a folder of their own."""
    FOLDER.parent.mkdir(exist_ok=True)
    (FOLDER.parent / ".gitignore").write_text("*\n")  # what is installed there is nobody's source
    pip = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"),
        *("--target", str(FOLDER), *PINS),
    )
    if await pip.wait() != 0:
        raise RuntimeError("pip could not install Procrastinate; what it said stands above")


async def engine(dsn: str, jobs: int, concurrency: int = CONCURRENCY) -> dict[str, object]:
    """Measure how many no-op jobs a second are deferred and drained, and how soon an idle worker picks one up."""
    asked = {"dsn": dsn, "jobs": jobs, "rounds": ROUNDS, "concurrency": concurrency}
    asked |= {"pickups": PICKUPS, "gap_ms": GAP_MS}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(SCRIPT)),  # or the module beside it would be taken for the package
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(GIVES_UP + ROUNDS * jobs / SLOWEST_PER_S):
            answer, _ = await process.communicate(json.dumps(asked).encode() + b"\n")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError("Procrastinate could not be measured; what it said stands above")
    said = json.loads(answer)
    return {
        **rate(jobs, said["enqueue_s"], "enqueue"),
        **rate(jobs, said["drain_s"], "drain"),
        **latency(said["pickup_ms"], "pickup_"),
        "concurrency": concurrency,
        "version": said["version"],
    }
