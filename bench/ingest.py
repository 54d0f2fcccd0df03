"""`python -m bench.ingest`: how fast chapters, notices and polls get into the database, beside the seed's way.

The seed's way is two upserts a chapter, one by one, each committed by itself, on the same tables in the same run; its
batch, the same upserts in one transaction, is measured as well. Both do less than we do: they tell nobody.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import UUID

import uvicorn
import uvloop

from bench.cluster import DISK, Cluster, cluster
from bench.machine import machine
from imprint import log
from imprint.decisions.chapter_number import ChapterNumber, Kind
from imprint.engine.clock import Clock, timers
from imprint.engine.queue import Entrypoint, Queue
from imprint.sandbox.serial_world import World
from imprint.sandbox.serials import serials
from imprint.settings import load
from imprint.sources.contract import Chapter, Fetched
from imprint.store.db import Database, open_database
from imprint.store.migrate import migrate
from imprint.store.query import Link
from imprint.work.ingest import Carrier, ingest
from imprint.work.poll import ATTEMPTS, Poller

HOSTS = [f"127.0.0.{at}" for at in range(1, 6)]  # one poll at a time of each, as of any host
ITEMS = 20
GROWN = 100  # chapters a poll, where the cost per chapter is compared
CHAPTER = """
    INSERT INTO chapter (series_id, slug, kind, number, silent) VALUES ($1, $2, 'chapter', $3, false)
    ON CONFLICT (series_id, slug) DO UPDATE SET title = chapter.title RETURNING id"""
RELEASE = """
    INSERT INTO release (source_id, own_id, chapter_id, url, published_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (source_id, own_id) DO UPDATE SET seen_at = imprint_now(), url = excluded.url"""


def chapters(first: int, count: int) -> tuple[Chapter, ...]:
    """Make chapters as a source gives them."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return tuple(
        Chapter(
            f"0e3b4f8a-0000-4000-8000-{number:012}",
            ChapterNumber(Kind.CHAPTER, str(number), Decimal(number)),
            url=f"https://reader.example/chapter/{number}",
            language="en",
            group="A group",
            published_at=at + timedelta(minutes=number),
        )
        for number in range(first, first + count)
    )


async def scene(connection: Link, name: str) -> tuple[UUID, UUID]:
    """Add a series and a source of it."""
    series = await connection.fetchval("INSERT INTO series (title) VALUES ($1) RETURNING id", name)
    source = await connection.fetchval(
        "INSERT INTO source (name, series_id, kind, ref, host, next_check_at)"
        " VALUES ($1, $2, 'feed', 'https://' || $1, $1, imprint_now() + interval '1 day') RETURNING id",
        name,
        series,
    )
    return series, source


async def set_based(database: Database, series: UUID, source: UUID, given: Sequence[Chapter]) -> None:
    """Take a poll's chapters in as a worker does."""
    async with database.transaction("bench") as connection:
        done = await ingest(connection, Carrier(source, series, first=False), Fetched(tuple(given)))
    if done.taken.chapters != len(given):
        raise RuntimeError(f"not all were new: {done}")


async def one_by_one(database: Database, series: UUID, source: UUID, given: Sequence[Chapter]) -> None:
    """Take a poll's chapters in as the seed does."""
    for each in given:  # there each chapter is a job of its own
        async with database.connection() as connection:
            await _upserts(connection, series, source, [each])


async def one_transaction(database: Database, series: UUID, source: UUID, given: Sequence[Chapter]) -> None:
    """Take a poll's chapters in as the seed's batch does."""
    async with database.connection() as connection, connection.transaction():
        await _upserts(connection, series, source, given)


async def _upserts(connection: Link, series: UUID, source: UUID, given: Sequence[Chapter]) -> None:
    for each in given:
        row = await connection.fetchval(CHAPTER, series, each.number.slug, each.number.number)
        await connection.execute(RELEASE, source, each.id, row, each.url, each.published_at)


Way = Callable[[Database, UUID, UUID, Sequence[Chapter]], Awaitable[None]]


async def rates(database: Database, sizes: Sequence[int], rounds: Callable[[int], int]) -> dict[str, dict[str, float]]:
    """Measure chapters a second of each way at each size; the ways take turns, so that the machine is fair to all."""
    ways: dict[str, Way] = {"ours": set_based, "one_by_one": one_by_one, "one_transaction": one_transaction}
    found: dict[str, dict[str, float]] = {name: {} for name in ways}
    for size in sizes:
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds(size)):
            for name, way in ways.items():
                async with database.connection() as connection:
                    series, source = await scene(connection, f"{name}-{size}-{turn}")
                given = chapters(1, size)
                began = perf_counter()
                await way(database, series, source, given)
                seconds[name].append(perf_counter() - began)
        for name in ways:
            found[name][str(size)] = round(size / median(seconds[name]), 1)
    return found


async def fill(database: Database, count: int) -> list[tuple[UUID, UUID]]:
    """Store so many chapters of many series, and give the series and sources."""
    async with database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO series (title, latest_chapter) SELECT 's' || n, 100 FROM generate_series(1, $1::integer) n
            """,
            max(1, count // 100),
        )
        await connection.execute("""
            INSERT INTO source (name, series_id, kind, ref, host, next_check_at)
            SELECT title, id, 'feed', 'https://' || title, title, imprint_now() + interval '1 day' FROM series;
            INSERT INTO chapter (series_id, slug, kind, number, silent)
            SELECT id, n::text, 'chapter', n, true FROM series, generate_series(1, 100) n;
            INSERT INTO release (source_id, own_id, chapter_id, url, language, group_name, published_at)
            SELECT s.id, '0e3b4f8a-0000-4000-8000-' || lpad(c.slug, 12, '0'), c.id,
                   'https://reader.example/chapter/' || c.slug, 'en', 'A group', imprint_now()
            FROM chapter c JOIN source s ON s.series_id = c.series_id""")
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
        rows = await connection.fetch("SELECT series_id, id FROM source ORDER BY md5(name)")
    return [(row[0], row[1]) for row in rows]


async def growth(postgres: Cluster, sizes: Sequence[int], rounds: int) -> dict[str, object]:
    """Compare what a chapter costs with few and with many stored; the sizes take turns."""
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    places: dict[int, list[tuple[UUID, UUID]]] = {}
    async with AsyncExitStack() as stack:
        opened: dict[int, Database] = {}
        for size in sizes:
            url = await postgres.database(f"grown_{size}")
            await migrate(url)
            opened[size] = await stack.enter_async_context(open_database(url, size=2))
            places[size] = await fill(opened[size], size)
        for turn in range(rounds):
            for size, database in opened.items():
                series, source = places[size][turn % len(places[size])]
                given = chapters(1000 + GROWN * (turn // len(places[size])), GROWN)
                began = perf_counter()
                await set_based(database, series, source, given)
                seconds[size].append(perf_counter() - began)
    cost = {size: median(each) / GROWN * 1e6 for size, each in seconds.items()}
    return {
        "us_per_chapter": {str(size): round(each, 1) for size, each in cost.items()},
        "cost_growth": round(cost[sizes[-1]] / cost[sizes[0]], 2),
    }


async def notices(database: Database, followers: int, rounds: int) -> dict[str, object]:
    """Measure notices a second when a series with many followers has a new chapter."""
    async with database.connection() as connection:
        series, source = await scene(connection, "followed")
        await connection.execute(
            "INSERT INTO follow (person, series_id) SELECT 'person ' || n, $1 FROM generate_series(1, $2::integer) n",
            series,
            followers,
        )
        await connection.execute("ANALYZE follow")
    seconds = []
    for turn in range(rounds):
        began = perf_counter()
        await set_based(database, series, source, chapters(1 + turn, 1))
        seconds.append(perf_counter() - began)
    return {"followers": followers, "notices_per_s": round(followers / median(seconds))}


async def polls(url: str, home: Path, count: int) -> dict[str, object]:
    """Let a clock and a queue, as a worker has them, ask sources that are all due, and count polls a second."""
    log.configure("json", "error")
    settings = load({"IMPRINT_HOME": str(home), "IMPRINT_ALLOWED_HOSTS": " ".join(HOSTS), "IMPRINT_FETCH_GAP_MS": "1"})
    with _served() as port:
        async with open_database(url) as database:
            async with database.connection() as connection:
                for at in range(count):
                    host, series = HOSTS[at % len(HOSTS)], at % 50 + 1
                    row = await connection.fetchval("INSERT INTO series (title) VALUES ('polled') RETURNING id")
                    await connection.execute(
                        "INSERT INTO source (name, series_id, kind, ref, host, next_check_at)"
                        " VALUES ('polled', $1, 'feed', $2, $3, imprint_now() + interval '1 hour')",
                        row,
                        f"http://{host}:{port}/feeds/{series}.rss?{at}",
                        host,
                    )
            poller = Poller.of(database, settings)
            poll = Entrypoint("poll", poller.poll, settings.polls_at_once, ATTEMPTS, timedelta(minutes=1))
            stop = asyncio.Event()
            running = [
                asyncio.create_task(Queue(url, [poll], concurrency=20, grace_seconds=5).run(stop)),
                asyncio.create_task(Clock(url, timers(3), ["poll"]).run(stop)),
            ]
            try:
                async with database.connection() as connection:
                    await asyncio.sleep(1)  # the worker is up
                    began = perf_counter()
                    await connection.execute("UPDATE source SET next_check_at = imprint_now() WHERE name = 'polled'")
                    left = "SELECT count(*) FROM source WHERE name = 'polled' AND last_worked_at IS NULL"
                    while await connection.fetchval(left):  # noqa: ASYNC110 - a look at the database, as anybody has it
                        await asyncio.sleep(0.02)
                    seconds = perf_counter() - began
            finally:
                stop.set()
                await asyncio.gather(*running)
                await poller.fetcher.close()
    return {
        "sources": count,
        "hosts": len(HOSTS),
        "chapters_each": ITEMS,
        "polls_at_once": settings.polls_at_once,
        "polls_per_s": round(count / seconds, 1),
    }


class _served:  # noqa: N801 - used as a function
    """Simulated feeds in a process of their own."""

    def __enter__(self) -> int:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.ingest", "--serve"], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )
        assert self._process.stdout  # noqa: S101 - it is a pipe
        return int(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


async def serve() -> None:
    """Serve simulated feeds on every host until standard input ends."""
    world = World()
    for at in range(50):
        world.add(f"Series {at}", ITEMS)
    sockets, port = [], 0
    for host in HOSTS:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind((host, port))
        listening.listen(512)
        port = listening.getsockname()[1]
        sockets.append(listening)
    server = uvicorn.Server(uvicorn.Config(serials(world), log_config=None, access_log=False, lifespan="off"))
    print(port, flush=True)
    with suppress(asyncio.CancelledError):
        await server.serve(sockets=sockets)


async def measure(*, quick: bool) -> None:
    """Measure everything, one after the other."""
    sizes = [1, 100, 1000] if quick else [1, 100, 10_000]
    turns = {1: 50, 100: 5} if quick else {1: 300, 100: 30}
    large, followers, asked = (50_000, 10_000, 100) if quick else (1_000_000, 100_000, 1000)
    home = Path(tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK))
    async with cluster() as postgres:
        url = await postgres.database("ingest")
        await migrate(url)
        async with open_database(url, size=2) as database:
            await rates(database, [100], lambda _: 3)  # warm
            found = await rates(database, sizes, lambda size: turns.get(size, 3))
            told = await notices(database, followers, 3 if quick else 5)
        grown = await growth(postgres, [1000, large // 20, large], 40 if quick else 200)
        polled_url = await postgres.database("polls")
        await migrate(polled_url)
        polled = await polls(polled_url, home, asked)
    home.rmdir() if not any(home.iterdir()) else None
    ours = found.pop("ours")
    ratios = {name: {size: round(ours[size] / each[size], 1) for size in each} for name, each in found.items()}
    result = {
        "imprint": {"chapters_per_s": ours, **told, **grown, **polled},
        **{name: {"chapters_per_s": each} for name, each in found.items()},
        "ratio": ratios,
        "machine": machine(),
    }
    print(json.dumps(result, indent=2))


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.ingest", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, in a few seconds")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    uvloop.run(serve() if asked.serve else measure(quick=asked.quick))


if __name__ == "__main__":
    main()
