"""Batches: publications in order, each a while after the end of the one before it.

Who has the turn, and when the next one gets it, stands in rows: a trigger passes the turn on in the transaction that
ends an attempt, and the clock gives it to the next one. Nothing here waits, and a process can be killed at any moment.

Whoever changes a batch takes everything of its posts in the one order that all keep to, schedule.py says which; many
posts in the order of their ids.
"""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.decisions.schedule import Bounds, at_once, slot, zone_of
from imprint.lifecycles.publication import PublicationStatus
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.fitting import Fitting
from imprint.work.naming import to_camel
from imprint.work.post import Row, unknown
from imprint.work.prefix import Candidate, bounds, picked
from imprint.work.schedule import ACCOUNTS, NOW, OPEN, Changed, Roll, Target, default_account, plan

LONGEST = timedelta(minutes=1440)
MOST = 1000
BEHIND = "behind"

Place = tuple[datetime, UUID]
LAST: Place = (datetime(9999, 1, 1, tzinfo=UTC), UUID(int=2**128 - 1))


@dataclass(frozen=True)
class Step:
    """Something a person can do with a batch: its name, how the batch stands then, and why one does it."""

    name: str
    to: str | None
    why: str


STEPS = {
    step.name: step
    for step in (
        Step("pause", "paused", "nothing more of it goes until it is resumed"),
        Step("resume", "runs", "it goes on where it was"),
        Step("arrange", None, "what waits for its turn goes in another order"),
        Step("stop", "over", "everything that has not left is cancelled"),
        Step("delete", None, "it is not wanted any more, and its posts are free"),
    )
}


@dataclass(frozen=True)
class Batch:
    """A batch: what the person asked for, what has become of its publications, and when the next one goes."""

    id: UUID
    every: timedelta
    starts_at: datetime
    zone: str
    created_at: datetime
    paused: bool
    begun: bool
    publications: int
    waiting: int
    running: int
    unknown: int
    out: int
    failed: int
    cancelled: int
    next_at: datetime | None

    @property
    def state(self) -> str:
        """Say how it stands: waits for its beginning, runs, is paused or is over."""
        if not self.waiting and not self.running:
            return "over"
        if self.paused:
            return "paused"
        return "runs" if self.begun else "waits"

    @property
    def moves(self) -> list[Step]:
        """List what a person can do with it now."""
        open_ = [STEPS["resume" if self.paused else "pause"], STEPS["arrange"], STEPS["stop"]]
        held = self.running or self.unknown
        return [*(open_ if self.state != "over" else ()), *([] if held else [STEPS["delete"]])]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        data = {to_camel(name): value for name, value in asdict(self).items() if name not in {"every", "begun"}}
        return {**data, "everyMinutes": self.every / timedelta(minutes=1), "state": self.state}


@dataclass(frozen=True)
class Member:
    """A publication in a batch, and when it went or goes; `estimated` while others are before it."""

    id: UUID
    place: int
    post_id: UUID
    title: str
    account_id: UUID
    platform: str
    label: str | None
    name: str
    file_id: UUID | None
    status: str
    turn: str
    attempts: int
    held_why: str | None
    error_code: str | None
    url: str | None
    goes_at: datetime | None
    estimated: bool

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Shown:
    """A batch and its publications in their order."""

    batch: Batch
    members: list[Member]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {**self.batch.as_data(), "members": [each.as_data() for each in self.members]}


@dataclass(frozen=True)
class Pair:
    """A post of a batch and an account it goes to."""

    post_id: UUID
    account_id: UUID


CREATE = query("batch_create", Row)
ENROL = query("batch_enrol", Row)
BEGIN = query("batch_begin", Nothing)
ALONE = query("batch_alone", Nothing)
TAKE_TURNS = query("batch_take_turns", Nothing)
HOLD_PUBLICATIONS = query("batch_hold_publications", Row)
HOLD_POSTS = query("batch_hold_posts", Row)
LOCK = query("batch_lock", Row)
ROWS = query("batch_rows", Pair)
FOUND = query("batch_found", Candidate)
LIST = query("batch_list", Batch)
MEMBERS = query("batch_members", Member)
EXPECT = query("batch_expect", Row)
PAUSE = query("batch_pause", Row)
RESUME = query("batch_resume", Row)
STOP = query("batch_stop", Changed)
ARRANGE = query("batch_arrange", Row)
DELETE = query("batch_delete", Row)


async def create(
    database: Database,
    limits: Bounds,
    owner: str,
    posts: Sequence[UUID],
    *,
    every: timedelta,
    accounts: Sequence[UUID] = (),
    at: datetime | None = None,
    zone: str = "UTC",
    fitting: Fitting | None = None,
    roll: Roll = random.random,
) -> Shown:
    """Plan posts in this order, each on each account, beginning at a time or now; all of them, or none.

    Each post must be one that could be scheduled alone.
    """
    zone_of(zone)
    _refuse(posts, every)
    async with database.transaction(owner, "planned in a batch") as connection:
        wanted = list(accounts) or [await default_account(connection, owner)]
        await _hold(connection, owner, posts, wanted)
        now = (await NOW.one(connection)).now
        first = at_once(now, zone) if at is None else slot(now, at, zone, limits, roll())
        planned: list[Changed] = []
        for post in posts:
            try:
                targets = [Target(each) for each in wanted]
                planned += await plan(connection, owner, post, targets, lambda *_: first, fitting)
            except Problem as problem:
                named = f"Post {str(post)[:8]}: " if problem.code.startswith(("post.", "fit.")) else ""
                raise Problem(problem.code, f"{named}{problem.sentence}") from None
        if len(planned) > MOST:
            raise Problem("batch.too_long", f"A batch has {MOST} publications at most; this one would have more.")
        batch = (await CREATE.one(connection, owner, every, first.scheduled_at, zone)).id
        await ENROL.all(connection, batch, [each.id for each in planned])
        await BEGIN.run(connection, batch, first.due_at)
        return await _expect(connection, owner, batch)


async def listed(connection: Link, owner: str, *, after: Place = LAST, limit: int = 100) -> list[Batch]:
    """Give a page of a person's batches, the newest first."""
    return await LIST.all(connection, owner, None, *after, limit)


async def show(connection: Link, owner: str, batch: UUID) -> Shown:
    """Give everything about one batch."""
    found = await LIST.first(connection, owner, batch, *LAST, 1)
    if found is None:
        raise _missing()
    return Shown(found, await MEMBERS.all(connection, batch))


async def find(connection: Link, owner: str, text: str) -> UUID:
    """Find a batch by its id, or the first letters of it."""
    return picked(text, await FOUND.all(connection, *bounds(text), owner), _missing())


async def pause(database: Database, owner: str, batch: UUID) -> Shown:
    """Let nothing more of a batch go until it is resumed; what is on its way goes on."""
    async with database.transaction(owner, "paused") as connection:
        await _held(connection, owner, batch)
        if (await show(connection, owner, batch)).batch.state == "over":
            raise _over()
        await PAUSE.all(connection, batch)
        return await show(connection, owner, batch)


async def resume(database: Database, owner: str, batch: UUID) -> Shown:
    """Let a batch go on: the next one goes at its time, or now if that is over."""
    async with database.transaction(owner, "resumed") as connection:
        await _held(connection, owner, batch)
        await RESUME.all(connection, batch)
        return await _expect(connection, owner, batch)


async def stop(database: Database, owner: str, batch: UUID) -> list[Changed]:
    """Cancel everything of a batch that has not left, at once; what has left stays and is seen through."""
    async with database.transaction(owner, "cancelled by hand: the batch was stopped") as connection:
        await _held(connection, owner, batch)
        cancelled = await STOP.all(connection, batch)
        await RESUME.all(connection, batch)
        if not cancelled:
            left = [each for each in await MEMBERS.all(connection, batch) if each.status in OPEN]
            raise _on_its_way() if left else _over()
        return cancelled


async def arrange(database: Database, owner: str, batch: UUID, order: Sequence[int]) -> Shown:
    """Put those that are still behind into another order; `order` names their places as they are now."""
    async with database.transaction(owner, "put into another order") as connection:
        await _held(connection, owner, batch)
        behind = {each.place: each.id for each in await MEMBERS.all(connection, batch) if each.turn == BEHIND}
        if sorted(order) != sorted(behind):
            places = ", ".join(str(place) for place in sorted(behind)) or "none is left"
            raise Problem("batch.bad_order", f"Name each place that still waits for its turn once: {places}.")
        await ARRANGE.all(connection, batch, [behind[place] for place in order], sorted(order))
        return await _expect(connection, owner, batch)


async def delete(database: Database, owner: str, batch: UUID) -> list[Changed]:
    """Delete a batch, softly; what waits is cancelled, so its posts are free. Refused while something is on its way.

    What is out stays out.
    """
    async with database.transaction(owner, "cancelled by hand: the batch was deleted") as connection:
        await _held(connection, owner, batch)
        cancelled = await STOP.all(connection, batch)
        states = {each.status for each in await MEMBERS.all(connection, batch)}
        if states & OPEN:
            raise _on_its_way()
        if PublicationStatus.UNKNOWN in states:
            raise unknown()
        await RESUME.all(connection, batch)
        await DELETE.one(connection, batch)
        return cancelled


async def _expect(connection: Link, owner: str, batch: UUID) -> Shown:
    """Write down when those behind will probably go."""
    behind = [each for each in await MEMBERS.all(connection, batch) if each.estimated]
    await EXPECT.all(connection, batch, [each.id for each in behind], [each.goes_at for each in behind])
    return await show(connection, owner, batch)


async def _held(connection: Link, owner: str, batch: UUID) -> None:
    """Keep a batch, its posts and everything of them as they are until the transaction ends."""
    if await LOCK.first(connection, batch, owner) is None:
        raise _missing()
    pairs = await ROWS.all(connection, batch)
    posts, accounts = {pair.post_id for pair in pairs}, {pair.account_id for pair in pairs}
    await _hold(connection, owner, list(posts), list(accounts))


async def _hold(connection: Link, owner: str, posts: Sequence[UUID], accounts: Sequence[UUID]) -> None:
    await ALONE.run(connection)
    await TAKE_TURNS.run(connection, posts)
    await ACCOUNTS.all(connection, accounts, owner)
    await HOLD_PUBLICATIONS.all(connection, posts)
    await HOLD_POSTS.all(connection, posts)


def _refuse(posts: Sequence[UUID], every: timedelta) -> None:
    if not timedelta(0) <= every <= LONGEST:
        raise Problem("batch.bad_interval", "The interval is 0 to 1440 minutes.")
    if not posts:
        raise Problem("batch.empty", "A batch needs at least one post.")
    if len(set(posts)) < len(posts):
        raise Problem("batch.post_twice", "A post is named twice; it goes to each account once.")


def _missing() -> Problem:
    return Problem("batch.missing", "There is no such batch.")


def _over() -> Problem:
    return Problem("batch.over", "Nothing of this batch waits any more.")


def _on_its_way() -> Problem:
    return Problem("batch.on_its_way", "Something of this batch has left, or is just leaving; wait for its end.")
