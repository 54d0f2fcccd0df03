"""Schedule: when a post goes out, and on which accounts; every change is a guarded update of its publications.

People take turns on a post; then the rows are taken in one order by everybody: accounts, then publications, then the
post. Without the turns a publication that another person plans between the last two would be taken after the post, and
the worker that claims it at that moment takes them the other way round. The post's own status is never written here:
it follows from its publications.
"""

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from imprint.decisions.schedule import BadTime, Bounds, Rule, Slot, at_once, occurrences, refuse, slot, zone_of
from imprint.lifecycles.account import AccountStatus
from imprint.lifecycles.post import PostStatus
from imprint.lifecycles.publication import PublicationStatus
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, Query, query
from imprint.work.fitting import Fitting
from imprint.work.naming import to_camel
from imprint.work.post import FILES, SHOW, Post, PostFile, Row, lacks, locked, missing_post, unknown

OPEN = {PublicationStatus.PENDING, PublicationStatus.RUNNING}
Roll = Callable[[], float]
Which = TypeVar("Which", bound=Hashable)


@dataclass(frozen=True)
class Target:
    """An account a post shall go to, and when; None: the time that is given for all, or now."""

    account: UUID
    at: datetime | None = None


@dataclass(frozen=True)
class Moment:
    """What time it is."""

    now: datetime


@dataclass(frozen=True)
class Named:
    """An account that can be scheduled on."""

    id: UUID
    platform: str
    label: str | None
    name: str
    status: str

    @property
    def shown(self) -> str:
        """Give the name a person knows it by."""
        return self.label or self.name or self.platform


@dataclass(frozen=True)
class Held:
    """A publication that stays as it is until the transaction ends; `left` once it may have left."""

    id: UUID
    account_id: UUID
    file_id: UUID | None
    status: str
    left: bool
    due_at: datetime
    dismissed: bool


@dataclass(frozen=True)
class Changed:
    """A publication that was planned, moved, cancelled or let go, and when it goes or would have gone."""

    id: UUID
    account_id: UUID
    due_at: datetime

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


TURN = query("schedule_turn", Nothing)
NOW = query("schedule_now", Moment)
ACCOUNTS = query("schedule_accounts", Named)
DEFAULT = query("schedule_default", Row)
HOLD = query("schedule_hold", Held)
INSERT = query("schedule_insert", Row)
AGAIN = query("schedule_again", Row)
MOVE = query("schedule_move", Changed)
BRING_FORWARD = query("schedule_bring_forward", Changed)
WITHDRAW = query("schedule_withdraw", Changed)
CANCEL = query("schedule_cancel", Changed)
DISMISS = query("schedule_dismiss", Changed)
RETRY = query("schedule_retry", Changed)
DELETE = query("post_delete", Row)


def bounds(settings: Settings) -> Bounds:
    """Give the limits that are set."""
    return Bounds(
        timedelta(minutes=settings.schedule_lead_minutes),
        timedelta(days=settings.schedule_horizon_days),
        timedelta(seconds=settings.schedule_jitter_seconds),
    )


async def schedule(
    database: Database,
    limits: Bounds,
    owner: str,
    post: UUID,
    at: datetime | None,
    *,
    zone: str = "UTC",
    targets: Sequence[Target] = (),
    fitting: Fitting | None = None,
    roll: Roll = random.random,
) -> list[Changed]:
    """Plan a draft, or a post that failed, on the accounts that are named or on the person's default account.

    Where a publication failed before, it is planned anew; where one is out or may be, nothing is planned twice.
    """
    if at is None and (not targets or any(target.at is None for target in targets)):
        raise BadTime("schedule.no_time", "Say when; to publish at once, publish now.")
    zone_of(zone)

    def when(now: datetime, target: Target) -> Slot:
        wanted = target.at or at
        assert wanted is not None  # noqa: S101 - refused above
        return slot(now, wanted, zone, limits, roll())

    async with database.transaction(owner, "scheduled") as connection:
        return await plan(connection, owner, post, targets, when, fitting)


async def publish_now(
    database: Database,
    owner: str,
    post: UUID,
    *,
    zone: str = "UTC",
    accounts: Sequence[UUID] = (),
    fitting: Fitting | None = None,
) -> list[Changed]:
    """Let a post go at once: a draft or what failed is planned for now, what waits is brought forward."""
    zone_of(zone)
    async with database.transaction(owner, "publish it now") as connection:
        await TURN.run(connection, post)
        await ACCOUNTS.all(connection, list(accounts), owner)
        held = await HOLD.all(connection, post)
        found = await locked(connection, owner, post)
        if found.status == PostStatus.SCHEDULED:
            await _refuse_waiting(connection, found, await _ready_files(connection, found), held, accounts, fitting)
            moved = await BRING_FORWARD.all(connection, post, list(accounts) or None, zone)
            return moved or _nothing_waits(held, accounts)
    targets = [Target(account) for account in accounts]
    async with database.transaction(owner, "publish it now") as connection:
        return await plan(connection, owner, post, targets, lambda now, _: at_once(now, zone), fitting)


async def plan_after(
    connection: Link, owner: str, post: UUID, accounts: Sequence[UUID], delay: timedelta, zone: str
) -> list[Changed]:
    """Plan a draft that a rule has made, in the caller's transaction: so long from now, with no lead and no jitter."""
    targets = [Target(account) for account in accounts]
    return await plan(connection, owner, post, targets, lambda now, _: at_once(now + delay, zone))


async def reschedule(
    database: Database,
    limits: Bounds,
    owner: str,
    post: UUID,
    at: datetime,
    *,
    zone: str = "UTC",
    accounts: Sequence[UUID] = (),
) -> list[Changed]:
    """Give what waits another time; its jitter stays, what a worker has already taken is not touched.

    A job that was handed out for the old time finds that it is not due, so nothing goes early; the row is the same,
    so nothing goes twice.
    """
    zone_of(zone)
    async with database.transaction(owner, "rescheduled") as connection:
        held = await _hold(connection, owner, post)
        refuse((await NOW.one(connection)).now, at, limits)
        moved = await MOVE.all(connection, post, list(accounts) or None, at, zone)
        return moved or _nothing_waits(held, accounts)


async def unschedule(database: Database, owner: str, post: UUID, *, accounts: Sequence[UUID] = ()) -> list[Changed]:
    """Cancel what waits; the post is with its author again unless something else of it is out or failed."""
    return await _change(database, owner, post, WITHDRAW, accounts, "cancelled by hand: unscheduled")


async def cancel(database: Database, owner: str, post: UUID, *, accounts: Sequence[UUID] = ()) -> list[Changed]:
    """Stop everything of a post that can still be stopped, and let go of what failed; refused once it may have left."""
    async with database.transaction(owner, "cancelled by hand") as connection:
        held = await _hold(connection, owner, post)
        changed = await CANCEL.all(connection, post, list(accounts) or None)
        changed += await DISMISS.all(connection, post, list(accounts) or None)
        if changed:
            return changed
        _refuse_left(held, accounts, "be called back")
        raise Problem("post.nothing_to_cancel", "Nothing of this post waits, runs or has failed.")


async def retry(
    database: Database, owner: str, post: UUID, *, accounts: Sequence[UUID] = (), publications: Sequence[UUID] = ()
) -> list[Changed]:
    """Try what failed once more, all of it or only these; crashes are forgotten."""
    async with database.transaction(owner, "tried again by hand") as connection:
        await _hold(connection, owner, post)
        found = await locked(connection, owner, post)
        if found.status == PostStatus.REVIEW:
            raise Problem("post.not_ready", "It is in review; declare it ready first.")
        await _ready_files(connection, found)
        if not (changed := await RETRY.all(connection, post, list(accounts) or None, list(publications) or None)):
            raise Problem("post.nothing_failed", "Nothing of this post has failed.")
        return changed


async def delete(database: Database, owner: str, post: UUID) -> list[Changed]:
    """Delete a post, softly; what waits is cancelled. Refused while something is on its way or may be out.

    What is out stays out: to delete a post here takes nothing down.
    """
    async with database.transaction(owner, "cancelled by hand: the post was deleted") as connection:
        held = await _hold(connection, owner, post)
        cancelled = await CANCEL.all(connection, post, None)
        _refuse_left(held, (), "be deleted")
        await DELETE.one(connection, post)
        return cancelled


def in_turn(rule: Rule, zone: str, after: datetime, posts: Sequence[Which]) -> Mapping[Which, datetime]:
    """Give each post its own moment of a rule, in their order."""
    return dict(zip(posts, occurrences(rule, zone_of(zone), after), strict=False))


async def plan(
    connection: Link,
    owner: str,
    post: UUID,
    targets: Sequence[Target],
    when: Callable[[datetime, Target], Slot],
    fitting: Fitting | None = None,
) -> list[Changed]:
    """Plan a post on accounts, each when `when` says, in the caller's transaction; refused where it cannot fit."""
    await TURN.run(connection, post)
    if (seen := await SHOW.first(connection, post, owner)) is None:
        raise missing_post()
    _refuse_state(seen)  # before anything is locked, so that what is said first is what matters most
    wanted = list(targets) or [Target(await default_account(connection, owner))]
    names = await _accounts(connection, owner, wanted)
    held = await HOLD.all(connection, post)
    found = await locked(connection, owner, post)
    _refuse_state(found)
    files = await _ready_files(connection, found)
    parts = [file.id for file in files] if found.upload_mode == "multiple" and files else [None]
    now = (await NOW.one(connection)).now
    planned: list[Changed] = []
    for target in wanted:
        there = {each.file_id: each for each in held if each.account_id == target.account and _counts(each)}
        if all(part in there and there[part].status == PublicationStatus.SUCCESS for part in parts):
            shown = names[target.account].shown
            raise Problem("post.already_out", f"It is out on {shown} already; duplicate it to publish it again.")
        if fitting is not None:
            await fitting.refuse(connection, found, files, target.account, parts, now)
        for part in parts:
            before = there.get(part)
            if before is not None and before.status == PublicationStatus.SUCCESS:
                continue  # of several files some are out: only the others are still to go
            planned.append(await _planned(connection, post, target, part, before, when(now, target)))
    return planned


async def _planned(
    connection: Link, post: UUID, target: Target, part: UUID | None, before: Held | None, slot_: Slot
) -> Changed:
    seconds = int(slot_.jitter.total_seconds())
    if before is None:
        row = await INSERT.one(
            connection, post, target.account, part, slot_.scheduled_at, slot_.zone, seconds, slot_.due_at
        )
        return Changed(row.id, target.account, slot_.due_at)
    if before.status != PublicationStatus.FAILED:
        raise unknown()
    await AGAIN.one(connection, before.id, slot_.scheduled_at, slot_.zone, seconds, slot_.due_at)
    return Changed(before.id, target.account, slot_.due_at)


async def _accounts(connection: Link, owner: str, targets: Sequence[Target]) -> dict[UUID, Named]:
    wanted = [target.account for target in targets]
    if len(set(wanted)) < len(wanted):
        raise Problem("post.account_twice", "An account is named twice; a post goes to each account once.")
    names = {account.id: account for account in await ACCOUNTS.all(connection, wanted, owner)}
    for account in wanted:
        if account not in names:
            raise Problem("account.missing", "There is no such account.")
        if names[account].status == AccountStatus.DISABLED:
            raise Problem("account.disabled", f"The account {names[account].shown} is disabled; enable it first.")
    return names


async def default_account(connection: Link, owner: str) -> UUID:
    """Give the account a person publishes to when none is named."""
    found = await DEFAULT.first(connection, owner)
    if found is None:
        raise Problem("account.no_default", "There is no default account; name an account, or choose a default one.")
    return found.id


async def _change(
    database: Database, owner: str, post: UUID, statement: Query[Changed], accounts: Sequence[UUID], reason: str
) -> list[Changed]:
    async with database.transaction(owner, reason) as connection:
        held = await _hold(connection, owner, post)
        return await statement.all(connection, post, list(accounts) or None) or _nothing_waits(held, accounts)


async def _hold(connection: Link, owner: str, post: UUID) -> list[Held]:
    """Keep the publications of a person's post as they are until the transaction ends, then the post."""
    await TURN.run(connection, post)
    held = await HOLD.all(connection, post)
    await locked(connection, owner, post)
    return held


async def _ready_files(connection: Link, post: Post) -> list[PostFile]:
    files = await FILES.all(connection, post.id)
    if missing := lacks(post, files):
        raise missing
    return files


async def _refuse_waiting(
    connection: Link,
    post: Post,
    files: Sequence[PostFile],
    held: Sequence[Held],
    accounts: Sequence[UUID],
    fitting: Fitting | None,
) -> None:
    """Refuse to bring something forward that cannot go as it is."""
    now = (await NOW.one(connection)).now
    for each in held:
        waits = each.status == PublicationStatus.PENDING and not each.left
        if fitting is not None and waits and (not accounts or each.account_id in accounts):
            await fitting.refuse(connection, post, files, each.account_id, [each.file_id], now)


def _nothing_waits(held: Sequence[Held], accounts: Sequence[UUID]) -> list[Changed]:
    """Say why nothing of a post could be changed."""
    ours = [each for each in held if not accounts or each.account_id in accounts]
    if any(each.status == PublicationStatus.PENDING and each.left for each in ours):
        raise Problem("post.on_its_way", "It may be out already and is sent again with the same key; wait for that.")
    if any(each.status == PublicationStatus.RUNNING for each in ours):
        raise Problem("post.on_its_way", "It is on its way; cancel it if you want to stop it before it leaves.")
    if any(each.status == PublicationStatus.UNKNOWN for each in ours):
        raise unknown()
    raise Problem("post.not_scheduled", "Nothing of this post is scheduled.")


def _refuse_left(held: Sequence[Held], accounts: Sequence[UUID], what: str) -> None:
    ours = [each for each in held if not accounts or each.account_id in accounts]
    if any(each.status in OPEN and each.left for each in ours):
        raise Problem("post.on_its_way", f"It has left, or is just leaving, and cannot {what}.")
    if any(each.status == PublicationStatus.UNKNOWN for each in ours):
        raise unknown()


def _counts(publication: Held) -> bool:
    return publication.status != PublicationStatus.CANCELLED and not publication.dismissed


def _refuse_state(post: Post) -> None:
    if post.status not in {PostStatus.DRAFT, PostStatus.FAILED}:
        stands = f"in {post.status}" if post.status == PostStatus.REVIEW else post.status
        raise Problem(
            "post.not_schedulable", f"Only a draft or a post that failed can be scheduled; this one is {stands}."
        )
