"""Reconciling: finds out what became of a publication that left without a trustworthy answer.

Its sender is dead or past its deadline, and a quiet period is over. If the platform still knows our key, the same is
sent again with the same key. Otherwise somebody looks, several times, since platforms show new things late; what is
found is out, what is not found proves nothing: then a person decides.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from imprint.decisions import publishing as decisions
from imprint.decisions.publishing import decide
from imprint.engine.queue import Job
from imprint.killpoint import here
from imprint.lifecycles.publication import PublicationStatus
from imprint.platforms.contract import Receipt
from imprint.platforms.failure import Failure, Refused, SignInAgain
from imprint.platforms.work import Work
from imprint.problem import Problem
from imprint.store.query import Link, query
from imprint.work.desk import Desk
from imprint.work.outcome import Outcome, failed, published
from imprint.work.post import Row
from imprint.work.record import HOLD, SUCCEED, Held, note
from imprint.work.sign_in import SignedIn, sign_in_again, signed_in
from imprint.work.snapshot import Snapshot, look
from imprint.work.vault import platform

log = structlog.get_logger()

LOOK_SECONDS = 60.0
# Longer than a look can take, so that nobody else looks at the same time.
TAKEN = timedelta(seconds=180)
ALIKE = Outcome("not_yet", "look.alike", "What was found may as well be another post of the same title.")


@dataclass(frozen=True)
class Looked:
    """An unknown publication that is ours to look for, and what may be out."""

    id: UUID
    fence: int
    post_id: UUID
    account_id: UUID
    snapshot: str | None
    snapshot_sha256: str | None
    since: datetime


@dataclass(frozen=True)
class Other:
    """What belongs to another publication."""

    id: str


@dataclass(frozen=True)
class Seen:
    """What a look told: a receipt, nothing, or why it did not work."""

    event: decisions.Event
    outcome: Outcome | None = None
    version: int = 0


@dataclass(frozen=True)
class Twins:
    """How many others what was found may as well be."""

    twins: int


TAKE = query("reconcile_take", Looked)
TWINS = query("reconcile_twins", Twins)
OTHERS = query("reconcile_others", Other)
LATER = query("reconcile_later", Row)
ASK = query("reconcile_ask", Row)
SEND_AGAIN = query("reconcile_send_again", Row)


@dataclass(frozen=True)
class Reconciler:
    """Does the job "reconcile"."""

    desk: Desk

    async def reconcile(self, job: Job) -> None:
        """Act on an unknown publication whose look is due; anything else is left alone."""
        async with self.desk.database.transaction(self.desk.actor, "its look is due") as connection:
            looked = await TAKE.first(connection, UUID(job.key), TAKEN)
            held = await HOLD.first(connection, UUID(job.key))
        if looked is None or held is None:
            return
        here("look_taken")
        first = decide(held.known(), decisions.Due(), policy=self.desk.policy)
        if isinstance(first, decisions.Look):
            seen = await self._look(held, looked)
            here("look_answered")
            await self._settle(looked, seen)
        else:
            await self._settle(looked, Seen(decisions.Due()))

    async def _look(self, held: Held, looked: Looked) -> Seen:
        desk, of = self.desk, platform(held.platform)
        version = 0
        try:
            login = await signed_in(desk.database, desk.vault, desk.wire, held.account_id)
            version = login.version
            async with desk.database.connection() as connection:
                others = await OTHERS.all(connection, held.account_id, looked.since, looked.id)
                snapshot = await _snapshot(connection, looked, of.limits_for(login.login).most_files)
            work = snapshot.work(lambda _: _nothing)
            besides = frozenset(each.id for each in others)
            wire = desk.wire.to(login.login)
            try:
                found = await of.find(wire.within(LOOK_SECONDS), login.login, work, looked.since, besides)
            except SignInAgain as refused:
                if not refused.renewable:
                    raise
                login = await signed_in(desk.database, desk.vault, desk.wire, held.account_id, refused=login.version)
                version = login.version
                found = await of.find(wire.within(LOOK_SECONDS), login.login, work, looked.since, besides)
            if found is not None and not await self._must_be(held, looked, login, work, found, besides):
                return Seen(decisions.NotFound(), ALIKE)
        except Failure as failure:
            outcome = failed(failure)
            # A look that is refused will always be: it tells as little as one that finds nothing, and counts as one.
            told = decisions.NotFound() if isinstance(failure, Refused) else outcome.event()
            return Seen(told, outcome, version)
        except Problem as problem:  # no sign-in, no key, nothing to look for: in the end a person decides
            return Seen(decisions.NotFound(), Outcome("not_yet", problem.code, problem.sentence))
        return _told(found)

    async def _must_be(
        self, held: Held, looked: Looked, login: SignedIn, work: Work, found: Receipt, besides: frozenset[str]
    ) -> bool:
        """Say whether what was found is this one: where others look alike and may be out, only if all are there."""
        async with self.desk.database.connection() as connection:
            twins = (await TWINS.one(connection, held.account_id, looked.id, work.title, looked.since)).twins
        http = self.desk.wire.to(login.login).within(LOOK_SECONDS)
        for _ in range(twins):
            besides |= {found.remote_id}
            other = await platform(held.platform).find(http, login.login, work, looked.since, besides)
            if other is None:
                return False
            if other.remote_id in besides:
                return True  # this platform was asked by the key: there is no mistaking it
            found = other
        return True

    async def _settle(self, looked: Looked, seen: Seen) -> None:
        desk, row = self.desk, looked.id
        said = seen.outcome.sentence if seen.outcome and seen.outcome.sentence else ""
        async with desk.database.transaction(desk.actor, said or "somebody looked") as connection:
            if isinstance(seen.event, decisions.SignInAgain) and seen.version and seen.outcome:
                problem = Problem(seen.outcome.code or "sign_in", said)
                await sign_in_again(connection, looked.account_id, seen.version, problem)
            held = await HOLD.first(connection, row)
            if held is None or held.fence != looked.fence or held.status != PublicationStatus.UNKNOWN:
                return  # somebody else has found out meanwhile
            await self._apply(connection, held, looked, seen, said)
            here("look_before_commit")
        here("look_after_commit")

    async def _apply(self, connection: Link, held: Held, looked: Looked, seen: Seen, said: str) -> None:
        row, fence = looked.id, looked.fence
        match decide(held.known(), seen.event, policy=self.desk.policy):
            case decisions.Succeed() if seen.outcome:
                url = seen.outcome.url
                line = f"A look found it: {url}" if url else "A look found it."
                await SUCCEED.first(connection, row, seen.outcome.remote_id, url, fence, "found", line[:2000])
            case decisions.SendAgain(left):
                await SEND_AGAIN.first(connection, row, fence, left)
                line = (
                    f"It is sent again with the same key, which {held.platform} still knows: it cannot come out twice."
                )
                await note(connection, row, "resent", line)
            case decisions.LookLater(after):
                counts = isinstance(seen.event, decisions.NotFound)
                await LATER.first(connection, row, fence, after, int(counts), False)  # noqa: FBT003 - a value of a statement
                minutes = f"{after.total_seconds() / 60:.0f} min"
                line = f"{said or 'A look found nothing, which proves nothing.'} Somebody looks again in {minutes}."
                await note(connection, row, "looked", line, seconds=after.total_seconds())
            case decisions.HoldAccount():
                await LATER.first(connection, row, fence, timedelta(0), 0, True)  # noqa: FBT003 - a value of a statement
                line = f"{held.platform} wants a new sign-in before anybody can look: {said}"
                await note(connection, row, "sign-in", line, platform=held.platform)
            case decisions.AskPerson():
                await ASK.first(connection, row, fence, int(isinstance(seen.event, decisions.NotFound)))
                line = f"Nobody can tell whether it is out on {held.platform}. Please look, and resolve it."
                await note(connection, row, "asks", line)
            case action:
                log.warning("nothing to do for an unknown publication", publication=str(row), action=str(action))


def _told(found: Receipt | None) -> Seen:
    return Seen(decisions.NotFound()) if found is None else Seen(decisions.Accepted(), published(found))


async def _snapshot(connection: Link, looked: Looked, most: int | None) -> Snapshot:
    """Give what was sent; when that was forgotten with a database, what would be sent now is the best there is."""
    if looked.snapshot is None or looked.snapshot_sha256 is None:
        return await look(connection, looked.id, looked.since, most)
    return Snapshot(looked.snapshot, looked.snapshot_sha256)


async def _nothing() -> AsyncIterator[bytes]:
    """Give no bytes: a look sends no file."""
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk
