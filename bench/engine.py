"""`python -m bench.engine`: how fast no-op jobs move through the queue, and how soon one is picked up."""

import argparse

import uvloop

from bench import ours
from bench.cluster import cluster
from bench.figures import show
from bench.peers import bullmq, pgqueuer, procrastinate


async def measure(jobs: int, batch_size: int) -> None:
    """Measure Imprint, bare PgQueuer at the same batch size, Procrastinate and BullMQ, one after the other."""
    async with cluster() as postgres:
        imprint = await ours.engine(await postgres.database("ours"), jobs, batch_size)
        bare = await pgqueuer.engine(await postgres.database("bare"), jobs, batch_size)
        lazy = procrastinate.available() or await procrastinate.engine(await postgres.database("lazy"), jobs)
    why = bullmq.available()
    show(imprint, {"pgqueuer": bare, "procrastinate": lazy, "bullmq": why or await bullmq.engine(jobs)})


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--batch-size", type=int, default=10, help="jobs taken at once, ours and PgQueuer's alike")
    asked = parser.parse_args()
    uvloop.run(measure(asked.jobs, asked.batch_size))


if __name__ == "__main__":
    main()
