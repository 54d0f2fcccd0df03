"""Manners: how an account is called at the moment, its pace and its circuit, for people who wonder why it is slow."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from imprint.engine.pace import PUBLISHING
from imprint.log import hide_in_text
from imprint.store.query import Link, query


@dataclass(frozen=True)
class Manners:
    """The gap between calls of an account, when the next one may be, and what keeps it from being called."""

    id: UUID
    now: datetime
    gap: timedelta | None
    next_at: datetime | None
    failures: int
    open_until: datetime | None
    why: str | None
    held_until: datetime | None

    @property
    def slow(self) -> timedelta | None:
        """Give the gap between calls when the platform has asked for fewer of them."""
        return self.gap if self.gap is not None and self.gap > PUBLISHING.least else None

    @property
    def quiet_until(self) -> datetime | None:
        """Say until when no call is made, since the platform asked for that."""
        soon = self.now + PUBLISHING.least * 2
        return self.next_at if self.next_at is not None and self.next_at > soon else None

    @property
    def rests_until(self) -> datetime | None:
        """Say until when it is left alone, since calls kept failing: its own, or those of everybody at its host."""
        ends = [end for end in (self.open_until, self.held_until) if end is not None and end > self.now]
        return max(ends, default=None)

    @property
    def tries(self) -> bool:
        """Say whether its rest is over and the next call will show whether it is well again."""
        return self.open_until is not None and self.open_until <= self.now

    @property
    def error(self) -> str:
        """Give the last error, without what is nobody's concern."""
        return hide_in_text(self.why or "").rstrip(".")


OF = query("account_manners", Manners)


async def manners(connection: Link, owner: str) -> dict[UUID, Manners]:
    """Give how each account of a person is called now."""
    return {each.id: each for each in await OF.all(connection, owner)}
