"""A catalogue: a person's posts, found by state, kind, words and account, a page at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from imprint.lifecycles.post import PostStatus
from imprint.store.query import Link, query
from imprint.work.audit import Line
from imprint.work.post import Listed, missing_post

Place = tuple[datetime, UUID]
LAST: Place = (datetime(9999, 1, 1, tzinfo=UTC), UUID(int=2**128 - 1))  # before which everything is


@dataclass(frozen=True)
class Wanted:
    """What is looked for; None: whatever it is."""

    status: PostStatus | None = None
    kind: str | None = None
    text: str | None = None
    account: UUID | None = None


@dataclass(frozen=True)
class Asking:
    """A post that asks a person whether it is out."""

    post_id: UUID


PAGE = query("catalogue_page", Listed)
ASKING = query("catalogue_asking", Asking)
HISTORY = query("catalogue_history", Line)


async def page(connection: Link, owner: str, wanted: Wanted, *, after: Place | None = None, limit: int) -> list[Listed]:
    """Give a page of posts, the newest first."""
    place = after or LAST
    return await PAGE.all(connection, owner, wanted.status, wanted.kind, wanted.text, wanted.account, *place, limit)


async def asking(connection: Link, owner: str, posts: list[UUID]) -> set[UUID]:
    """Tell which of these posts wait for somebody to say whether they are out."""
    return {each.post_id for each in await ASKING.all(connection, owner, posts)}


async def history(connection: Link, owner: str, post: UUID) -> list[Line]:
    """Give what happened to a post and its publications; also to one that is deleted."""
    lines = await HISTORY.all(connection, post, owner)
    if not lines:
        raise missing_post()
    return lines
