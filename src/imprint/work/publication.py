"""Publications: the log of what went out, goes out or did not, and everything about one of them."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from imprint.lifecycles.lifecycle import Arrow
from imprint.lifecycles.publication import PUBLICATION, PublicationStatus
from imprint.log import hide_in_text
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work import schedule
from imprint.work.naming import to_camel
from imprint.work.schedule import Changed

FIRST_MOMENT, LAST_MOMENT = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_LAST = UUID(int=2**128 - 1)

Place = tuple[datetime, UUID]


@dataclass(frozen=True)
class Wanted:
    """What is looked for; None: whatever it is."""

    status: PublicationStatus | None = None
    post: UUID | None = None
    account: UUID | None = None
    platform: str | None = None
    since: datetime = FIRST_MOMENT
    until: datetime = LAST_MOMENT
    needs_person: bool | None = None


@dataclass(frozen=True)
class Publication:
    """A publication: a post on an account, when it goes or went, and what became of it.

    `left` once it may have left, `dismissed` when it failed and nobody wants it any more.
    """

    id: UUID
    post_id: UUID
    title: str
    account_id: UUID
    account: str
    platform: str
    file_id: UUID | None
    status: str
    status_at: datetime
    phase: str | None
    scheduled_at: datetime | None
    zone: str | None
    due_at: datetime
    published_at: datetime | None
    remote_id: str | None
    url: str | None
    error_code: str | None
    attempts: int
    crashes: int
    held_why: str | None
    held_until: datetime | None
    look_at: datetime | None
    batch_id: UUID | None
    left: bool
    dismissed: bool
    late: bool
    needs_person: bool

    @property
    def moves(self) -> list[Arrow]:
        """List the moves that are open to it now: what may have left is not called back, nor what nobody wants."""
        if self.dismissed:
            return []
        barred = {"cancel"} if self.left else set()
        return [arrow for arrow in PUBLICATION.open_to(self.status) if arrow.name not in barred]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        data = {to_camel(name): value for name, value in vars(self).items() if name != "due_at"}
        moves = [{"name": arrow.name, "to": str(arrow.target), "why": arrow.why} for arrow in self.moves]
        return {**data, "actualPublishAt": self.due_at, "moves": moves}


@dataclass(frozen=True)
class Attempt:
    """One try of one worker: when it began, how late that was, what it was about to send, and how it ended."""

    number: int
    worker: str | None
    began_at: datetime
    drift_seconds: float | None
    intent_at: datetime | None
    deadline: datetime | None
    request_sha256: str | None
    ended_at: datetime | None
    outcome: str | None
    code: str | None
    sentence: str | None
    stage: str | None
    http_status: int | None
    remote_id: str | None
    url: str | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data; passwords that somebody else put into a sentence are hidden."""
        data = {to_camel(name): value for name, value in asdict(self).items()}
        return {**data, "sentence": hide_in_text(self.sentence) if self.sentence else None}


PAGE = query("publication_page", Publication)
SHOW = query("publication_show", Publication)
ATTEMPTS = query("publication_attempts", Attempt)


async def page(
    connection: Link, owner: str, wanted: Wanted, *, after: Place | None = None, limit: int
) -> list[Publication]:
    """Give a page of a person's publications, those due last first."""
    return await PAGE.all(
        connection,
        owner,
        wanted.status,
        wanted.post,
        wanted.account,
        wanted.platform,
        wanted.since,
        wanted.until,
        wanted.needs_person,
        *(after or (LAST_MOMENT, _LAST)),
        limit,
    )


async def show(connection: Link, owner: str, publication: UUID) -> Publication:
    """Give one publication of a person."""
    found = await SHOW.first(connection, publication, owner)
    if found is None:
        raise Problem("publication.missing", "There is no such publication.")
    return found


async def attempts(connection: Link, publication: UUID) -> list[Attempt]:
    """Give what was tried of a publication that was found to be the person's."""
    return await ATTEMPTS.all(connection, publication)


async def retry(database: Database, owner: str, publication: UUID) -> list[Changed]:
    """Try one publication that failed once more."""
    async with database.connection() as connection:
        found = await show(connection, owner, publication)
    return await schedule.retry(database, owner, found.post_id, publications=[publication])
