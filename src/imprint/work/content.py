"""Content: what is there, what happened to it, and what a person may do with it; every gate is here."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from imprint.blobs.tally import Promise
from imprint.blobs.tally import Tally as Count
from imprint.engine.queue import Job, enqueue
from imprint.lifecycles.content import CONTENT, ContentStatus
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.derive import CONTENT_BEGINS
from imprint.work.plan import ENTRYPOINT, plan
from imprint.work.stores import Place, Stores

PAGE = 100
DOWNLOADABLE = (ContentStatus.UPLOADED, ContentStatus.PROCESSED, ContentStatus.ARCHIVED)
DERIVABLE = (ContentStatus.UPLOADED, ContentStatus.PROCESSED)
_FIRST, _LAST = UUID(int=0), UUID(int=2**128 - 1)
_LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Listed:
    """A content in a list."""

    id: UUID
    name: str
    owner: str
    status: str
    status_at: datetime
    error_code: str | None
    created_at: datetime
    size: int | None
    content_type: str | None
    width: int | None
    height: int | None


@dataclass(frozen=True)
class Counted:
    """How many contents are in a state."""

    status: str
    contents: int


@dataclass(frozen=True)
class Content:
    """A stored work."""

    id: UUID
    name: str
    owner: str
    status: str
    status_at: datetime
    error_code: str | None
    created_at: datetime
    deleted_at: datetime | None
    purge_at: datetime | None
    purged_at: datetime | None


@dataclass(frozen=True)
class Kept:
    """The bytes of a content in one store."""

    id: UUID
    variant: str | None
    version: int
    status: str
    store: str | None
    key: str | None
    size: int | None
    sha256: str | None
    content_type: str | None
    width: int | None
    height: int | None
    frames: int | None
    error_code: str | None
    created_at: datetime


@dataclass(frozen=True)
class Variant:
    """A variant, made or not."""

    id: UUID
    variant: str
    recipe_version: int
    wanted: bool
    status: str
    error_code: str | None
    status_at: datetime
    size: int | None
    width: int | None
    height: int | None
    content_type: str | None


@dataclass(frozen=True)
class Line:
    """One line of the audit."""

    at: datetime
    lifecycle: str
    variant: str | None
    move: str
    source: str | None
    target: str
    actor: str
    reason: str | None


@dataclass(frozen=True)
class Bytes:
    """Bytes that may be given out."""

    id: UUID
    store: str
    key: str
    size: int
    sha256: str
    content_type: str

    @property
    def place(self) -> Place:
        """Say where they are and what they must be."""
        return Place(self.store, self.key, self.size, self.sha256)


@dataclass(frozen=True)
class Row:
    """A row that was found or changed."""

    id: UUID


@dataclass(frozen=True)
class Failed:
    """A content that failed."""

    id: UUID
    name: str
    error_code: str
    has_bytes: bool


NEWEST = query("content_newest", Listed)
IN_STATE = query("content_in_state", Listed)
COUNTS = query("content_counts", Counted)
SHOW = query("content_show", Content)
FOUND = query("content_found", Row)
OBJECTS = query("content_objects", Kept)
DERIVATIONS = query("content_derivations", Variant)
HISTORY = query("content_history", Line)
ORIGINAL = query("content_original", Bytes)
VARIANT = query("content_variant", Bytes)
DELETE = query("content_delete", Row)
RESTORE = query("content_restore", Row)
ARCHIVE = query("content_archive", Row)
RETRY = query("content_retry", Row)
RETRY_OBJECT = query("content_retry_object", Nothing)
RETRY_DERIVATIONS = query("derive_retry_derivations", Nothing)
REMAKE = query("derive_remake", Row)
RETIRE = query("derive_retire", Nothing)
FAILED = query("content_failed", Failed)


class NotAllowed(Problem):
    """The content is in a state in which this cannot be done."""


@dataclass(frozen=True)
class Shown:
    """Everything about one content."""

    content: Content
    objects: list[Kept]
    variants: list[Variant]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            **camel(asdict(self.content)),
            "moves": [
                {"name": a.name, "to": str(a.target), "why": a.why} for a in CONTENT.open_to(self.content.status)
            ],
            "objects": [camel(asdict(each)) for each in self.objects],
            "variants": [camel(asdict(each)) for each in self.variants],
        }


@dataclass(frozen=True)
class Outcome:
    """What became of one row of many."""

    id: UUID
    done: bool
    code: str = ""
    sentence: str = ""


async def by_status(
    connection: Link, status: str | None = None, *, after: Listed | None = None, limit: int = PAGE
) -> list[Listed]:
    """List contents, the newest first; give the last one of a page to get the next."""
    if status is not None and status not in set(ContentStatus):
        raise Problem("content.no_state", f"Content is never {status}; it is one of {', '.join(ContentStatus)}.")
    before = (after.created_at, after.id) if after else (_LAST_MOMENT, _LAST)
    if status is None:
        return await NEWEST.all(connection, *before, limit)
    return await IN_STATE.all(connection, status, *before, limit)


async def counts(connection: Link) -> dict[str, int]:
    """Count the contents in each state."""
    return {row.status: row.contents for row in await COUNTS.all(connection)}


async def find(connection: Link, text: str) -> UUID:
    """Find a content by its id or by the first letters of it, as a person types them."""
    letters = text.strip().lower().replace("-", "")
    try:
        low, high = UUID(letters.ljust(32, "0")), UUID(letters.ljust(32, "f"))
    except ValueError:
        raise _missing() from None
    found = await FOUND.all(connection, low, high)
    if len(found) > 1:
        raise Problem("content.ambiguous", f"Several contents have an id that begins with {text}; write more of it.")
    if not found or len(letters) < 4:  # noqa: PLR2004 - fewer letters are a slip of the hand
        raise _missing()
    return found[0].id


async def show(connection: Link, content: UUID) -> Shown:
    """Give everything about one content, deleted or not."""
    found = await SHOW.first(connection, content)
    if found is None:
        raise _missing()
    return Shown(found, await OBJECTS.all(connection, content), await DERIVATIONS.all(connection, content))


async def history(connection: Link, content: UUID) -> list[Line]:
    """Give what happened to a content, its objects and its variants."""
    lines = await HISTORY.all(connection, content)
    if not lines:
        raise _missing()
    return lines


async def bytes_of(connection: Link, content: UUID, variant: str | None = None) -> tuple[Content, Bytes]:
    """Give the bytes of a content or of its variant, when they may be downloaded."""
    found = await _living(connection, content)
    if found.status not in DOWNLOADABLE:
        raise NotAllowed(
            "content.not_downloadable",
            f"This content is {found.status}; it can be downloaded when it is {', '.join(DOWNLOADABLE)}.",
        )
    held = await (VARIANT.first(connection, content, variant) if variant else ORIGINAL.first(connection, content))
    if held is None:
        raise Problem("content.no_variant", f"This content has no {variant or 'original'}.")
    return found, held


async def read(stores: Stores, held: Bytes) -> AsyncIterator[bytes]:
    """Stream bytes, and raise Broken at the end when they are not what they were: then none of them is to be used."""
    count = Count(Promise(held.size, held.sha256))
    async with aclosing(_chunks(stores, held)) as chunks:
        async for chunk in chunks:
            count.add(chunk)
            yield chunk
    count.stored(held.key)


async def delete(database: Database, settings: Settings, content: UUID, actor: str, *, force: bool = False) -> Content:
    """Delete a content softly; its bytes go after a while. While it is processing this needs force."""
    async with database.transaction(actor, "deleted") as connection:
        await _living(connection, content)
        if await DELETE.first(connection, content, force, timedelta(days=settings.keep_deleted_days)) is None:
            raise NotAllowed("content.processing", "Its variants are being made; wait a moment, or use --force.")
        return (await show(connection, content)).content


async def restore(database: Database, content: UUID, actor: str) -> Content:
    """Take a deletion back while the bytes are there; variants that were not made yet are put in again."""
    async with database.transaction(actor, "restored") as connection:
        if await RESTORE.first(connection, content) is None:
            raise NotAllowed("content.gone", "This content is not deleted, or its bytes are gone already.")
        await enqueue(connection, [Job(ENTRYPOINT, str(content))])
        return (await show(connection, content)).content


async def archive(database: Database, content: UUID, actor: str) -> None:
    """Keep a content that is no longer worked with."""
    async with database.transaction(actor, "archived") as connection:
        found = await _living(connection, content)
        if await ARCHIVE.first(connection, content) is None:
            raise _cannot(found, ContentStatus.ARCHIVED)


async def retry(database: Database, content: UUID, actor: str) -> None:
    """Let a content that failed over its variants be tried again."""
    async with database.transaction(actor, "tried again") as connection:
        found = await _living(connection, content)
        if found.status != ContentStatus.FAILED:
            raise _cannot(found, ContentStatus.PROCESSING)
        if await RETRY.first(connection, content) is None:
            raise NotAllowed("content.no_bytes", "Its bytes never came; upload them again.")
        await RETRY_OBJECT.run(connection, content)
        await RETRY_DERIVATIONS.run(connection, content)
        await plan(connection, content)


async def derive_again(
    database: Database, settings: Settings, content: UUID, actor: str, only: Sequence[UUID] | None = None
) -> None:
    """Let all variants of a content, or only some, be made again; from uploaded and processed alone."""
    async with database.transaction(actor, "its variants are made again") as connection:
        found = await _living(connection, content)
        if found.status not in DERIVABLE:
            raise _cannot(found, ContentStatus.PROCESSING)
        await remake(connection, content, only, timedelta(days=settings.keep_deleted_days))


async def remake(connection: Link, content: UUID, only: Sequence[UUID] | None, grace: timedelta) -> bool:
    """Put variants back to be made, in the caller's transaction; False when the content is being processed already."""
    if await CONTENT_BEGINS.first(connection, content, list(DERIVABLE)) is None:
        return False
    chosen = None if only is None else list(only)
    await RETIRE.run(connection, content, chosen, grace)
    await REMAKE.all(connection, content, chosen)
    await plan(connection, content)
    return True


async def retry_failed(database: Database, actor: str) -> list[Outcome]:
    """Try every content again that failed, and say of each whether that was possible."""
    outcomes: list[Outcome] = []
    after = _FIRST
    while True:
        async with database.connection() as connection:
            page = await FAILED.all(connection, after, PAGE)
        for failed in page:
            after = failed.id
            outcomes.append(await _one(database, failed.id, ContentStatus.PROCESSING, actor))
        if len(page) < PAGE:
            return outcomes


async def update_many(
    database: Database, settings: Settings, contents: Sequence[UUID], target: str, actor: str
) -> list[Outcome]:
    """Move many contents, each checked by itself, and say of each what became of it.

    A person can ask for `archived` and for `processing`; the other states follow from bytes alone.
    """
    return [await _one(database, content, target, actor, settings) for content in contents]


async def _one(database: Database, content: UUID, target: str, actor: str, settings: Settings | None = None) -> Outcome:
    try:
        await _move(database, content, target, actor, settings)
    except Problem as problem:
        return Outcome(content, done=False, code=problem.code, sentence=problem.sentence)
    except asyncpg.CheckViolationError as refusal:
        return Outcome(content, done=False, code="content.refused", sentence=f"{refusal.message}.")
    return Outcome(content, done=True)


async def _move(database: Database, content: UUID, target: str, actor: str, settings: Settings | None) -> None:
    if target == ContentStatus.ARCHIVED:
        return await archive(database, content, actor)
    if target != ContentStatus.PROCESSING:
        raise NotAllowed("content.follows", f"Content becomes {target} by what happens to its bytes, not by request.")
    async with database.connection() as connection:
        found = await _living(connection, content)
    if settings is None or found.status == ContentStatus.FAILED:
        return await retry(database, content, actor)
    return await derive_again(database, settings, content, actor)


async def _living(connection: Link, content: UUID) -> Content:
    found = await SHOW.first(connection, content)
    if found is None or found.deleted_at is not None:
        raise _missing()
    return found


async def _chunks(stores: Stores, held: Bytes) -> AsyncGenerator[bytes, None]:
    async for chunk in stores.of(held.store).read(held.key):
        yield chunk


def _missing() -> Problem:
    return Problem("content.missing", "There is no such content.")


def _cannot(found: Content, target: str) -> NotAllowed:
    ways = ", ".join(str(arrow.target) for arrow in CONTENT.open_to(found.status)) or "nowhere"
    return NotAllowed(
        "content.no_such_move", f"Content that is {found.status} cannot become {target}; from here it can go to {ways}."
    )


def camel(data: dict[str, Any]) -> dict[str, Any]:
    """Write names as JSON has them."""
    return {name[0] + name.title().replace("_", "")[1:]: value for name, value in data.items()}
