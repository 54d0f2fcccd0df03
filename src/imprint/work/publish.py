"""Publish: the heart of Imprint. A publication goes out once, on time, or a person is told exactly why not.

    claim    take the lease of one that is due and may go; freeze what it sends          (work/claim.py)
    upload   every file that the platform has not got yet; each remote id is committed before the next step
    intend   commit that a request is about to leave, exactly which one, and until when
    send     once, on a connection of its own, with a deadline that the lease outlives
    classify by typed evidence: a receipt, or one of five failures                       (platforms/failure.py)
    record   decide what comes next and write it down under the fence                    (work/record.py)
    look     find out what became of what left without an answer                         (work/reconcile.py)

Killed anywhere before the intent: the lease ends, another worker goes on with the files that are uploaded. Killed after
it: nobody can tell, so it is unknown and looked for; it is never sent again unless the platform knows our key.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from uuid import UUID

import structlog

from imprint.blobs.store import Missing
from imprint.blobs.tally import Broken
from imprint.decisions.publishing import Known, Renew, decide
from imprint.engine.lease import PUBLICATIONS, LeaseLost
from imprint.engine.queue import Job
from imprint.images.refusal import BadImage, MakerFailed
from imprint.killpoint import here
from imprint.lifecycles.publication import PublicationStatus
from imprint.platforms.contract import Http, Receipt
from imprint.platforms.failure import Failure, NotYet, Refused, SignInAgain
from imprint.platforms.work import File, RemoteFile, Work
from imprint.problem import Busy, Problem
from imprint.store.db import GONE
from imprint.store.query import Nothing, query
from imprint.work.claim import Claimed, claim
from imprint.work.derive import SOURCE
from imprint.work.desk import Desk
from imprint.work.fitting import unfit_for
from imprint.work.gauge import Gauge
from imprint.work.outcome import STOPPED, Ended, Outcome, failed, published
from imprint.work.post import Row
from imprint.work.record import record
from imprint.work.rendition import rendered, rendition, unfit
from imprint.work.sign_in import SignedIn, signed_in
from imprint.work.stores import Place
from imprint.work.vault import platform

log = structlog.get_logger()

# How long the request that publishes may take; the lease outlives it by the margin, so nobody else can be at it.
SEND = timedelta(seconds=30)
MARGIN = timedelta(seconds=15)
# Files go with a request of their own, however large; the slowest line that is waited for.
UPLOAD_SECONDS = 120.0
SLOWEST_BYTES_PER_SECOND = 64 * 1024
# From this many bytes on it is worth a call to see first that the account is fit to upload.
WORTH_A_CHECK = 4 * 1024 * 1024
CHECK_SECONDS = 30.0
SHOWN_EVERY_SECONDS = 1.0
READ_BACK_SECONDS = 0.2

LOST = Outcome("no_answer", "worker.interrupted", "The worker was interrupted before the answer came.")
BUG = Outcome("not_yet", "bug", "This is a bug in Imprint; the worker's log shows where.")

UPLOADED = query("publish_uploaded", Row)
PROGRESS = query("publish_progress", Nothing)
INTEND = query("publish_intend", Row)
INTENDED = query("publish_intended", Row)


@dataclass
class Attempt:
    """One try: what is ours, as whom, what it sends, whether the request may have left, whether files went anew."""

    at: Claimed
    signed_in: SignedIn
    work: Work
    gauge: Gauge
    intended: bool = False
    renewed: bool = False
    anew: bool = False


@dataclass(frozen=True)
class Publisher:
    """Does the job "publish"."""

    desk: Desk

    async def publish(self, job: Job) -> None:
        """Publish what is due; a job for something that is not, or no longer, does nothing."""
        at = await claim(self.desk, UUID(job.key))
        if at is None:
            return
        work = at.snapshot.work(lambda content: partial(self._original, content, at.places.get(content)))
        gauge = Gauge(platform(at.sending.platform))
        attempt = Attempt(at, at.signed_in, replace(work, uploads=at.uploads), gauge)
        outcome = await self._outcome(attempt)
        if outcome is not None:
            await record(self.desk, _ended(attempt, outcome))

    async def _outcome(self, attempt: Attempt) -> Outcome | None:
        """Go through the steps and say how it ended; None when the lease was lost with nothing to tell."""
        lease = attempt.at.lease
        try:
            async with PUBLICATIONS.kept(self.desk.database, lease, self.desk.lease, since=attempt.at.since):
                return published(await self._go(attempt))
        except LeaseLost:
            log.warning("a lease was lost on the way", publication=str(lease.id), fence=lease.fence)
            # With an intent the clock takes it back; without one nothing has left, and the attempt just ends here.
            return None if attempt.intended else STOPPED
        except Failure as failure:
            return failed(failure)
        except GONE as error:
            log.warning("the database went away on the way", publication=str(lease.id), error=str(error))
            return LOST if attempt.intended else STOPPED
        except Exception:
            log.exception("a bug while publishing", publication=str(lease.id))
            return LOST if attempt.intended else BUG
        except asyncio.CancelledError:
            # Told to stop. What has not left is given back; of what may have, only the platform knows.
            await asyncio.shield(self._stopped(attempt))
            raise

    async def _go(self, attempt: Attempt) -> Receipt:
        if (out := attempt.at.taken.known_id) is not None:
            return Receipt(out, attempt.at.taken.known_url)  # an earlier attempt succeeded, and told us late
        left_for, once = attempt.at.taken.left_for, platform(attempt.at.sending.platform).once
        if left_for is not None and not once.may_resend(left_for + SEND):
            raise Refused("once.over", "It may be out, and the platform does not know its key; it is looked for.")
        while True:
            try:
                await self._upload(attempt)
                return await self._send(attempt)
            except SignInAgain as refused:
                known = Known(PublicationStatus.RUNNING, intent=attempt.intended, renewed=attempt.renewed)
                if not isinstance(decide(known, failed(refused).event()), Renew):
                    raise
                attempt.renewed = True
                attempt.signed_in = await signed_in(
                    self.desk.database,
                    self.desk.vault,
                    self.desk.wire,
                    attempt.at.sending.account_id,
                    refused=attempt.signed_in.version,
                )
            except NotYet as refused:
                if not refused.uploads_gone or attempt.anew:
                    raise
                attempt.anew = True
                attempt.work = replace(attempt.work, uploads=())

    async def _upload(self, attempt: Attempt) -> None:
        """Bring every file to the platform that it has not got yet, in a form that it takes."""
        to, login = platform(attempt.at.sending.platform), attempt.signed_in.login
        attempt.work = replace(attempt.work, files=tuple([await self._fitting(attempt, f) for f in attempt.work.files]))
        if misfits := to.validate(login, attempt.work):
            raise unfit_for(misfits)
        missing = [file for file in attempt.work.files if attempt.work.uploaded(file) is None]
        if sum(file.size for file in missing) >= WORTH_A_CHECK:
            await to.check(self._within(attempt, CHECK_SECONDS), login, attempt.work)
        for file in missing:
            http = self._within(attempt, UPLOAD_SECONDS + file.size / SLOWEST_BYTES_PER_SECOND)
            shown = _Shown(self.desk, attempt, file)
            try:
                remote = await to.upload(http, login, attempt.work, file, shown.sent)
            finally:
                await shown.end()
            here("upload_before_id")
            await self._keep(attempt, file, remote)
            here("upload_after_id")
            attempt.work = attempt.work.with_upload(remote)

    async def _keep(self, attempt: Attempt, file: File, remote: RemoteFile) -> None:
        at = attempt.at
        async with self.desk.database.connection() as connection:
            kept = await UPLOADED.first(
                connection,
                at.lease.id,
                at.lease.fence,
                at.taken.revision,
                remote.sha256,
                remote.id,
                remote.data,
                file.name[:500],
            )
        if kept is None:
            raise _lost(at)

    async def _send(self, attempt: Attempt) -> Receipt:
        """Commit the intent, then send the one request that publishes."""
        to, login = platform(attempt.at.sending.platform), attempt.signed_in.login
        attempt.work = await to.prepare(self._within(attempt, CHECK_SECONDS), login, attempt.work)
        await to.check(self._within(attempt, CHECK_SECONDS), login, attempt.work)
        asked_at = asyncio.get_running_loop().time()
        here("intent_before")
        await self._intend(attempt)
        here("intent_after")
        http = attempt.gauge.on(self.desk.wire.to(login).until(asked_at + SEND.total_seconds()))
        receipt = await to.publish(http, login, attempt.work)
        here("answer_read")
        return receipt

    def _within(self, attempt: Attempt, seconds: float) -> Http:
        return attempt.gauge.on(self.desk.wire.to(attempt.signed_in.login).within(seconds))

    async def _intend(self, attempt: Attempt) -> None:
        """Commit the intent; when the answer to the commit is lost, read it back: unconfirmed, nothing is sent."""
        at = attempt.at
        attempt.intended = True  # whatever becomes of the commit, from here on it may be there
        try:
            async with self.desk.database.connection() as connection:
                mine = await INTEND.first(
                    connection,
                    at.lease.id,
                    at.lease.fence,
                    at.snapshot.text,
                    at.snapshot.sha256,
                    SEND,
                    MARGIN,
                    self.desk.actor,
                )
        except GONE as error:
            log.warning("the answer to an intent was lost; reading it back", error=str(error))
            mine = await self._read_back(at)
        if mine is None:
            attempt.intended = False
            raise _lost(at)

    async def _read_back(self, at: Claimed) -> Row | None:
        while True:  # the lease ends this if the database stays away
            try:
                async with self.desk.database.connection() as connection:
                    return await INTENDED.first(connection, at.lease.id, at.lease.fence)
            except GONE:
                await asyncio.sleep(READ_BACK_SECONDS)

    async def _stopped(self, attempt: Attempt) -> None:
        """Give back what has not left; call unknown what may have."""
        await record(self.desk, _ended(attempt, LOST if attempt.intended else STOPPED), patient=False)

    async def _fitting(self, attempt: Attempt, file: File) -> File:
        """Give a file as the platform takes it: itself, or a rendition when it does not fit."""
        wanted = unfit(platform(attempt.at.sending.platform), attempt.signed_in.login, attempt.work, file)
        if not wanted.why:
            return file
        try:
            made = await rendition(self.desk.deriver, _content(attempt, file), wanted.limits)
        except Busy as busy:
            raise NotYet(busy.code, busy.sentence) from busy
        except (BadImage, MakerFailed) as bad:
            raise Refused(bad.code, bad.sentence) from bad
        except (Missing, Broken) as gone:
            raise Refused("file.missing", "The bytes of a file of this post are not where they should be.") from gone
        except Problem as away:
            raise NotYet(away.code, away.sentence) from away
        return rendered(file, made, partial(self._read, made.place))

    async def _original(self, content: UUID, place: Place | None) -> AsyncIterator[bytes]:
        """Read the original of a content; that it is what it was is checked by whoever sends it."""
        if place is None:
            async with self.desk.database.connection() as connection:
                source = await SOURCE.first(connection, content)
            if source is None:
                raise Refused("file.missing", "A file of this post is gone.")
            place = source.place
        async for chunk in self._read(place):
            yield chunk

    async def _read(self, place: Place) -> AsyncIterator[bytes]:
        try:
            async for chunk in self.desk.deriver.stores.of(place.store).read(place.key):
                yield chunk
        except (Missing, Broken) as gone:
            raise Refused("file.missing", "The bytes of a file of this post are not where they should be.") from gone
        except Problem as away:
            raise NotYet(away.code, away.sentence) from away


class _Shown:
    """Shows how far an upload has come, once a second; a quick one is never shown and costs nothing."""

    def __init__(self, desk: Desk, attempt: Attempt, file: File) -> None:
        self._desk, self._at, self._file = desk, attempt.at, file
        self._next = asyncio.get_running_loop().time() + SHOWN_EVERY_SECONDS
        self._writing: asyncio.Task[None] | None = None

    def sent(self, count: int) -> None:
        """Take note of how many bytes have gone."""
        here("upload_under_way")
        now = asyncio.get_running_loop().time()
        if now >= self._next and (self._writing is None or self._writing.done()):
            self._next = now + SHOWN_EVERY_SECONDS
            self._writing = asyncio.create_task(self._write(count))

    async def end(self) -> None:
        """Let the last note be written."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _write(self, count: int) -> None:
        file, lease = self._file, self._at.lease
        async with self._desk.database.connection() as connection:
            await PROGRESS.run(connection, lease.id, lease.fence, file.sha256, file.name[:500], count, file.size)


def _ended(attempt: Attempt, outcome: Outcome) -> Ended:
    at = attempt.at
    # A refusal of our own says nothing about the platform: circuits hear only of one that has answered.
    silent = outcome.kind == "refused" and not attempt.gauge.heard
    return Ended(
        at.lease.id,
        at.lease.fence,
        outcome,
        () if silent else at.circuits,
        at.sending.account_id,
        attempt.signed_in.version,
        attempt.gauge.rest.total_seconds(),
    )


def _content(attempt: Attempt, file: File) -> UUID:
    files = attempt.at.snapshot.data["files"]
    return UUID(next(each["contentId"] for each in files if each["sha256"] == file.sha256))


def _lost(at: Claimed) -> LeaseLost:
    return LeaseLost("lease.lost", f"The lease on publication {at.lease.id} was lost.")
