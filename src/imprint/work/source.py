"""Sources: add one to a series, look at them, disable, enable, decide how urgently they are asked, remove.

A source never fails in silence: what is shown here is its last error and when it is tried again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from imprint.decisions.polling import Priority
from imprint.engine import circuit
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work import place as places
from imprint.work.catalogue import LAST
from imprint.work.catalogue import Place as Where
from imprint.work.naming import to_camel
from imprint.work.place import Place
from imprint.work.post import Row
from imprint.work.prefix import Candidate, picked

LONGEST_NAME = 100
LONGEST_LANGUAGE = 20
MOST_LANGUAGES = 50


@dataclass(frozen=True)
class Source:
    """A source, its last error and its next try included."""

    id: UUID
    name: str
    series_id: UUID
    series: str
    kind: str
    ref: str
    host: str
    languages: list[str]
    status: str
    status_at: datetime
    priority: Priority
    priority_before: Priority | None
    priority_fixed: bool
    next_check_at: datetime
    polling: bool
    every: timedelta | None
    rhythm: timedelta | None
    last_polled_at: datetime | None
    last_worked_at: datetime | None
    last_news_at: datetime | None
    failures: int
    error_code: str | None
    error: str | None
    gap_from: Decimal | None
    gap_to: Decimal | None
    releases: int
    set_aside: int
    created_at: datetime

    @property
    def missing(self) -> str | None:
        """Say which numbers are missing between others."""
        if self.gap_from is None or self.gap_to is None:
            return None
        return f"{self.gap_from:f}" if self.gap_from == self.gap_to else f"{self.gap_from:f}-{self.gap_to:f}"

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data; spans of time in seconds."""
        data = {to_camel(name): _plain(value) for name, value in asdict(self).items()}
        return {**data, "missing": self.missing}


@dataclass(frozen=True)
class Named:
    """A series and its title."""

    id: UUID
    title: str


ADD = query("source_add", Row)
LIST = query("source_list", Source)
PAGE = query("source_page", Source)
OF_SERIES = query("series_lock", Named)
FOUND = query("source_found", Candidate)
DISABLE = query("source_disable", Row)
ENABLE = query("source_enable", Row)
HASTEN = query("source_hasten", Row)
PRIORITY = query("source_priority", Row)
REMOVE = query("source_remove", Row)


async def add(
    database: Database,
    settings: Settings,
    owner: str,
    series: UUID,
    text: str,
    *,
    name: str | None = None,
    languages: Sequence[str] = (),
    priority: Priority | None = None,
) -> Source:
    """Add a place that carries a series; what it brings when it is first read is no news."""
    place = places.read(text, settings)
    async with database.transaction(owner, "a source was added") as connection:
        if await OF_SERIES.first(connection, series, owner) is None:
            raise Problem("series.missing", "There is no such series.")
        row = await put(connection, settings, series, place, name=name, languages=languages, priority=priority)
        return await show(connection, owner, row)


async def put(
    connection: Link,
    settings: Settings,
    series: UUID,
    place: Place,
    *,
    name: str | None = None,
    languages: Sequence[str] = (),
    priority: Priority | None = None,
) -> UUID:
    """Add a source in the caller's transaction."""
    chosen = (name or place.name).strip()
    if not 1 <= len(chosen) <= LONGEST_NAME or not chosen.isprintable():
        raise Problem("source.bad_name", f"A source's name has 1 to {LONGEST_NAME} letters.")
    wanted = list(dict.fromkeys(each.strip().lower() for each in languages))
    if len(wanted) > MOST_LANGUAGES or any(not 1 <= len(each) <= LONGEST_LANGUAGE for each in wanted):
        raise Problem("source.bad_language", "A language is written as en or pt-br.")
    values = (place.kind, place.ref, places.host(place, settings), wanted, priority)
    try:
        async with connection.transaction():
            return (await ADD.one(connection, chosen, series, *values)).id
    except asyncpg.UniqueViolationError:
        raise Problem("source.already_there", "This series has that source already.") from None
    except asyncpg.ForeignKeyViolationError:
        raise Problem("series.missing", "There is no such series.") from None


async def listed(connection: Link, owner: str, series: UUID | None = None) -> list[Source]:
    """Give the sources of a person, or of one series."""
    return await LIST.all(connection, owner, None, series)


async def page(
    connection: Link,
    owner: str,
    *,
    series: UUID | None = None,
    failing: bool = False,
    after: Where | None = None,
    limit: int,
) -> list[Source]:
    """Give a page of the sources of a person, the newest first: all, those of a series, those that fail."""
    return await PAGE.all(connection, owner, series, failing, *(after or LAST), limit)


async def show(connection: Link, owner: str, source: UUID) -> Source:
    """Give one source."""
    found = await LIST.first(connection, owner, source, None)
    if found is None:
        raise _missing()
    return found


async def find(connection: Link, owner: str, text: str) -> UUID:
    """Find a source by its name, or by its id or the first letters of it."""
    return picked(text, await FOUND.all(connection, owner, text.strip()), _missing())


async def disable(database: Database, owner: str, source: UUID) -> Source:
    """Ask a source no more until it is enabled."""
    async with database.transaction(owner, "not wanted for now") as connection:
        await show(connection, owner, source)
        if await DISABLE.first(connection, source) is None:
            raise Problem("source.disabled", "This source is disabled already.")
        return await show(connection, owner, source)


async def enable(database: Database, owner: str, source: UUID) -> Source:
    """Ask a source again, at once; what it failed at before is forgotten."""
    async with database.transaction(owner, "wanted again") as connection:
        await show(connection, owner, source)
        await circuit.forget(connection, f"source:{source}")
        if await ENABLE.first(connection, source) is None:
            raise Problem("source.not_disabled", "This source is not disabled.")
        return await show(connection, owner, source)


async def hasten(database: Database, owner: str, source: UUID) -> Source:
    """Let a worker ask a source as soon as its host is free, due or not; one that rests is tried."""
    async with database.transaction(owner, "wanted now") as connection:
        await show(connection, owner, source)
        if await HASTEN.first(connection, source) is None:
            raise Problem("source.disabled", "This source is disabled; enable it first.")
        await circuit.probe(connection, f"source:{source}")
        return await show(connection, owner, source)


async def prioritise(database: Database, owner: str, source: UUID, priority: Priority | None) -> Source:
    """Fix how urgently a source is asked; None lets it follow from its news again."""
    async with database.transaction(owner, "its priority was set") as connection:
        await show(connection, owner, source)
        await PRIORITY.one(connection, source, priority)
        return await show(connection, owner, source)


async def remove(database: Database, owner: str, source: UUID) -> None:
    """Remove a source; what it has brought stays."""
    async with database.transaction(owner, "removed") as connection:
        await show(connection, owner, source)
        await REMOVE.one(connection, source)


def _missing() -> Problem:
    return Problem("source.missing", "There is no such source.")


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return round(value.total_seconds())
        case Decimal():
            return f"{value:f}"
        case _:
            return value
