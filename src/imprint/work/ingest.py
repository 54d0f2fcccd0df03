"""Ingestion: what a fetch gave becomes chapters, releases and notices, in one transaction of the caller's.

One statement takes in any number of chapters, and its inserts decide what is new: no clock does, and no look before. An
item that the database refuses is found by halving, set aside for a person, and the others go in. The series is kept
for one ingestion at a time, so that five sources with the same chapter make one of it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from uuid import UUID

import asyncpg

from imprint.decisions.polling import Missing, missing
from imprint.engine.queue import Job, enqueue
from imprint.problem import Problem
from imprint.sources.contract import Chapter, Fetched, SetAside
from imprint.store.db import said
from imprint.store.query import Link, Nothing, query

LONGEST_ID = 400  # of an item at its source; a longer one is known by its digest
MOST_ASIDE = 100  # of one fetch: a source of which everything is bad is not worth more
_REFUSED = (
    asyncpg.DataError,
    asyncpg.CheckViolationError,
    asyncpg.NotNullViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.exceptions.UntranslatableCharacterError,
    ValueError,
    OverflowError,
)


@dataclass(frozen=True)
class Carrier:
    """Who carries what is taken in; `first`: it was never read to its end, `whole`: what it does not list is gone."""

    source_id: UUID
    series_id: UUID
    first: bool
    whole: bool = False


@dataclass(frozen=True)
class Begun:
    """Where a series stands before an ingestion."""

    id: UUID
    latest_chapter: Decimal | None
    now: datetime
    plans: str
    loops: str
    scans: str
    jit: str


@dataclass(frozen=True)
class Taken:
    """How much was new: chapters, those to tell of, releases; how many releases came; notices made; rules there are."""

    chapters: int
    announced: int
    releases: int
    carried: int
    notices: int
    rules: int = 0

    def __add__(self, other: "Taken") -> "Taken":
        """Count two parts together."""
        return Taken(
            self.chapters + other.chapters,
            self.announced + other.announced,
            self.releases + other.releases,
            self.carried + other.carried,
            self.notices + other.notices,
            max(self.rules, other.rules),
        )


@dataclass(frozen=True)
class Ingested:
    """What became of a fetch."""

    taken: Taken
    set_aside: int
    missing: Missing | None
    now: datetime


@dataclass(frozen=True)
class Aside:
    """An item that is set aside, and why."""

    item: str
    data: str
    code: str
    why: str


NOTHING_TAKEN = Taken(0, 0, 0, 0, 0)
BEGIN = query("ingest_begin", Begun)
CHAPTERS = query("ingest_chapters", Taken)
COMPLETE = query("ingest_complete", Nothing)
GONE = query("ingest_gone", Nothing)
SET_ASIDE = query("ingest_set_aside", Nothing)

Items = Sequence[tuple[str, Chapter]]


async def ingest(connection: Link, of: Carrier, fetched: Fetched) -> Ingested:
    """Take in what a fetch gave, inside the caller's transaction; raise when the series is no more."""
    begun = await BEGIN.first(connection, of.series_id)
    if begun is None:
        raise Problem("series.missing", "There is no such series.")
    items = [*_distinct(fetched.chapters).items()]
    taken, refused = await _taken(connection, of, items) if items else (NOTHING_TAKEN, [])
    aside = [*map(_unread, fetched.set_aside), *refused]
    left_out = {each.item for each in aside}
    went_in = [(own, each) for own, each in items if _plain(own) not in left_out] if left_out else items
    if aside:
        await _set_aside(connection, of, aside[:MOST_ASIDE])
    if of.whole:
        await GONE.run(connection, of.source_id, begun.now, [*left_out])
    late = [each for _, each in went_in if each.number.volume is not None or each.title]
    if late and taken.carried > taken.chapters:
        await COMPLETE.run(connection, of.series_id, *_known_late(late))
    await hand_on(connection, of.series_id, taken)
    numbers = [(each.number.number, each.number.end) for _, each in went_in]
    counted = [(first, last) for first, last in numbers if first is not None]
    lacking = None if of.first else missing(begun.latest_chapter, counted)
    return Ingested(taken, len(aside), lacking, begun.now)


async def hand_on(connection: Link, series: UUID, taken: Taken) -> None:
    """Let others deliver the notices and announce the chapters, once this transaction is committed."""
    jobs = [Job("notify", str(series))] if taken.notices else []
    jobs += [Job("announce", str(series))] if taken.announced and taken.rules else []
    await enqueue(connection, jobs)


async def _taken(connection: Link, of: Carrier, items: Items) -> tuple[Taken, list[Aside]]:
    """Take items in; of those that are refused, each half by itself, down to the one that is to blame."""
    try:
        async with connection.transaction():
            return await CHAPTERS.one(connection, of.series_id, of.source_id, of.first, *_columns(items)), []
    except _REFUSED as error:
        if len(items) == 1:
            return NOTHING_TAKEN, [_bad(*items[0], error)]
    middle = len(items) // 2
    first, first_bad = await _taken(connection, of, items[:middle])
    second, second_bad = await _taken(connection, of, items[middle:])
    return first + second, first_bad + second_bad


async def _set_aside(connection: Link, of: Carrier, aside: Iterable[Aside]) -> None:
    once = {each.item: each for each in aside}.values()
    columns = [[getattr(each, name) for each in once] for name in ("item", "data", "code", "why")]
    await SET_ASIDE.run(connection, of.source_id, *columns)


def _distinct(chapters: Iterable[Chapter]) -> Mapping[str, Chapter]:
    """Name each release by the source's own id, else by its chapter; the first of a name counts."""
    found: dict[str, Chapter] = {}
    for each in chapters:
        found.setdefault(known_as(each.id or each.number.slug), each)
    return found


def known_as(own: str) -> str:
    """Give the name under which an item of a source is kept."""
    if len(own) <= LONGEST_ID:
        return own
    return f"sha256:{sha256(own.encode('utf-8', 'replace')).hexdigest()}"


def _columns(items: Items) -> list[list[object]]:
    """Turn releases into the columns that the statement takes; one that says nothing is empty, and NULL for all."""
    numbers = [each.number for _, each in items]
    chapters = [each for _, each in items]
    columns: list[list[object]] = [
        [own for own, _ in items],
        [each.slug for each in numbers],
        [str(each.kind) for each in numbers],
        [each.number for each in numbers],
        [each.end for each in numbers],
        [each.volume for each in numbers],
        [each.season for each in numbers],
        [each.version for each in numbers],
        [each.title for each in chapters],
        [each.url for each in chapters],
        [each.language for each in chapters],
        [each.group for each in chapters],
        [each.external for each in chapters],
        [each.published_at for each in chapters],
    ]
    return [column if any(value is not None for value in column) else [] for column in columns]


def _known_late(late: Sequence[Chapter]) -> list[list[object]]:
    """Give what may be known of chapters only now, as columns."""
    return [
        [each.number.slug for each in late],
        [each.number.volume for each in late],
        [each.title for each in late],
    ]


def _unread(item: SetAside) -> Aside:
    own, text, why = _plain(item.id or ""), _plain(item.item), _plain(item.reason)
    name = known_as(own) if own else f"sha256:{sha256(f'{text}{why}'.encode()).hexdigest()}"
    return Aside(name, json.dumps({"id": own, "item": text}), "source.unreadable_item", why[:1000])


def _bad(own: str, chapter: Chapter, error: Exception) -> Aside:
    """Describe an item that the database refused, in letters that it takes."""
    data = {"id": _plain(own), "chapter": _plain(repr(chapter))[:5000]}
    return Aside(
        _plain(own) or "?", json.dumps(data), "ingest.refused", f"The item was refused: {_plain(said(error))}."[:1000]
    )


def _plain(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()
