"""`python -m bench.sign_in`: whether the time of a wrong sign-in tells if there is such a name."""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.figures import show
from imprint import log
from imprint.problem import Problem
from imprint.store.db import open_database
from imprint.store.embedded import running
from imprint.store.migrate import migrate
from imprint.store.wall import DOOR, raised
from imprint.work import first_code, person, session

PASSWORD = "correct horse battery staple"  # noqa: S105 - of a person who lives as long as this


async def measure(pairs: int) -> None:
    """Try a known and an unknown name by turns, in an order of chance, and print the medians."""
    log.configure("json", "error")  # a figure alone is printed
    with tempfile.TemporaryDirectory(prefix="imprint-bench-") as folder:
        Path(folder).chmod(0o711)
        async with running(Path(folder)) as server:
            await migrate(server.url)
            async with open_database(server.url) as database:
                async with database.connection() as connection:
                    await raised(connection)
                    code = await first_code.required(connection)
                await person.first(database, code, "ada", PASSWORD)
                at_the_door = database.behind(DOOR)
                took: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
                for number in range(-5, pairs):
                    order = random.sample([True, False], 2)
                    for known in order:
                        async with database.connection() as connection:  # what is measured is not the limit
                            await connection.execute("DELETE FROM sign_in_limit")
                        began, worked = time.perf_counter(), time.process_time()
                        try:
                            name = "ada" if known else f"bob{number}"
                            await session.sign_in(at_the_door, name, "wrong wrong wrong", address="203.0.113.1")
                        except Problem:
                            pass
                        if number >= 0:  # the first few warm everything up
                            took[known].append((time.perf_counter() - began, time.process_time() - worked))
    wall = {known: median(each[0] for each in took[known]) * 1000 for known in took}
    work = {known: median(each[1] for each in took[known]) * 1000 for known in took}
    paired = median((a[0] - b[0]) * 1000 for a, b in zip(took[True], took[False], strict=True))
    show(
        {
            "known_ms": round(wall[True], 2),
            "unknown_ms": round(wall[False], 2),
            "apart_percent": round(abs(wall[True] - wall[False]) / wall[False] * 100, 2),
            "paired_ms": round(paired, 3),
            "known_cpu_ms": round(work[True], 2),
            "unknown_cpu_ms": round(work[False], 2),
            "cpu_apart_percent": round(abs(work[True] - work[False]) / work[False] * 100, 2),
            "pairs": pairs,
        },
        {},
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    asyncio.run(measure(parser.parse_args().pairs))
