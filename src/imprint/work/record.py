"""Recording: decides what comes next after an attempt and writes everything down in one transaction, under the fence.

Publication, attempt, log, circuits and pace belong together; the post and the batch follow by the database's own rules.
A result that the database cannot take is kept on this machine's disk first, then tried again; after a restart the
journal is read. Recording the same twice changes nothing.
"""

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import structlog

from imprint.decisions import publishing as decisions
from imprint.decisions.publishing import Known, decide
from imprint.decisions.retry import pause
from imprint.engine import circuit, pace
from imprint.killpoint import here
from imprint.lifecycles.publication import PublicationStatus as Status
from imprint.problem import Problem
from imprint.store.db import GONE
from imprint.store.query import Link, Nothing, query
from imprint.work.desk import Desk, account_circuit
from imprint.work.outcome import Ended, Outcome
from imprint.work.post import Row
from imprint.work.sign_in import sign_in_again
from imprint.work.vault import platform

log = structlog.get_logger()

# Every way in which a database cannot take a result now and may later: gone, full, a standby, told to stop, a deadlock.
UNABLE = (
    *GONE,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.TransactionRollbackError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.PostgresSystemError,
)
# Whoever says that something is out gives its address, which is no id of the platform.
SAID_BY_A_PERSON = ("http://", "https://")
LONGEST_PAUSE = timedelta(seconds=5)
SOON = timedelta(seconds=1)


@dataclass(frozen=True)
class Held:
    """A publication that stays as it is until the transaction ends."""

    id: UUID
    account_id: UUID
    platform: str
    status: str
    fence: int
    intent: bool
    left: bool
    attempts: int
    crashes: int
    looks: int
    remote_id: str | None
    left_for: timedelta | None

    def known(self) -> Known:
        """Say what is known of it, as the decisions want it."""
        of = platform(self.platform)
        resend = self.left_for is not None and of.once.may_resend(self.left_for)
        return Known(
            Status(self.status),
            intent=self.intent,
            left=self.left,
            attempts=self.attempts,
            crashes=self.crashes,
            looks=self.looks,
            may_resend=resend,
            can_look=of.can_look,
            renewed=True,  # whoever records has renewed what could be renewed
        )


HOLD = query("record_hold", Held)
ATTEMPT = query("record_attempt", Row)
SUCCEED = query("record_succeed", Row)
TRY_AGAIN = query("record_try_again", Row)
HOLD_ACCOUNT = query("record_hold_account", Row)
FAIL = query("record_fail", Row)
LOSE = query("record_lose", Row)
WANT_AGAIN = query("record_want_again", Row)
LOG = query("record_log", Nothing)
WORKED = query("record_worked", Nothing)


async def record(desk: Desk, ended: Ended, *, patient: bool = True) -> None:
    """Record how an attempt ended; while the database is away the result is kept on the disk.

    Not patient: kept there and left for whoever starts next.
    """
    failures = 0
    while True:
        try:
            async with desk.database.transaction(desk.actor, _reason(ended.outcome)) as connection:
                await settle(desk, connection, ended)
                here("record_before_commit")
            here("record_after_commit")
        except asyncio.CancelledError:
            _keep(desk, ended)  # told to stop in the middle of it: whoever starts next records it
            raise
        except UNABLE as error:
            if not failures:
                await asyncio.to_thread(_keep, desk, ended)
            log.warning("the database cannot take a result; it is kept on this disk", error=str(error))
            if not patient:
                return
            failures += 1
            await asyncio.sleep(
                pause(failures, 0.5 + desk.roll() / 2, first=SOON, longest=LONGEST_PAUSE).total_seconds()
            )
        except Exception:
            await asyncio.to_thread(_keep, desk, ended)  # a bug of ours must not lose what a platform said
            raise
        else:
            if failures:
                await asyncio.to_thread(desk.journal.forget, ended)
            return


def _keep(desk: Desk, ended: Ended) -> None:
    if ended.outcome.kind == "stopped":
        return  # nothing to tell: the lease ends, and another one goes on
    try:
        desk.journal.write(ended)
    except OSError as error:  # this disk cannot either; as long as this process lives it goes on trying
        log.error("a result cannot be kept on this disk", publication=str(ended.publication), error=str(error))  # noqa: TRY400


async def replay(desk: Desk) -> int:
    """Record what the journal has kept, and say how much that was."""
    count = 0
    for ended in desk.journal.entries():
        reason = "from the journal: " + _reason(ended.outcome)
        try:
            async with desk.database.transaction(desk.actor, reason) as connection:
                await settle(desk, connection, ended)
        except UNABLE:
            raise
        except Exception:
            # One result that no database will ever take must not keep this worker from all its other work.
            log.exception("a kept result cannot be recorded and is put aside", publication=str(ended.publication))
            desk.journal.put_aside(ended)
            continue
        desk.journal.forget(ended)
        count += 1
        log.warning("recorded a result that the database could not take before", publication=str(ended.publication))
    return count


async def settle(desk: Desk, connection: Link, ended: Ended) -> None:
    """Decide and write, in the caller's transaction."""
    outcome, row = ended.outcome, ended.publication
    if outcome.kind == "sign_in_again":
        # Before the publication: accounts are taken first by everybody, or two would wait for each other.
        problem = Problem(outcome.code or "sign_in", outcome.sentence or "")
        await sign_in_again(connection, ended.account, ended.version, problem)
    line = f"It is out: {outcome.url}"[:2000] if outcome.url else "It is out."
    if outcome.kind != "published" or not await SUCCEED.first(
        connection, row, outcome.remote_id, outcome.url, ended.fence, "published", line
    ):
        await _otherwise(desk, connection, ended)
    await _tell_circuits(connection, ended)
    if ended.rest_seconds > 0:
        rest = timedelta(seconds=ended.rest_seconds)
        await pace.rest(connection, account_circuit(ended.account), pace.PUBLISHING, rest)


async def _otherwise(desk: Desk, connection: Link, ended: Ended) -> None:
    """Record what is no success, or one that comes too late to be simply written down."""
    outcome, held = ended.outcome, await HOLD.first(connection, ended.publication)
    if held is None:  # pragma: no cover - only success and failure can be deleted, by hand
        return
    await ATTEMPT.first(
        connection,
        ended.publication,
        ended.fence,
        outcome.kind,
        outcome.code,
        outcome.sentence,
        outcome.stage,
        outcome.http_status,
        outcome.remote_id,
        outcome.url,
    )
    if outcome.kind == "published":
        await _late(connection, held, ended)
    elif held.status == Status.RUNNING and held.fence == ended.fence:
        await _apply(desk, connection, held, ended)


async def _late(connection: Link, held: Held, ended: Ended) -> None:
    """Keep evidence that came late: the lifecycle knows no way to success from here, but the next claim finds it."""
    remote_id, row = ended.outcome.remote_id, ended.publication
    if held.status == Status.SUCCESS:
        if held.remote_id != remote_id and not (held.remote_id or "").startswith(SAID_BY_A_PERSON):
            line = "It was accepted a second time under another id: look at the platform, and delete one by hand."
            await note(connection, row, "duplicate", line, remoteId=remote_id, before=held.remote_id)
            log.error("a publication was accepted twice", publication=str(row), platform=held.platform)
        return
    if await WANT_AGAIN.first(connection, row) is None and held.status != Status.PENDING:
        line = "It was given up, and an answer that came late says that it is out: look at the platform."
        await note(connection, row, "late", line, remoteId=remote_id, url=ended.outcome.url)
        log.error("a publication that was given up is out", publication=str(row), platform=held.platform)
        return
    line = "An answer came late: it is out. The next worker that looks at it will say so."
    await note(connection, row, "late", line, remoteId=remote_id)


async def _apply(desk: Desk, connection: Link, held: Held, ended: Ended) -> None:
    row, fence, outcome = ended.publication, ended.fence, ended.outcome
    said = outcome.sentence or ""
    match decide(held.known(), outcome.event(), desk.roll(), desk.policy):
        case decisions.TryAgain(after, counts):
            why = "pace" if outcome.kind == "rate_limited" else None
            await TRY_AGAIN.first(connection, row, fence, int(counts), after, why)
            tries = f" (attempt {held.attempts + 1} of {desk.policy.attempts})" if counts else ""
            if outcome.kind != "stopped":
                line = f"{said} It is tried again in {after.total_seconds():.0f} s{tries}."
                await note(connection, row, "waits", line, code=outcome.code, seconds=after.total_seconds())
        case decisions.GiveUp(code):
            await FAIL.first(connection, row, fence, outcome.code if code != "exhausted" else code)
            over = f" All {desk.policy.attempts} attempts are used up." if code == "exhausted" else ""
            await note(connection, row, "failed", f"{said}{over}", code=outcome.code)
        case decisions.HoldAccount():
            await HOLD_ACCOUNT.first(connection, row, fence)
            line = f"{held.platform} wants a new sign-in: {said} It keeps its time and waits for the account."
            await note(connection, row, "sign-in", line, code=outcome.code, platform=held.platform)
        case decisions.Lose(look_after):
            await LOSE.first(connection, row, fence, look_after)
            line = f"{said} Nobody can tell whether it is out; a look will tell."
            await note(connection, row, "unknown", line, code=outcome.code, stage=outcome.stage)
        case _:  # an intent that nobody answers for: its lease ends, and it is looked for
            log.warning("left to the clock", publication=str(row), outcome=outcome.kind)


async def note(connection: Link, publication: UUID, kind: str, line: str, **data: Any) -> None:
    """Write a line for people, with data for programs."""
    await LOG.run(connection, publication, kind, line[:2000], json.dumps(data))


async def _tell_circuits(connection: Link, ended: Ended) -> None:
    """Let every worker know how the platform stands: circuits in the order of their names, then the pace."""
    outcome, key = ended.outcome, account_circuit(ended.account)
    match outcome.kind:
        case "published" | "refused" if ended.circuits:
            policy = pace.PUBLISHING
            await WORKED.run(connection, list(ended.circuits), key, policy.least, policy.most, policy.ease)
        case "rate_limited":
            for each in ended.circuits:
                after = outcome.after if each == key else None
                await circuit.failed(
                    connection, each, circuit.PUBLISHING, "rate limit", outcome.sentence or "", after=after
                )
            await pace.slow(connection, key, pace.PUBLISHING, outcome.after)
        case "not_yet" | "no_answer" if outcome.stage is not None:  # the platform, not something of our own
            for each in ended.circuits:
                await circuit.failed(connection, each, circuit.PUBLISHING, "error", outcome.sentence or "")


def _reason(outcome: Outcome) -> str:
    return outcome.sentence or {"published": "the platform said so"}.get(outcome.kind, outcome.kind)
