"""Notices: what is new for a person, one for each new chapter of a series that they follow; look at them, read them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from imprint.decisions.chapter_number import ChapterNumber, Kind
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, query


@dataclass(frozen=True)
class Notice:
    """A notice and the chapter it is about."""

    id: int
    series_id: UUID
    series: str
    chapter_id: int
    kind: str
    slug: str
    number: Decimal | None
    number_end: Decimal | None
    volume: Decimal | None
    season: int | None
    version: int | None
    title: str | None
    url: str | None
    created_at: datetime
    read_at: datetime | None

    @property
    def label(self) -> str:
        """Give the chapter's number as people write it."""
        return ChapterNumber(
            Kind(self.kind), self.slug, self.number, self.number_end, self.volume, self.season, self.version
        ).label

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "id": self.id,
            "seriesId": self.series_id,
            "series": self.series,
            "chapterId": self.chapter_id,
            "number": None if self.number is None else f"{self.number:f}",
            "label": self.label,
            "title": self.title,
            "url": self.url,
            "createdAt": self.created_at,
            "readAt": self.read_at,
        }


@dataclass(frozen=True)
class Counts:
    """How many notices a person has, and how many of them are not read."""

    notices: int
    unread: int


@dataclass(frozen=True)
class Known:
    """A notice that was found or changed."""

    id: int


LIST = query("notice_list", Notice)
READ = query("notice_read", Known)
KNOWN = query("notice_known", Known)
COUNTS = query("notice_counts", Counts)
MUTE = query("notice_mute", Known)


async def listed(
    connection: Link, person: str, *, unread: bool = False, before: int | None = None, limit: int = 100
) -> list[Notice]:
    """Give a page of a person's notices, the newest first, going on before the chapter of the last one."""
    return await LIST.all(connection, person, unread, before, limit, None)


async def show(connection: Link, person: str, notice: int) -> Notice:
    """Give one notice."""
    found = await LIST.first(connection, person, False, None, 1, notice)  # noqa: FBT003 - a value of SQL
    if found is None:
        raise _missing(notice)
    return found


async def counts(connection: Link, person: str) -> Counts:
    """Say how many notices there are."""
    return await COUNTS.one(connection, person)


async def mute(database: Database, person: str, notice: int) -> None:
    """Hear no more of the series that a notice is about; it is still followed."""
    async with database.transaction(person, "told no more") as connection:
        if await MUTE.first(connection, person, notice) is None:
            await show(connection, person, notice)
            raise Problem("series.not_followed", "This series is not in the library.")


async def read(database: Database, person: str, notices: Sequence[int] | None) -> list[int]:
    """Mark notices read, or all (None), and give those that were not; a message that is not out yet leaves them out."""
    async with database.transaction(person, "read") as connection:
        if notices is not None:
            known = {row.id for row in await KNOWN.all(connection, person, list(notices))}
            for each in notices:
                if each not in known:
                    raise _missing(each)
        changed = await READ.all(connection, person, None if notices is None else list(notices))
    return sorted(row.id for row in changed)


def _missing(notice: int) -> Problem:
    return Problem("notice.missing", f"There is no notice {notice}.")
