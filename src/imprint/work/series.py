"""Series: add one by its address, look at it, follow it, mark what was read, remove it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg

from imprint.decisions.chapter_number import from_name
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work import place as places
from imprint.work import source as sources
from imprint.work.catalogue import LAST, Place
from imprint.work.naming import to_camel
from imprint.work.post import Row
from imprint.work.prefix import Candidate, picked
from imprint.work.source import Named

LONGEST_TITLE = 500
MOST_CHAPTERS = 1000


@dataclass(frozen=True)
class Series:
    """A series as one person sees it."""

    id: UUID
    title: str
    latest_chapter: Decimal | None
    latest_at: datetime | None
    created_at: datetime
    followed: bool
    notify: bool
    preferred_source: UUID | None
    chapters: int
    unread: int
    sources: int
    failing: int
    mine: bool

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return _plain(self)


@dataclass(frozen=True)
class Chapter:
    """A logical chapter as one person sees it."""

    id: int
    slug: str
    kind: str
    number: Decimal | None
    number_end: Decimal | None
    volume: Decimal | None
    season: int | None
    version: int | None
    title: str | None
    first_seen_at: datetime
    silent: bool
    read_at: datetime | None
    releases: int
    url: str | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return _plain(self)


@dataclass(frozen=True)
class Release:
    """A chapter at one source."""

    chapter_id: int
    source_id: UUID
    source: str
    kind: str
    url: str | None
    title: str | None
    language: str | None
    group_name: str | None
    external: bool
    published_at: datetime | None
    first_seen_at: datetime

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items() if name != "chapter_id"}


@dataclass(frozen=True)
class Locked:
    """A place that nobody else adds at this moment."""

    locked: bool


@dataclass(frozen=True)
class Mark:
    """A chapter that was marked."""

    id: int


ADD = query("series_add", Row)
PLACE_LOCK = query("series_place_lock", Locked)
AT = query("series_at", Named)
LIST = query("series_list", Series)
PAGE = query("series_page", Series)
SEEN = query("series_seen", Row)
FOUND = query("series_found", Candidate)
CHAPTERS = query("series_chapters", Chapter)
RELEASES = query("series_releases", Release)
LOCK = query("series_lock", Named)
RENAME = query("series_rename", Row)
REMOVE = query("series_remove", Row)
FOLLOW = query("series_follow", Row)
UNFOLLOW = query("series_unfollow", Row)
READ = query("series_read", Mark)
UNREAD = query("series_unread", Mark)
NOTICES_READ = query("series_notices_read", Nothing)


async def add(
    database: Database,
    settings: Settings,
    owner: str,
    text: str,
    *,
    title: str | None = None,
    languages: Sequence[str] = (),
    follow: bool = True,
) -> Series:
    """Add a series by an address or KIND:ID, followed by whoever adds it; a worker reads it at once, in silence."""
    place = places.read(text, settings)
    chosen = _title(title) if title is not None else place.name
    async with database.transaction(owner, "a series was added") as connection:
        await PLACE_LOCK.one(connection, f"{place.kind}:{place.ref}")
        if there := await AT.first(connection, owner, place.kind, place.ref):
            raise Problem("series.already_there", f"{there.title!r} is carried there already.")
        series = (await ADD.one(connection, owner, chosen, title is not None)).id
        await sources.put(connection, settings, series, place, languages=languages)
        if follow:
            await FOLLOW.one(connection, owner, series, None, None)
        return await show(connection, owner, series)


async def listed(connection: Link, owner: str, *, followed: bool = False) -> list[Series]:
    """Give the series of a person, or only those in their library."""
    return await LIST.all(connection, owner, owner, None, followed)


async def page(
    connection: Link,
    owner: str,
    *,
    followed: bool = False,
    text: str | None = None,
    after: Place | None = None,
    limit: int,
) -> list[Series]:
    """Give a page of the series of a person, the newest first: all, those in their library, those with these words."""
    return await PAGE.all(connection, owner, followed, text, *(after or LAST), limit)


async def show(connection: Link, owner: str, series: UUID) -> Series:
    """Give one series."""
    found = await LIST.first(connection, owner, owner, series, None)
    if found is None:
        raise missing()
    return found


async def chapters(
    connection: Link, person: str, series: UUID, most: int = MOST_CHAPTERS, *, after: int | None = None
) -> list[Chapter]:
    """Give the latest chapters of a series, or those after one of them, with what this person has read of them."""
    await _seen(connection, person, series)
    return await CHAPTERS.all(connection, series, person, most, after, None)


async def chapter(connection: Link, person: str, series: UUID, one: int) -> Chapter:
    """Give one chapter of a series."""
    await _seen(connection, person, series)
    found = await CHAPTERS.first(connection, series, person, 1, None, one)
    if found is None:
        raise Problem("chapter.missing", "There is no such chapter.")
    return found


async def releases(connection: Link, of: Sequence[Chapter]) -> dict[int, list[Release]]:
    """Give where chapters can be read, by the id of the chapter."""
    found: dict[int, list[Release]] = {each.id: [] for each in of}
    for release in await RELEASES.all(connection, list(found)):
        found[release.chapter_id].append(release)
    return found


async def find(connection: Link, owner: str, text: str) -> UUID:
    """Find a series by its title, or by its id or the first letters of it."""
    return picked(text, await FOUND.all(connection, owner, text.strip()), missing())


async def rename(database: Database, owner: str, series: UUID, title: str) -> None:
    """Give a series another title."""
    async with database.transaction(owner, "renamed") as connection:
        await _held(connection, owner, series)
        await RENAME.one(connection, series, _title(title))


async def remove(database: Database, owner: str, series: UUID) -> None:
    """Remove a series; it is asked for no more, and nobody is told of it any more."""
    async with database.transaction(owner, "removed") as connection:
        await _held(connection, owner, series)
        await REMOVE.one(connection, series)


async def follow(
    database: Database, person: str, series: UUID, *, notify: bool | None = None, preferred: UUID | None = None
) -> None:
    """Put a series into a person's library, or change whether they are told, and where they like to read."""
    try:
        async with database.transaction(person, "followed") as connection:
            if await FOLLOW.first(connection, person, series, notify, preferred) is None:
                raise missing()
    except asyncpg.ForeignKeyViolationError:
        raise Problem("series.other_source", "This source carries another series.") from None


async def unfollow(database: Database, person: str, series: UUID) -> None:
    """Take a series out of a person's library."""
    async with database.transaction(person, "no longer followed") as connection:
        if await UNFOLLOW.first(connection, person, series) is None:
            raise Problem("series.not_followed", "This series is not in the library.")


async def read(
    database: Database, person: str, series: UUID, names: Sequence[str] = (), *, up_to: Decimal | None = None
) -> int:
    """Mark chapters as read, by what they are called, up to a number, or all; give how many were unread."""
    async with database.transaction(person, "read") as connection:
        await _seen(connection, person, series)
        slugs = [from_name(name).slug for name in names] if names else None
        marked = await READ.all(connection, person, series, slugs, up_to)
        await NOTICES_READ.run(connection, person, series)
        return len(marked)


async def unread(database: Database, person: str, series: UUID, names: Sequence[str] = ()) -> int:
    """Mark chapters as unread; give how many were read."""
    async with database.transaction(person, "not read") as connection:
        await _seen(connection, person, series)
        slugs = [from_name(name).slug for name in names] if names else None
        return len(await UNREAD.all(connection, person, series, slugs))


async def _held(connection: Link, owner: str, series: UUID) -> None:
    if await LOCK.first(connection, series, owner) is None:
        raise missing()


async def _seen(connection: Link, person: str, series: UUID) -> None:
    """Raise unless a person has a series, or follows it."""
    if await SEEN.first(connection, series, person) is None:
        raise missing()


def missing() -> Problem:
    """Say that there is none."""
    return Problem("series.missing", "There is no such series.")


def _title(title: str) -> str:
    clean = " ".join(title.replace("\0", "").encode("utf-8", "replace").decode().split())
    if not 1 <= len(clean) <= LONGEST_TITLE:
        raise Problem("series.bad_title", f"A title has 1 to {LONGEST_TITLE} letters.")
    return clean


def _plain(row: Series | Chapter) -> dict[str, Any]:
    return {to_camel(name): f"{each:f}" if isinstance(each, Decimal) else each for name, each in asdict(row).items()}
