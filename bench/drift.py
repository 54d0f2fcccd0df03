"""`python -m bench.drift`: how late due work starts, with many rows waiting for a far future."""

import argparse

import uvloop

from bench import ours
from bench.cluster import cluster
from bench.figures import show
from bench.peers import bullmq, pgqueuer
from bench.peers.redis import TUNED


async def measure(future: int, due: int, seconds: float) -> None:
    """Measure Imprint, bare PgQueuer's delayed jobs and BullMQ's, one after the other."""
    async with cluster() as postgres:
        pid = postgres.server.pid
        imprint = await ours.drift(await postgres.database("ours"), pid, future, due, seconds)
        bare = await pgqueuer.drift(await postgres.database("bare"), future, due, seconds)
    why = bullmq.available()
    show(imprint, {"pgqueuer": bare, "bullmq": why or await bullmq.drift(future, due, seconds, extra=(TUNED,))})


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.drift", description=__doc__)
    parser.add_argument("--future", type=int, default=100_000, help="rows that are due in a far future")
    parser.add_argument("--due", type=int, default=1000, help="rows that become due")
    parser.add_argument("--seconds", type=float, default=30, help="over how many seconds")
    asked = parser.parse_args()
    uvloop.run(measure(asked.future, asked.due, asked.seconds))


if __name__ == "__main__":
    main()
