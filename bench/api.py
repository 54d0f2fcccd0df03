"""`python -m bench.api`: requests a second and their latency over HTTP, and what a month costs as posts grow.

The server is `imprint api` in a process of its own, on a durable PostgreSQL; sixteen people, each on a connection of
their own, ask from this process, each for their own things. The rows are written by SQL. A month of the calendar shows
as much with few posts as with many, so that only what lies around it grows; the two sizes take turns.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import uvloop

from bench.cluster import DISK, Cluster, cluster
from bench.figures import latency, percentile, show
from imprint.engine.address import address, listen
from imprint.store.db import Database, open_database
from imprint.store.migrate import migrate
from imprint.store.query import Connection
from imprint.work import api_key

PEOPLE = 100
CONNECTIONS = 16
IN_A_MONTH = 100  # of each person
ALLOWED = 1.5
STOPS_WITHIN = 20.0
MONTH = timedelta(days=30)
WRITTEN = {"title": "A lighthouse at dusk", "kind": "article", "body": "Words.", "tags": ["sea", "light"]}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    posts: int
    grown: tuple[int, int]
    requests: int
    rounds: int


FULL = Size(posts=100_000, grown=(10_000, 1_000_000), requests=3200, rounds=5)
QUICK = Size(posts=10_000, grown=(10_000, 100_000), requests=320, rounds=3)


@dataclass(frozen=True)
class Person:
    """Somebody who asks: their key, some posts of theirs, and drafts that wait to be scheduled."""

    key: str
    posts: Sequence[str]
    drafts: list[str]


@dataclass(frozen=True)
class Line:
    """One person on one connection: as little between the bench and the server as can be."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: str
    of: Person

    def request(self, method: str, path: str, body: object = None) -> bytes:
        """Write a request."""
        data = b"" if body is None else json.dumps(body).encode()
        kind = "Content-Type: application/json\r\n" if data else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.of.key}\r\n{kind}"
        return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data

    async def ask(self, request: bytes) -> float:
        """Send a request and read its answer; give the milliseconds between."""
        began = time.perf_counter()
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length:"))
        body = await self.reader.readexactly(length)
        took = (time.perf_counter() - began) * 1000
        if not lines[0].split()[1].startswith("2"):
            raise RuntimeError(f"{request[:80]!r} was refused: {lines[0]} {body[:300]!r}")
        return took


@dataclass(frozen=True)
class Site:
    """A database with so many posts, a server in front of it, and people who ask."""

    url: str
    people: Sequence[Person]
    month: str

    def asks(self) -> dict[str, Callable[[Line, int], bytes]]:
        """Give what is measured; each of them for the things of the person on the line."""
        at = (datetime.now(UTC) + timedelta(days=2)).isoformat()
        return {
            "list": lambda line, _: line.request("GET", "/api/posts?limit=50"),
            "calendar_month": lambda line, _: line.request("GET", self.month),
            "get": lambda line, number: line.request("GET", f"/api/posts/{line.of.posts[number % len(line.of.posts)]}"),
            "create": lambda line, _: line.request("POST", "/api/posts", WRITTEN),
            "schedule": lambda line, _: line.request(
                "POST", f"/api/posts/{line.of.drafts.pop()}/schedule", {"at": at, "zone": "UTC"}
            ),
        }

    async def measured(self, name: str, requests: int) -> tuple[float, list[float]]:
        """Let everybody ask at once, each again as soon as the answer is there: the seconds, and what each took."""
        ask, each = self.asks()[name], max(requests // len(self.people), 1)

        async def run(line: Line) -> list[float]:
            return [await line.ask(ask(line, number)) for number in range(each)]

        lines = [await self._line(person) for person in self.people]
        try:
            began = time.perf_counter()
            took = await asyncio.gather(*(run(line) for line in lines))
            return time.perf_counter() - began, [one for line in took for one in line]
        finally:
            for line in lines:
                line.writer.close()

    async def _line(self, person: Person) -> Line:
        at = urlsplit(self.url)
        return Line(*await asyncio.open_connection(at.hostname, at.port), at.netloc, person)


@asynccontextmanager
async def site(postgres: Cluster, name: str, posts: int, drafts: int) -> AsyncIterator[Site]:
    """Fill a database, start a server on it, and connect."""
    url = await postgres.database(name)
    await migrate(url)
    home = Path(tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK))
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        first = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
        connection = await asyncpg.connect(url)
        try:
            await fill(connection, posts, drafts, first)
            async with open_database(url, size=2) as database:
                people = [await _person(database, connection, number) for number in range(CONNECTIONS)]
        finally:
            await connection.close()
        opened = stack.enter_context(listen("127.0.0.1", 0))
        await stack.enter_async_context(_server(opened.fileno(), url, home))
        span = [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in (first, first + MONTH)]
        yield Site(address(opened), people, f"/api/calendar?from={span[0]}&until={span[1]}")


async def fill(connection: Connection, posts: int, drafts: int, first: datetime) -> None:
    """Write people, accounts, posts and publications: a month that is full, and all others before it."""
    for table in ("person", "account", "post", "publication"):
        await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    await connection.execute(
        "INSERT INTO person (id, name, password_hash, role)"
        " SELECT 'p' || n, 'person ' || n, '$argon2id$none', 'member' FROM generate_series(0, $1::int - 1) n",
        PEOPLE,
    )
    await connection.execute(
        "INSERT INTO account (platform, name, label, owner, is_default)"
        " SELECT 'folder', 'a' || k, 'a' || k, 'p' || n, k = 1"
        " FROM generate_series(0, $1::int - 1) n, generate_series(1, 2) k",
        PEOPLE,
    )
    await connection.execute(
        """
        INSERT INTO post (title, kind, body, owner, status, created_at)
        SELECT 'Harbour ' || n, 'article', 'Words.', 'p' || n % $2::int,
            CASE WHEN n / $2 < $3::int THEN 'scheduled' WHEN n < $1::int THEN 'published' ELSE 'draft' END,
            imprint_now() - n * interval '1 s'
        FROM generate_series(0, $1 + $4::int * $2 - 1) n
        """,
        posts,
        PEOPLE,
        IN_A_MONTH,
        drafts,
    )
    await connection.execute(
        """
        INSERT INTO publication (post_id, account_id, status, due_at, scheduled_at, zone, remote_id, published_at)
        SELECT p.id, a.ids[1 + p.number % 2], CASE p.status WHEN 'scheduled' THEN 'pending' ELSE 'success' END,
            t.at, t.at, 'UTC', CASE p.status WHEN 'published' THEN p.number::text END,
            CASE p.status WHEN 'published' THEN t.at END
        FROM (SELECT id, owner, status, row_number() OVER (PARTITION BY owner, status) AS number
              FROM post WHERE status IN ('scheduled', 'published')) p
        JOIN (SELECT owner, array_agg(id) AS ids FROM account GROUP BY owner) a USING (owner)
        CROSS JOIN LATERAL (SELECT CASE p.status
            WHEN 'scheduled' THEN $1::timestamptz + p.number * $2::interval / ($3::int + 1)
            ELSE $1 - interval '2 days' - p.number * interval '1 hour' END AS at) t
        """,
        first,
        MONTH,
        IN_A_MONTH,
    )
    for table in ("person", "account", "post", "publication"):
        await connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")


async def _person(database: Database, connection: Connection, number: int) -> Person:
    person = f"p{number}"
    made = await api_key.add(database, person, person, "bench", ["posts:read", "posts:write"])
    posts = "SELECT id::text FROM post WHERE owner = $1 AND status = $2 ORDER BY created_at DESC LIMIT $3"
    ours = [row[0] for row in await connection.fetch(posts, person, "scheduled", 100)]
    return Person(made.secret, ours, [row[0] for row in await connection.fetch(posts, person, "draft", 1_000_000)])


@asynccontextmanager
async def _server(fd: int, url: str, home: Path) -> AsyncIterator[None]:
    """Run `imprint api` on an open socket inside the block."""
    ours = {"IMPRINT_HOME": str(home), "IMPRINT_DATABASE_URL": url, "IMPRINT_LOG_LEVEL": "error"}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "imprint", "api", "--fd", str(fd), "--until-stdin-closes"),
        env={**{name: value for name, value in os.environ.items() if not name.startswith("IMPRINT_")}, **ours},
        stdin=asyncio.subprocess.PIPE,
        pass_fds=[fd],
        start_new_session=True,
    )
    try:
        yield
    finally:
        if child.returncode is None:
            child.terminate()
        try:
            await asyncio.wait_for(child.wait(), STOPS_WITHIN)
        except TimeoutError:
            child.kill()


async def routes(postgres: Cluster, size: Size) -> dict[str, object]:
    """Measure each route with so many posts: requests a second in the middle round, and the latency of all."""
    figures: dict[str, object] = {"posts": size.posts, "people": PEOPLE, "connections": CONNECTIONS}
    drafts = 1 + (size.requests // CONNECTIONS + 1) * (size.rounds + 1)
    async with site(postgres, "routes", size.posts, drafts) as there:
        for name in there.asks():
            await there.measured(name, CONNECTIONS)  # the house is built, the plans are made
            rounds = [await there.measured(name, size.requests) for _ in range(size.rounds)]
            rates = sorted(len(took) / seconds for seconds, took in rounds)
            figures[f"{name}_per_s"] = round(rates[len(rates) // 2])
            figures.update(latency([one for _, took in rounds for one in took], f"{name}_"))
    return figures


async def growth(postgres: Cluster, size: Size) -> dict[str, object]:
    """Measure a month with few posts and with many, in turns."""
    async with AsyncExitStack() as stack:
        sites = [await stack.enter_async_context(site(postgres, f"posts_{posts}", posts, 0)) for posts in size.grown]
        for there in sites:
            await there.measured("calendar_month", CONNECTIONS * 10)
        took: list[list[float]] = [[] for _ in sites]
        for _ in range(size.rounds * 2):
            for there, times in zip(sites, took, strict=True):
                times.extend((await there.measured("calendar_month", size.requests))[1])
    p99 = [percentile(times, 0.99) for times in took]
    return {
        **{f"{posts}": latency(times) for posts, times in zip(size.grown, took, strict=True)},
        "p99_ratio": round(p99[1] / p99[0], 2),
        "allowed": ALLOWED,
    }


async def measure(size: Size) -> None:
    """Measure, and print the one JSON object."""
    async with cluster() as postgres:
        figures = await routes(postgres, size)
        figures["calendar_growth"] = await growth(postgres, size)
    show(figures, {})


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.api", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer posts and fewer rounds: to see that it works")
    uvloop.run(measure(QUICK if parser.parse_args().quick else FULL))


if __name__ == "__main__":
    main()
