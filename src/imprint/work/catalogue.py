"""A catalogue: a person's posts, found by state, kind, words, account and time, a page at a time."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic.alias_generators import to_camel

from imprint.lifecycles.post import PostStatus
from imprint.store.query import Link, query
from imprint.work.audit import Line
from imprint.work.post import Listed, missing_post

_LAST = UUID(int=2**128 - 1)
_LAST_MOMENT = datetime(9999, 1, 1, tzinfo=UTC)

Place = tuple[datetime, UUID]


@dataclass(frozen=True)
class Wanted:
    """What is looked for; None: whatever it is."""

    status: PostStatus | None = None
    kind: str | None = None
    text: str | None = None
    account: UUID | None = None


@dataclass(frozen=True)
class Appointment:
    """One publication in a calendar."""

    id: UUID
    post_id: UUID
    title: str
    kind: str
    post_status: str
    account_id: UUID
    platform: str
    label: str | None
    status: str
    zone: str | None
    scheduled_at: datetime | None
    due_at: datetime

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        data = {to_camel(name): value for name, value in asdict(self).items() if name != "due_at"}
        return {**data, "actualPublishAt": self.due_at}


PAGE = query("catalogue_page", Listed)
CALENDAR = query("catalogue_calendar", Appointment)
HISTORY = query("catalogue_history", Line)


async def page(connection: Link, owner: str, wanted: Wanted, *, after: Place | None = None, limit: int) -> list[Listed]:
    """Give a page of posts, the newest first."""
    place = after or (_LAST_MOMENT, _LAST)
    return await PAGE.all(connection, owner, wanted.status, wanted.kind, wanted.text, wanted.account, *place, limit)


async def calendar(
    connection: Link, owner: str, since: datetime, until: datetime, *, after: Place | None = None, limit: int
) -> list[Appointment]:
    """Give what goes out in a span of time, the earliest first."""
    place = after or (since, UUID(int=0))
    return await CALENDAR.all(connection, owner, since, until, *place, limit)


async def history(connection: Link, owner: str, post: UUID) -> list[Line]:
    """Give what happened to a post and its publications; also to one that is deleted."""
    lines = await HISTORY.all(connection, post, owner)
    if not lines:
        raise missing_post()
    return lines
