"""A calendar: what goes or went out between two times, with only what a calendar shows of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.problem import Problem
from imprint.store.query import Link, query
from imprint.work.naming import to_camel

# A year and the weeks around it that a page shows with it; more than that is no calendar, but everything there is.
LONGEST = timedelta(days=400)

Place = tuple[datetime, UUID]


@dataclass(frozen=True)
class Appointment:
    """One publication in a calendar; `movable` while it can be given another time."""

    id: UUID
    post_id: UUID
    title: str
    kind: str
    account_id: UUID
    account: str
    platform: str
    due_at: datetime
    status: str
    late: bool
    needs_person: bool
    movable: bool

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {_NAMES[name]: value for name, value in vars(self).items()}


_NAMES = {name: "actualPublishAt" if name == "due_at" else to_camel(name) for name in Appointment.__annotations__}
SPAN = query("calendar_span", Appointment)


async def span(
    connection: Link, owner: str, since: datetime, until: datetime, *, after: Place | None = None, limit: int
) -> list[Appointment]:
    """Give what goes out between two times, the earliest first."""
    if until - since > LONGEST:
        raise Problem("calendar.too_long", f"A calendar shows {LONGEST.days} days at most.")
    return await SPAN.all(connection, owner, since, until, *(after or (since, UUID(int=0))), limit)
