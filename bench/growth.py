"""`python -m bench.growth`: what claiming and the clock cost with few and with many publications in the table.

Each statement is timed by itself, as the engine runs it, in a transaction that is taken back, so that every round meets
the same table; the two sizes take turns, so that whatever else the machine does falls on both.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from uuid import UUID

import asyncpg
import uvloop

from bench.cluster import cluster
from bench.machine import machine
from imprint.engine.clock import BATCH, PLAN, Due, timers
from imprint.engine.lease import PUBLICATIONS
from imprint.store.migrate import migrate
from imprint.store.query import Connection, query

SIZES = (10_000, 1_000_000)
ACCOUNTS = 1000
# Of all publications nine tenths are over; of the others all but these few wait for a far future.
DUE = 20
LEASE = timedelta(minutes=1)
CLOCK_DUE = query("clock_publication_due", Due)
ROUNDS = 400
ALLOWED = 1.3


@dataclass(frozen=True)
class Table:
    """A database with so many publications, of which a few are due."""

    connection: Connection
    due: Sequence[UUID]

    async def timed(self, statement: Callable[[], Awaitable[object]]) -> float:
        """Run a statement in a transaction that is taken back, and give its microseconds."""
        transaction = self.connection.transaction()
        await transaction.start()
        try:
            began = time.perf_counter()
            await statement()
            return (time.perf_counter() - began) * 1e6
        finally:
            await transaction.rollback()

    def statements(self, at: int) -> dict[str, Callable[[], Awaitable[object]]]:
        """Give what is measured; round by round another row is claimed."""
        names = [timer.name for timer in timers(3)]
        row = self.due[at % len(self.due)]
        return {
            "claim": lambda: PUBLICATIONS.claim(self.connection, row, LEASE),
            "clock_due": lambda: CLOCK_DUE.all(self.connection, BATCH),
            "clock_plan": lambda: PLAN.all(self.connection, names),
        }


async def growth(urls: Sequence[str], sizes: Sequence[int], rounds: int) -> dict[str, object]:
    """Fill each database and measure them in turns: the medians in microseconds, and how much they grow."""
    tables = [await _filled(url, size) for url, size in zip(urls, sizes, strict=True)]
    try:
        took: list[dict[str, list[float]]] = [{} for _ in tables]
        for at in range(rounds):
            if (
                at % 100 == 0
            ):  # what was taken back leaves dead rows, which autovacuum would collect at a time of its own
                for table in tables:
                    await table.connection.execute("VACUUM publication, post, account")
            for table, times in zip(tables, took, strict=True):
                for name, statement in table.statements(at).items():
                    times.setdefault(name, []).append(await table.timed(statement))
    finally:
        for table in tables:
            await table.connection.close()
    warm = rounds // 10
    medians = [{name: round(median(each[warm:]), 1) for name, each in times.items()} for times in took]
    grown = {name: round(medians[-1][name] / medians[0][name], 2) for name in medians[0]}
    return {
        **{
            f"{size}": {f"{name}_us": value for name, value in each.items()}
            for size, each in zip(sizes, medians, strict=True)
        },
        "ratio": grown,
        "worst_ratio": max(grown.values()),
        "allowed": ALLOWED,
    }


async def _filled(url: str, size: int) -> Table:
    await migrate(url)
    connection = await asyncpg.connect(url)
    await connection.execute("ALTER TABLE publication DISABLE TRIGGER ALL")
    accounts = await connection.fetch(
        "INSERT INTO account (platform, name) SELECT 'bench', i::text FROM generate_series(1, $1::int) i RETURNING id",
        ACCOUNTS,
    )
    await connection.execute(
        """
        WITH p AS (
            INSERT INTO post (title) SELECT 'far' FROM generate_series(1, ($2::int + 9) / 10) RETURNING id
        ), n AS (
            SELECT id, row_number() OVER () AS number FROM p
        )
        INSERT INTO publication (post_id, account_id, status, due_at, remote_id)
        SELECT n.id, ($1::uuid[])[1 + (n.number * 10 + k) % cardinality($1::uuid[])], s.status,
               imprint_now() + CASE s.status WHEN 'success' THEN interval '-1 day' ELSE interval '1 day' END
                   * (1 + 364 * random()),
               CASE s.status WHEN 'success' THEN gen_random_uuid()::text END
        FROM n, generate_series(1, 10) k, LATERAL (SELECT CASE WHEN k = 1 THEN 'pending' ELSE 'success' END AS status) s
        LIMIT $2::int
        """,
        [row["id"] for row in accounts],
        size,
    )
    await connection.execute("ALTER TABLE publication ENABLE TRIGGER ALL")
    async with connection.transaction():
        posts = await connection.fetch("INSERT INTO post SELECT FROM generate_series(1, $1::int) RETURNING id", DUE)
        ids = [row["id"] for row in posts]
        await connection.execute("UPDATE post SET status = 'draft' WHERE id = ANY ($1)", ids)
        due = await connection.fetch(
            "INSERT INTO publication (post_id, account_id, due_at)"
            " SELECT p, a, imprint_now() FROM unnest($1::uuid[], $2::uuid[]) AS u (p, a) RETURNING id",
            ids,
            [row["id"] for row in accounts[:DUE]],
        )
    await connection.execute("VACUUM ANALYZE")
    return Table(connection, [row["id"] for row in due])


async def measure(sizes: Sequence[int], rounds: int) -> None:
    """Measure and print the one JSON object."""
    async with cluster() as postgres:
        urls = [await postgres.database(f"growth_{size}") for size in sizes]
        figures = await growth(urls, sizes, rounds)
    print(json.dumps({"imprint": {"growth": figures}, "machine": await asyncio.to_thread(machine)}, indent=2))


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES, help="how many publications, from few to many")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    uvloop.run(measure(asked.rows, asked.rounds))


if __name__ == "__main__":
    main()
