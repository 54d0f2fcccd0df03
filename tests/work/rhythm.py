"""The rhythm of batches: a clock that gives turns when it is told to, and workers that end attempts somehow."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from imprint.engine.clock import Due
from imprint.engine.lease import PUBLICATIONS, Lease
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.batch import Member, Shown, create, show
from imprint.work.desk import Desk
from imprint.work.outcome import Ended, Outcome
from imprint.work.record import settle
from tests.work.posts import LIMITS, MINUTE, OWNER, Author

TURN_DUE = query("clock_turn_due", Due)
PUBLICATION_DUE = query("clock_publication_due", Due)
HALF = timedelta(minutes=30)
ENDS = ("published", "not_yet", "rate_limited", "refused", "no_answer", "stopped")


@dataclass
class Rhythm:
    """Looks at a database's batches and moves them on."""

    database: Database

    async def tick(self) -> list[str]:
        """Let the clock give turns, and name the batches it looked at."""
        async with self.database.transaction("clock", "turn_due") as connection:
            return [each.key for each in await TURN_DUE.all(connection, 500)]

    async def hand_over(self) -> list[UUID]:
        """Let the clock hand over what is due, and name what goes."""
        async with self.database.connection() as connection:
            return [UUID(each.key) for each in await PUBLICATION_DUE.all(connection, 500) if each.go]

    async def front(self, batch: UUID) -> UUID | None:
        """Name the publication that has the turn."""
        found: UUID | None = await self.read("SELECT id FROM publication WHERE batch_id = $1 AND turn = 'front'", batch)
        return found

    async def given(self, batch: UUID) -> UUID:
        """Let the clock give the turn, and name who has it."""
        await self.tick()
        front = await self.front(batch)
        assert front is not None
        return front

    async def claim(self, publication: UUID) -> Lease | None:
        """Take a publication as a worker does."""
        async with self.database.transaction("worker", "its time has come") as connection:
            return await PUBLICATIONS.claim(connection, publication, MINUTE)

    async def tried(self, publication: UUID, how: str, *, after: timedelta = MINUTE) -> None:
        """Take a publication and end its attempt."""
        lease = await self.claim(publication)
        assert lease is not None
        await self.end(lease, how, after=after)

    async def end(self, lease: Lease, how: str, *, after: timedelta = MINUTE) -> None:
        """End an attempt as a worker records it; one that nobody answers has left before."""
        out = "r" if how == "published" else None
        outcome = Outcome(how, how, how, after.total_seconds(), remote_id=out)
        async with self.database.transaction("worker", how) as connection:
            if how == "no_answer":
                await connection.execute(
                    "UPDATE publication SET phase = 'publishing', intent_at = imprint_now() WHERE id = $1", lease.id
                )
            account = await connection.fetchval("SELECT account_id FROM publication WHERE id = $1", lease.id)
            await settle(self.desk, connection, Ended(lease.id, lease.fence, outcome, (), account, 0))

    @property
    def desk(self) -> Desk:
        """Give what recording needs: a database, and no chance."""
        nothing: Any = None
        return Desk(self.database, nothing, nothing, nothing, nothing, nothing, roll=lambda: 0)

    async def shown(self, batch: UUID) -> Shown:
        """Look at a batch."""
        async with self.database.connection() as connection:
            return await show(connection, OWNER, batch)

    async def members(self, batch: UUID) -> list[Member]:
        """Look at the publications of a batch."""
        return (await self.shown(batch)).members

    async def states(self, batch: UUID) -> list[tuple[str, str]]:
        """Say how the publications of a batch stand."""
        return [(each.status, each.turn) for each in await self.members(batch)]

    async def next_at(self, batch: UUID) -> datetime | None:
        """Say when the next turn is given."""
        found: datetime | None = await self.read("SELECT at FROM batch_turn WHERE batch_id = $1", batch)
        return found

    async def read(self, sql: str, *values: Any) -> Any:
        """Read one value by raw SQL."""
        async with self.database.connection() as connection:
            return await connection.fetchval(sql, *values)


async def made(
    author: Author, posts: int = 3, on: int = 1, every: timedelta = HALF, at: datetime | None = None
) -> tuple[UUID, list[UUID], list[UUID]]:
    """Plan posts in a batch on new accounts; give the batch, the posts and the accounts."""
    drafts = [await author.draft() for _ in range(posts)]
    named = [await author.account(uuid4().hex) for _ in range(on)]
    shown = await create(author.database, LIMITS, OWNER, drafts, every=every, accounts=named, at=at)
    return shown.batch.id, drafts, named
