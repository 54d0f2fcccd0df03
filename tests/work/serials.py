"""A scene for tests of series: a world of simulated sources, a poller, and time that can be moved."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from imprint.decisions.chapter_number import from_name
from imprint.engine.queue import Job
from imprint.sandbox.serial_world import Series, World
from imprint.sandbox.serials import serials, serving
from imprint.settings import Settings, load
from imprint.sources.contract import Chapter, Fetched
from imprint.store.db import Database
from imprint.store.query import Link
from imprint.work.ingest import Carrier, Ingested, ingest
from imprint.work.poll import Polled, Poller
from tests.work.reconnecting import reconnect

OWNER = "operator"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Serials:
    """A database, a world behind it, and whoever asks that world."""

    database: Database
    settings: Settings
    poller: Poller
    world: World
    url: str
    hosts: int = 0

    async def add(self, series: Series, kind: str = "rss", *, to: UUID | None = None, alone: bool = False) -> UUID:
        """Add a source of a series in the world; alone: as if its host were its own."""
        refs = {"mangadex": series.id, "mangapark": str(series.serial)}
        place = ("feed", f"{self.url}/feeds/{series.serial}.{kind}") if kind not in refs else (kind, refs[kind])
        async with self.database.connection() as connection:
            of = to or await add_series(connection, series.title)
            self.hosts += 1
            host = f"host-{self.hosts}" if alone else "127.0.0.1"
            return await add_source(connection, of, *place, host=host)

    async def poll(self, source: UUID, failures: int = 0) -> None:
        """Let a worker ask a source that was handed over."""
        await self.poller.poll(Job("poll", str(source), failures))

    async def now(self, source: UUID) -> Polled:
        """Ask a source now."""
        return await self.poller.now(source)

    async def row(self, source: UUID) -> dict[str, Any]:
        """Give the row of a source."""
        return await self.one("SELECT * FROM source WHERE id = $1", source)

    async def one(self, sql: str, *values: object) -> dict[str, Any]:
        """Give one row."""
        async with self.database.connection() as connection:
            return dict(await connection.fetchrow(sql, *values) or {})

    async def value(self, sql: str, *values: object) -> Any:
        """Give one value."""
        async with self.database.connection() as connection:
            return await connection.fetchval(sql, *values)

    async def pass_time(self, ahead: timedelta) -> None:
        """Move the database's clock to so far ahead of the real one."""
        async with self.database.connection() as connection:
            name = await connection.fetchval("SELECT current_database()")
            await connection.execute(f"ALTER DATABASE {name} SET imprint.clock_offset = '{ahead.total_seconds()} s'")
        await reconnect(self.database)

    async def jobs(self, entrypoint: str) -> list[str]:
        """List the jobs of a kind that wait."""
        async with self.database.connection() as connection:
            rows = await connection.fetch("SELECT payload FROM pgqueuer WHERE entrypoint = $1 ORDER BY id", entrypoint)
            return [row[0].decode() for row in rows]


def settings_for(url: str, home: Path, **more: str) -> Settings:
    """Make settings that let the sandbox be asked, and fast."""
    given = {
        "IMPRINT_HOME": str(home),
        "IMPRINT_ALLOWED_HOSTS": "127.0.0.1",
        "IMPRINT_MANGADEX_BASE": f"{url}/mangadex",
        "IMPRINT_MANGAPARK_BASE": f"{url}/mangapark",
        "IMPRINT_FETCH_GAP_MS": "1",
        "IMPRINT_FETCH_SECONDS": "5",
    }
    return load(given | more)


@asynccontextmanager
async def a_world(database: Database, home: Path) -> AsyncIterator[Serials]:
    """Set the scene up."""
    world = World()
    async with serving(serials(world)) as url:
        settings = settings_for(url, home)
        poller = Poller.of(database, settings)
        try:
            yield Serials(database, settings, poller, world, url)
        finally:
            await poller.fetcher.close()


async def add_series(connection: Link, title: str = "A series") -> UUID:
    """Add a series."""
    added: UUID = await connection.fetchval("INSERT INTO series (title) VALUES ($1) RETURNING id", title)
    return added


async def add_source(
    connection: Link, series: UUID, kind: str = "feed", ref: str = "https://example.org/feed", host: str = "example.org"
) -> UUID:
    """Add a source."""
    added: UUID = await connection.fetchval(
        "INSERT INTO source (name, series_id, kind, ref, host) VALUES ($2, $1, $2, $3, $4) RETURNING id",
        series,
        kind,
        ref,
        host,
    )
    return added


async def follow(connection: Link, series: UUID, *people: str) -> None:
    """Let people follow a series."""
    await connection.executemany(
        "INSERT INTO follow (person, series_id) VALUES ($1, $2)", [(p, series) for p in people]
    )


def chapter(name: str, own: str | None = None, **more: Any) -> Chapter:
    """Make a chapter as a source gives it."""
    return Chapter(own or f"id-{name}", from_name(name, fallback=own or name), title=None, **more)


def fetched(*names: str | Chapter, **more: Any) -> Fetched:
    """Make what a fetch gave."""
    return Fetched(tuple(chapter(each) if isinstance(each, str) else each for each in names), **more)


async def take_in(
    database: Database, series: UUID, source: UUID, names: Iterable[str | Chapter], *, first: bool = False
) -> Ingested:
    """Take chapters in, in a transaction."""
    async with database.transaction("test") as connection:
        return await ingest(connection, Carrier(source, series, first), fetched(*names))
