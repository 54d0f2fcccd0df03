"""A collection: the content of one person; what belongs to somebody else is not there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from imprint.lifecycles.content import ContentStatus
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work import content_moves as moves
from imprint.work.content import Counted, Listed
from imprint.work.content_moves import Outcome

PAGE = 100
_LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC)
_FIRST, _LAST = UUID(int=0), UUID(int=2**128 - 1)


@dataclass(frozen=True)
class Own:
    """A content that belongs to the person."""

    id: UUID


LIST = query("collection_list", Listed)
COUNTS = query("collection_counts", Counted)
HAS = query("collection_has", Own)
FAILED = query("collection_failed", Own)


async def listed(
    connection: Link,
    owner: str,
    *,
    status: ContentStatus | None = None,
    after: tuple[datetime, UUID] | None = None,
    limit: int = PAGE,
) -> list[Listed]:
    """Give a page of a person's content, the newest first."""
    return await LIST.all(connection, owner, status, *(after or (_LAST_MOMENT, _LAST)), limit)


async def counts(connection: Link, owner: str) -> dict[str, int]:
    """Count a person's content in each state."""
    return {row.status: row.contents for row in await COUNTS.all(connection, owner)}


async def expect(connection: Link, owner: str, content: UUID) -> None:
    """Raise unless a content belongs to a person; whose it is never changes, so that this holds from then on."""
    if not await HAS.all(connection, [content], owner):
        raise _missing()


async def update_many(
    database: Database, settings: Settings, owner: str, chosen: Sequence[UUID], target: str
) -> list[Outcome]:
    """Move many contents of a person, and say of each what became of it."""
    async with database.connection() as connection:
        own = {row.id for row in await HAS.all(connection, list(chosen), owner)}
    outcomes = []
    for content in dict.fromkeys(chosen):
        if content in own:
            outcomes += await moves.update_many(database, settings, [content], target, owner)
        else:
            missing = _missing()
            outcomes.append(Outcome(content, done=False, code=missing.code, sentence=missing.sentence))
    return outcomes


async def retry_failed(database: Database, settings: Settings, owner: str) -> list[Outcome]:
    """Try every content of a person again that failed, and say of each whether that was possible."""
    outcomes: list[Outcome] = []
    after = _FIRST
    while True:
        async with database.connection() as connection:
            page = [row.id for row in await FAILED.all(connection, owner, after, PAGE)]
        outcomes += await moves.update_many(database, settings, page, ContentStatus.PROCESSING, owner)
        if len(page) < PAGE:
            return outcomes
        after = page[-1]


def _missing() -> Problem:
    return Problem("content.missing", "There is no such content.")
