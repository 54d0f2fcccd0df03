"""A poll: one source is asked once, what it gave is taken in, and its next time is decided.

The lease on the source's row is the right to ask it, and its host's as well: the database lets one source of a host be
asked at a time. Whoever dies in between leaves a lease that ends by itself, and nothing half done: all that a poll
found, how the next one goes on and when, is one transaction under the fence. A failure is no accident: it is counted in
the row, shown, and tried again ever later; five in a row let the source rest for a day.
"""

import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Self
from uuid import UUID

import structlog

from imprint.decisions import polling
from imprint.decisions.polling import Intervals, Missing, Priority
from imprint.engine import circuit, pace
from imprint.engine.lease import SOURCES, Lease, LeaseLost
from imprint.engine.queue import Job
from imprint.problem import Busy
from imprint.settings import Settings
from imprint.sources.contract import Failure, Fetched, NotYet, Place, RateLimited, State
from imprint.store.db import TROUBLE, Database
from imprint.store.query import Link, Nothing, query
from imprint.work import place as places
from imprint.work.fetcher import Fetcher, HostBusy
from imprint.work.ingest import NOTHING_TAKEN, Carrier, Ingested, ingest

log = structlog.get_logger()

ACTOR = "poll"
ATTEMPTS = 3
OVERLAP = timedelta(days=7)  # what a server dates back by so much is still found by asking for what is new
READ_ALL_EVERY = timedelta(days=1)
ONCE_MORE = timedelta(minutes=2)  # after which a source with a gap in its numbers is asked again
NOBODYS = timedelta(hours=1)  # how long a source of no series is left alone
GO_ON = timedelta(seconds=5)  # when a list was longer than one poll reads


@dataclass(frozen=True)
class Known:
    """A source as a poll finds it."""

    id: UUID
    series_id: UUID
    title: str
    kind: str
    ref: str
    host: str
    languages: list[str]
    status: str
    priority: Priority
    priority_before: Priority | None
    priority_fixed: bool
    etag: str | None
    last_modified: str | None
    cursor: str | None
    rhythm: timedelta | None
    last_worked_at: datetime | None
    last_news_at: datetime | None
    caught_up_at: datetime | None
    read_all_at: datetime | None
    failures: int
    gap_from: Decimal | None
    gap_to: Decimal | None
    now: datetime
    trusted: bool

    @property
    def circuit(self) -> str:
        """Name its circuit."""
        return f"source:{self.id}"

    @property
    def state(self) -> State:
        """Give what its next request goes on from."""
        return State(self.etag, self.last_modified, self.cursor)

    @property
    def since(self) -> datetime | None:
        """Say from when on it is asked for news; None: for everything."""
        if self.caught_up_at is None or self.cursor is not None or self.last_worked_at is None:
            return None
        if self.read_all_at is None or self.now - self.read_all_at >= READ_ALL_EVERY:
            return None
        return self.last_worked_at - OVERLAP


@dataclass(frozen=True)
class Standing:
    """Where a source stands after a poll."""

    id: UUID
    status: str
    priority: Priority
    next_check_at: datetime


@dataclass(frozen=True)
class There:
    """How many numbers of a gap are there by now."""

    there: int


@dataclass(frozen=True)
class Polled:
    """What came of a poll; `error` is the sentence of what failed."""

    chapters: int = 0
    releases: int = 0
    notices: int = 0
    set_aside: int = 0
    changed: bool = True
    code: str | None = None
    error: str | None = None
    next_check_at: datetime | None = None


READ = query("poll_read", Known)
CLAIM_NOW = query("poll_claim_now", Lease)
WORKED = query("poll_worked", Standing)
WATCHED = query("poll_watched", Nothing)
FAILED = query("poll_failed", Standing)
PUT_OFF = query("poll_put_off", Standing)
GAP = query("poll_gap", There)


@dataclass(frozen=True)
class Poller:
    """Asks sources and takes in what they give."""

    database: Database
    settings: Settings
    fetcher: Fetcher

    @classmethod
    def of(cls, database: Database, settings: Settings) -> Self:
        """Put one together; one in each worker, so that a host's requests share one client."""
        return cls(database, settings, Fetcher(database, settings))

    @property
    def lease(self) -> timedelta:
        """Say how long a lease lasts without being renewed."""
        return timedelta(seconds=self.settings.lease_seconds)

    @property
    def intervals(self) -> Intervals:
        """Give the waits that are set."""
        each = self.settings
        minutes = (each.poll_hot_minutes, each.poll_warm_minutes, each.poll_cold_minutes)
        return Intervals(*(timedelta(minutes=number) for number in minutes))

    async def poll(self, job: Job) -> None:
        """Ask a source that is due; a second delivery finds it leased, or no longer due."""
        async with self.database.connection() as connection:
            lease = await SOURCES.claim(connection, UUID(job.key), self.lease)
        if lease is not None:
            await self._polled(lease, last=job.failures + 1 >= ATTEMPTS)

    async def now(self, source: UUID) -> Polled:
        """Ask a source because a person wants it, due or not, resting or not."""
        async with self.database.connection() as connection:
            lease = await CLAIM_NOW.first(connection, source, self.lease)
        if lease is None:
            raise Busy(
                "source.busy", "It, or another source of its host, is being asked at this moment; or it is disabled."
            )
        return await self._polled(lease, last=True, asked_for=True)

    async def _polled(self, lease: Lease, *, last: bool, asked_for: bool = False) -> Polled:
        """Ask; a lease that is lost on the way makes it somebody else's poll."""
        try:
            return await self._asked(lease, last=last, asked_for=asked_for)
        except LeaseLost:
            log.warning("somebody else asks this source by now", source=str(lease.id))
            return Polled(changed=False)

    async def _asked(self, lease: Lease, *, last: bool, asked_for: bool) -> Polled:
        """Ask, and decide what every way in which that can end means for the row."""
        known: Known | None = None
        try:
            async with SOURCES.kept(self.database, lease, self.lease):
                known = await self._known(lease, asked_for=asked_for)
                if known is None:
                    return Polled(changed=False)
                asked = Place(known.ref, known.title, tuple(known.languages))
                fetched = await self.fetcher.fetch(known.kind, asked, known.state, known.since, trusted=known.trusted)
            return await self._worked(lease, known, fetched, asked_for=asked_for)
        except LeaseLost:
            raise
        except HostBusy as busy:
            await self._put_off(lease, busy.wait)
            return Polled(changed=False)
        except Failure as failure:
            return await self._failed(lease, known, failure)
        except Exception as error:
            with suppress(*TROUBLE):  # with the database away the lease ends by itself
                if last:  # held as a dead letter; the row goes on, later
                    bug = Failure("poll.bug", f"There is a mistake in Imprint ({type(error).__name__}).")
                    await self._failed(lease, known, bug)
                else:
                    await self._release(lease)
            raise
        except BaseException:
            await self._release(lease)  # the worker was told to stop
            raise

    async def _known(self, lease: Lease, *, asked_for: bool) -> Known | None:
        """Read the source; None when its circuit does not let it be asked, or it is of no series."""
        async with self.database.connection() as connection:
            known = await READ.first(connection, lease.id)
            if known is None:
                await PUT_OFF.first(connection, lease.id, lease.fence, NOBODYS)
                return None
            answer = None if asked_for else await circuit.ask(connection, known.circuit, circuit.POLLING)
            if answer is not None and not answer.may_call:
                wait = answer.until - known.now if answer.until else self.lease
                await PUT_OFF.first(connection, lease.id, lease.fence, max(wait, timedelta(seconds=1)))
                return None
            return known

    async def _worked(self, lease: Lease, known: Known, fetched: Fetched, *, asked_for: bool) -> Polled:
        """Take in what was fetched and record the poll, in one transaction under the fence."""
        carrier = Carrier(known.id, known.series_id, first=known.caught_up_at is None, whole=fetched.whole)
        async with self.database.transaction(ACTOR, "it was asked for news") as connection:
            done = Ingested(NOTHING_TAKEN, 0, None, known.now)
            if not fetched.not_modified:
                done = await ingest(connection, carrier, fetched)
            forget = circuit.forget if asked_for else circuit.worked
            await forget(connection, known.circuit)
            standing = await self._record(connection, lease, known, fetched, done)
            await pace.ease(connection, f"host:{known.host}", self.fetcher.policy(known.host))
        taken = done.taken
        tell = log.info if taken.releases else log.debug
        new = {"chapters": taken.chapters, "releases": taken.releases, "notices": taken.notices}
        tell("asked a source", source=str(known.id), **new)
        return Polled(
            taken.chapters,
            taken.releases,
            taken.notices,
            done.set_aside,
            changed=not fetched.not_modified,
            next_check_at=standing.next_check_at,
        )

    async def _record(self, connection: Link, lease: Lease, known: Known, fetched: Fetched, done: Ingested) -> Standing:
        """Decide when the source is asked again and how, and write it down; raise when the lease is lost."""
        now, news = done.now, done.taken.releases > 0
        dates = [each.published_at for each in fetched.chapters if each.published_at and each.published_at <= now]
        last_news = known.last_news_at
        if news:
            last_news = max(dates, default=now) if known.caught_up_at is None else now
        quiet_before = now - known.last_news_at if news and known.caught_up_at and known.last_news_at else None
        beat = polling.rhythm(dates if news else [], known.rhythm, quiet_before)
        quiet = max(now - (last_news or known.caught_up_at or now), timedelta(0))
        before = Priority(known.priority_before or known.priority)
        urgency = before if known.priority_fixed else polling.priority(quiet, beat)
        every = polling.wait(urgency, self.intervals, beat, quiet, random.random())  # noqa: S311 - no secret
        wish = fetched.wish
        at = polling.heeded(now + every, now, wish.after, wish.skip_hours, wish.skip_days)
        lacking = done.missing
        once_more = lacking is not None and (known.gap_from, known.gap_to) != (lacking.first, lacking.last)
        lacking = lacking or await self._still_missing(connection, known)
        if once_more or not fetched.complete:
            at = now + max(ONCE_MORE if once_more else GO_ON, min(wish.after or timedelta(0), polling.LONGEST_WISH))
        state = State() if once_more else fetched.state
        read_all = fetched.whole or (known.cursor is not None and fetched.complete)
        moved = fetched.moved_to if known.kind == "feed" and fetched.moved_to else known.ref
        await WATCHED.run(connection, known.series_id, fetched.complete, (fetched.title or "")[:500] or None)
        standing = await WORKED.first(
            connection,
            known.id,
            lease.fence,
            urgency,
            state.etag,
            state.last_modified,
            state.cursor,
            beat,
            every,
            at,
            last_news,
            fetched.complete,
            None if once_more else now if read_all else known.read_all_at,
            lacking.first if lacking else None,
            lacking.last if lacking else None,
            places.host(places.Place(known.kind, moved), self.settings),
            moved,
        )
        if standing is None:
            raise LeaseLost("lease.lost", f"The lease on source {known.id} was lost.")
        return standing

    async def _still_missing(self, connection: Link, known: Known) -> Missing | None:
        """Say which gap of before is still one."""
        if known.gap_from is None or known.gap_to is None:
            return None
        found = await GAP.one(connection, known.series_id, known.gap_from, known.gap_to)
        whole = found.there > known.gap_to - known.gap_from
        return None if whole else Missing(known.gap_from, known.gap_to)

    async def _failed(self, lease: Lease, known: Known | None, failure: Failure) -> Polled:
        """Count a failure, and decide when to try again; one too many lets the source rest."""
        after = failure.after if isinstance(failure, NotYet) else None
        limited = isinstance(failure, RateLimited)
        urgency, failures = (Priority(known.priority), known.failures) if known else (Priority.HOT, 0)
        wait = polling.back_off(failures + 1, urgency, self.intervals)
        async with self.database.transaction(ACTOR, failure.sentence[:500]) as connection:
            stands = await circuit.failed(
                connection,
                f"source:{lease.id}",
                circuit.POLLING,
                "rate limit" if limited else "error",
                failure.sentence,
                after=after,
            )
            if known and limited:
                await pace.slow(connection, f"host:{known.host}", self.fetcher.policy(known.host), after)
            standing = await FAILED.first(
                connection,
                lease.id,
                lease.fence,
                failure.code[:100],
                _short(failure.sentence),
                wait,
                stands.open_until,
                stands.openings > 0,
            )
            if standing is None:
                raise LeaseLost("lease.lost", f"The lease on source {lease.id} was lost.")
        log.warning(
            "a source could not be read",
            source=str(lease.id),
            why=failure.sentence,
            again_at=str(standing.next_check_at),
        )
        return Polled(changed=False, code=failure.code, error=failure.sentence, next_check_at=standing.next_check_at)

    async def _put_off(self, lease: Lease, wait: timedelta) -> None:
        async with self.database.connection() as connection:
            await PUT_OFF.first(connection, lease.id, lease.fence, wait)

    async def _release(self, lease: Lease) -> None:
        async with self.database.connection() as connection:
            await SOURCES.release(connection, lease)


def _short(sentence: str) -> str:
    clean = sentence.replace("\0", "").encode("utf-8", "replace").decode()
    return clean if len(clean) <= 1000 else clean[:999] + "…"  # noqa: PLR2004 - as the column
