"""`python -m bench.peers`: install the peers, or measure them alone."""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys

import uvloop

from bench.cluster import cluster
from bench.machine import machine
from bench.peers import bullmq, imaging, pgqueuer, procrastinate
from bench.peers.redis import DURABLE, TUNED, installed


async def install() -> None:
    """Install what is missing, each into a folder of its own, and say what is there; one that fails stops no other."""
    await _redis()
    for peer in (procrastinate.install, bullmq.install, imaging.install):
        try:
            await peer()
        except RuntimeError as problem:
            print(problem)
    for name, why in {
        "procrastinate": procrastinate.available(),
        "bullmq": bullmq.available(),
        "pgqueuer": None,
    }.items():
        print(f"{name}: {why or 'ready'}")


async def _redis() -> None:
    """Let the system install Redis where that is possible without being asked for a password."""
    if not installed() and shutil.which("apt-get") and os.geteuid() == 0:
        apt = await asyncio.create_subprocess_exec(
            *("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "redis-server"),
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdout=asyncio.subprocess.DEVNULL,
        )
        await apt.wait()


async def drift(future: int, due: int, seconds: float) -> None:
    """Print how late every peer starts delayed jobs."""
    async with cluster() as postgres:
        bare = await pgqueuer.drift(await postgres.database("drift"), future, due, seconds)
    why = bullmq.available()
    node = why or await bullmq.drift(future, due, seconds, extra=(TUNED, DURABLE))
    print(json.dumps({"pgqueuer": bare, "bullmq": node, "machine": machine()}, indent=2))


async def engine(jobs: int, batch_size: int) -> None:
    """Print how fast every peer moves no-op jobs."""
    async with cluster() as postgres:
        bare = await pgqueuer.engine(await postgres.database("engine"), jobs, batch_size)
    why = bullmq.available()
    node = why or await bullmq.engine(jobs)
    print(json.dumps({"pgqueuer": bare, "bullmq": node, "machine": machine()}, indent=2))


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("install", help="install the peers (what happens when nothing is said)")
    late = commands.add_parser("drift", help="how late do delayed jobs start?")
    late.add_argument("--future", type=int, default=100_000, help="far-future jobs in the same queue")
    late.add_argument("--due", type=int, default=1000, help="jobs that become due")
    late.add_argument("--seconds", type=float, default=30, help="over how many seconds")
    fast = commands.add_parser("engine", help="how fast do no-op jobs move?")
    fast.add_argument("--jobs", type=int, default=10_000)
    fast.add_argument("--batch-size", type=int, default=pgqueuer.BATCH_SIZE, help="PgQueuer's")
    asked = parser.parse_args()
    match asked.command:
        case "drift":
            work = drift(asked.future, asked.due, asked.seconds)
        case "engine":
            work = engine(asked.jobs, asked.batch_size)
        case _:
            work = install()
    # Servers we started are stopped on the way out, so a SIGTERM must be a way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    try:
        uvloop.run(work)
    except RuntimeError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
