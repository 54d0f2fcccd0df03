"""A lease: the right to work on a row until a time; the fence is the number that grows with each lease.

Every write of a holder carries its fence, so that one who was thought dead and wakes up changes nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from imprint.problem import Problem
from imprint.store.db import GONE, Database
from imprint.store.query import Link, Query, query


class LeaseLost(Problem):
    """The lease ended while its holder was at work: whatever it does now no longer counts."""


@dataclass(frozen=True)
class Lease:
    """The right of one holder to one row."""

    id: UUID
    fence: int
    until: datetime
    crashes: int


@dataclass(frozen=True)
class Released:
    """A row that was given back."""

    id: UUID


@dataclass(frozen=True)
class Expired:
    """A row whose holder died, and where it stands now."""

    id: UUID
    fence: int
    crashes: int
    status: str


@dataclass(frozen=True)
class Leased:
    """A table whose rows can be leased."""

    table: str
    _claim: Query[Lease]
    _renew: Query[Lease]
    _release: Query[Released]
    expire: Query[Expired]

    async def claim(self, connection: Link, row: UUID, duration: timedelta) -> Lease | None:
        """Take the lease of a row; None when somebody has it, or the row is not to be worked on now."""
        try:
            async with connection.transaction():
                return await self._claim.first(connection, row, duration)
        except asyncpg.UniqueViolationError:  # another row of the same account won the race
            return None

    async def renew(self, connection: Link, lease: Lease, duration: timedelta) -> Lease | None:
        """Keep a lease for another while; None when it is lost."""
        return await self._renew.first(connection, lease.id, lease.fence, duration)

    async def release(self, connection: Link, lease: Lease) -> bool:
        """Give a row back untouched; False when it was no longer ours to give, or something has already left."""
        return await self._release.first(connection, lease.id, lease.fence) is not None

    @asynccontextmanager
    async def kept(
        self, database: Database, lease: Lease, duration: timedelta, *, since: float | None = None
    ) -> AsyncIterator[None]:
        """Renew the lease by heartbeat while the body runs; end the body with LeaseLost the moment it is lost.

        The deadline is counted on this process's monotonic clock from before each renewal was asked for,
        so it always falls before the moment at which the database lets somebody else in. `since` is when the claim was
        asked for on that clock; without it nobody knows how old the lease is, and it is renewed at once.
        """
        clock = asyncio.get_running_loop()
        beat: asyncio.Task[None] | None = None
        try:
            began = clock.time() if since is None else since
            async with asyncio.timeout_at(began + duration.total_seconds()) as deadline:
                if since is None:
                    async with database.connection() as connection:
                        if await self.renew(connection, lease, duration) is None:
                            raise self._lost(lease)
                beat = asyncio.create_task(self._beat(database, lease, duration, deadline, clock))
                yield
        except TimeoutError as error:
            if deadline.expired():
                raise self._lost(lease) from error
            raise
        finally:
            if beat is not None:
                beat.cancel()
                await asyncio.gather(beat, return_exceptions=True)

    async def _beat(
        self,
        database: Database,
        lease: Lease,
        duration: timedelta,
        deadline: asyncio.Timeout,
        clock: asyncio.AbstractEventLoop,
    ) -> None:
        while True:
            await asyncio.sleep(duration.total_seconds() / 3)
            asked_at = clock.time()
            try:
                async with database.connection() as connection:
                    kept = await self.renew(connection, lease, duration)
            except (*GONE, asyncpg.PostgresError):
                continue  # the database may be well again before the deadline; if not, the deadline decides
            deadline.reschedule(asked_at + duration.total_seconds() if kept else asked_at)
            if not kept:
                return

    def _lost(self, lease: Lease) -> LeaseLost:
        return LeaseLost("lease.lost", f"The lease on {self.table} {lease.id} was lost.")


def _leased(table: str) -> Leased:
    return Leased(
        table,
        query(f"lease_claim_{table}", Lease),
        query(f"lease_renew_{table}", Lease),
        query(f"lease_release_{table}", Released),
        query(f"lease_expire_{table}", Expired),
    )


PUBLICATIONS = _leased("publication")
SOURCES = _leased("source")
