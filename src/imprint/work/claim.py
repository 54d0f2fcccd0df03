"""Claiming: takes a publication that is due, if it may go now; otherwise says what it waits for.

What can be asked is asked before the lease is taken, so that a closed account, an open circuit or a platform that wants
fewer calls uses up no attempt.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from imprint.decisions.retry import pause
from imprint.decisions.schedule import Late, Verdict, verdict
from imprint.engine import circuit, pace
from imprint.engine.lease import PUBLICATIONS, Lease
from imprint.killpoint import here
from imprint.lifecycles.publication import PublicationStatus
from imprint.platforms.failure import NotYet, RateLimited, SignInAgain
from imprint.platforms.work import RemoteFile
from imprint.problem import Problem
from imprint.store.query import query
from imprint.work.desk import Desk, account_circuit, host_circuit
from imprint.work.post import Row
from imprint.work.record import LOSE, note
from imprint.work.sign_in import SignedIn, signed_in
from imprint.work.snapshot import Sending, Snapshot, frozen
from imprint.work.stores import Place
from imprint.work.vault import platform

log = structlog.get_logger()

# Whatever is this late is on time: a worker was restarted, an account was busy, the platform wanted a pause.
GRACE = timedelta(minutes=15)
# What a publication costs of an account's pace besides its files: the request that publishes.
CALLS = 1
LATE = {
    Verdict.SKIP: ("late.skipped", "Its time was missed, and it was to be skipped then."),
    Verdict.ASK: (
        "late.ask",
        "Its time was missed by too much to publish it unasked; publish it now, schedule it anew or delete it.",
    ),
}


@dataclass(frozen=True)
class Standing:
    """A publication as a worker finds it."""

    id: UUID
    post_id: UUID
    owner: str
    account_id: UUID
    platform: str
    file_id: UUID | None
    status: str
    due_at: datetime
    now: datetime
    connected: bool
    late_policy: str
    late_hours: int | None
    left: bool

    @property
    def sending(self) -> Sending:
        """Say what it is: one post, or one file of it, on one account."""
        return Sending(self.id, self.post_id, self.owner, self.account_id, self.platform, self.file_id)


@dataclass(frozen=True)
class Taken:
    """What was said before of a publication that is now ours, and what is known to have become of it."""

    made_at: datetime
    left_for: timedelta | None
    snapshot: str | None
    snapshot_sha256: str | None
    revision: int
    known_id: str | None
    known_url: str | None
    troubled: bool

    @property
    def frozen(self) -> Snapshot | None:
        """Give what an earlier attempt may have put out: only the very same is sent again."""
        if self.left_for is None or self.snapshot is None or self.snapshot_sha256 is None:
            return None
        return Snapshot(self.snapshot, self.snapshot_sha256)


@dataclass(frozen=True)
class Claimed:
    """A publication that is ours: since when on this process's clock, as whom, and what it sends.

    `places` is where the bytes of its files are, as far as that was looked up already.
    """

    sending: Sending
    lease: Lease
    since: float
    signed_in: SignedIn
    taken: Taken
    snapshot: Snapshot
    places: Mapping[UUID, Place]
    uploads: tuple[RemoteFile, ...]
    circuits: tuple[str, ...]


class _Wait(Exception):  # noqa: N818 - no error: it takes back what was begun
    """It may not go yet, but at a moment or after a while, and why."""

    def __init__(self, why: str, *, until: datetime | None = None, wait: timedelta | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.until = until
        self.wait = wait


STANDING = query("publish_standing", Standing)
TAKEN = query("publish_taken", Taken)
UPLOADS = query("publish_uploads", RemoteFile)
HOLD = query("publish_hold", Row)
REFUSE = query("publish_refuse", Row)


async def claim(desk: Desk, publication: UUID) -> Claimed | None:
    """Take a publication; None when it is not to go now, and why is in its row."""
    async with desk.database.connection() as connection:
        standing = await STANDING.first(connection, publication)
    if standing is None or standing.status != PublicationStatus.PENDING or not standing.connected:
        return None  # somebody else was faster, or a person took it back
    match _late(desk, standing):
        case Verdict.WAIT:
            return None  # it was rescheduled after it had been handed over
        case (Verdict.SKIP | Verdict.ASK) as too_late:
            await _refuse(desk, publication, *LATE[too_late])
            return None
    if (login := await _signed_in(desk, standing)) is None:
        return None
    try:
        return await _take(desk, standing, login)
    except _Wait as wait:
        async with desk.database.connection() as connection:
            await HOLD.first(connection, publication, wait.until, wait.wait, wait.why)
    except Problem as problem:  # the post itself: it has lost a file, or its text is not what the platform wants
        await _refuse(desk, publication, problem.code, problem.sentence)
    return None


async def _take(desk: Desk, standing: Standing, login: SignedIn) -> Claimed | None:
    key, to = account_circuit(standing.account_id), platform(standing.platform)
    host, most = to.host(login.login), to.limits_for(login.login).most_files
    circuits = tuple(sorted([key, *([host_circuit(host)] if host else [])]))
    since = asyncio.get_running_loop().time()
    async with desk.database.transaction(desk.actor, "its time has come") as connection:
        lease = await PUBLICATIONS.claim(connection, standing.id, desk.lease)
        if lease is None:
            return None
        taken = await TAKEN.one(connection, standing.id, list(circuits))
        for each in circuits if taken.troubled else ():
            answer = await circuit.ask(connection, each, circuit.PUBLISHING)
            if not answer.may_call:
                raise _Wait("circuit", until=answer.until)
        places: Mapping[UUID, Place] = {}
        if (snapshot := taken.frozen) is None:
            try:
                snapshot, places = await frozen(connection, standing.sending, taken.made_at, most)
            except Problem as problem:
                if not standing.left:
                    raise
                # It may be out, and nobody can send it again as it was: somebody looks, and then a person decides.
                await LOSE.first(connection, standing.id, lease.fence, desk.policy.quiet)
                await note(connection, standing.id, "unknown", f"It may be out. {problem.sentence}")
                return None
        first = lease.fence == 1
        uploads = () if first else tuple(await UPLOADS.all(connection, standing.id, taken.revision))
        wait = await pace.take(
            connection, key, pace.PUBLISHING, timedelta(0), calls=CALLS + len(snapshot.data["files"]) - len(uploads)
        )
        if wait > timedelta(0):
            raise _Wait("pace", wait=wait)
        here("claim_before_commit")
    here("claim_after_commit")
    return Claimed(standing.sending, lease, since, login, taken, snapshot, places, uploads, circuits)


async def _signed_in(desk: Desk, standing: Standing) -> SignedIn | None:
    """Sign in; when that does not work now the publication waits, and with it whatever else wants the account."""
    try:
        return await signed_in(desk.database, desk.vault, desk.wire, standing.account_id)
    except SignInAgain:
        return None  # the account says so itself, and what waits for it goes on when it is connected again
    except (NotYet, RateLimited) as failure:
        async with desk.database.transaction(desk.actor, failure.sentence) as connection:
            kind: circuit.Kind = "rate limit" if isinstance(failure, RateLimited) else "error"
            told = await circuit.failed(
                connection,
                account_circuit(standing.account_id),
                circuit.PUBLISHING,
                kind,
                failure.sentence,
                after=failure.after,
            )
            wait = failure.after or pause(told.errors + told.rate_limits, 0.5 + desk.roll() / 2)
            await HOLD.first(connection, standing.id, None, min(wait, desk.policy.longest_wait), "sign-in")
    except Problem as problem:  # no sign-in, no key to open it with, a platform that this Imprint does not know
        await _refuse(desk, standing.id, problem.code, problem.sentence)
    return None


def _late(desk: Desk, standing: Standing) -> Verdict:
    if standing.left and standing.due_at <= standing.now:
        return Verdict.GO  # it may be out: to find out cannot be too late
    hours = desk.settings.late_hours if standing.late_hours is None else standing.late_hours
    return verdict(standing.now, standing.due_at, Late(standing.late_policy), timedelta(hours=hours), GRACE)


async def _refuse(desk: Desk, publication: UUID, code: str, sentence: str) -> None:
    async with desk.database.transaction(desk.actor, sentence) as connection:
        await REFUSE.first(connection, publication, code, sentence)
    log.warning("a publication cannot go out", publication=str(publication), code=code)
