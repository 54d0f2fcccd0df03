"""Content: what is there, what happened to it, and its bytes. What a person may do with it is in content_moves.py."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from imprint.blobs.tally import Promise
from imprint.blobs.tally import Tally as Count
from imprint.lifecycles.content import CONTENT, ContentStatus
from imprint.problem import Problem
from imprint.store.query import Link, query
from imprint.work.prefix import Candidate, bounds, picked
from imprint.work.stores import Place, Stores

PAGE = 100
DOWNLOADABLE = (ContentStatus.UPLOADED, ContentStatus.PROCESSED, ContentStatus.ARCHIVED)
_LAST = UUID(int=2**128 - 1)
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


NEWEST = query("content_newest", Listed)
IN_STATE = query("content_in_state", Listed)
COUNTS = query("content_counts", Counted)
SHOW = query("content_show", Content)
FOUND = query("content_found", Candidate)
OBJECTS = query("content_objects", Kept)
DERIVATIONS = query("content_derivations", Variant)
HISTORY = query("content_history", Line)
ORIGINAL = query("content_original", Bytes)
VARIANT = query("content_variant", Bytes)


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
    return picked(text, await FOUND.all(connection, *bounds(text)), _missing())


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
    found = await living(connection, content)
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


async def living(connection: Link, content: UUID) -> Content:
    """Give a content that is not deleted."""
    found = await SHOW.first(connection, content)
    if found is None or found.deleted_at is not None:
        raise _missing()
    return found


async def _chunks(stores: Stores, held: Bytes) -> AsyncGenerator[bytes, None]:
    async for chunk in stores.of(held.store).read(held.key):
        yield chunk


def _missing() -> Problem:
    return Problem("content.missing", "There is no such content.")


def camel(data: dict[str, Any]) -> dict[str, Any]:
    """Write names as JSON has them."""
    return {name[0] + name.title().replace("_", "")[1:]: value for name, value in data.items()}
