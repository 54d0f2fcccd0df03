"""The demo's story: one post from review to published, and a move that PostgreSQL refuses."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from imprint.engine.clock import Clock, timers
from imprint.engine.lease import PUBLICATIONS
from imprint.engine.queue import Entrypoint, Job, Queue
from imprint.store.db import Database
from imprint.store.query import query


@dataclass(frozen=True)
class Begun:
    """The post and the account the story is about."""

    post: UUID
    account: UUID


@dataclass(frozen=True)
class Moved:
    """The status a post has now."""

    status: str


@dataclass(frozen=True)
class Scheduled:
    """A publication and when it is due."""

    id: UUID
    due_at: datetime


@dataclass(frozen=True)
class Late:
    """How long after its time something was begun."""

    ms: float


@dataclass(frozen=True)
class Line:
    """One line of the audit."""

    at: datetime
    lifecycle: str
    move: str
    source: str | None
    target: str
    actor: str
    reason: str | None


BEGIN = query("demo_begin", Begun)
MOVE_POST = query("demo_move_post", Moved)
SCHEDULE = query("demo_schedule", Scheduled)
INTEND = query("demo_intend", Scheduled)
SUCCEED = query("demo_succeed", Scheduled)
LATE = query("demo_late", Late)
STORY = query("demo_story", Line)

WAIT = timedelta(seconds=1.5)
LEASE = timedelta(seconds=30)


@dataclass(frozen=True)
class Told:
    """How the story went."""

    refused: str
    late_ms: float
    audit: list[Line]
    status: str

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        audit = [
            {
                "at": line.at.isoformat(),
                "lifecycle": line.lifecycle,
                "move": line.move,
                "from": line.source,
                "to": line.target,
                "who": line.actor,
                "why": line.reason,
            }
            for line in self.audit
        ]
        return {"refused": self.refused, "lateMs": round(self.late_ms, 1), "status": self.status, "audit": audit}


async def tell(database: Database, say: Callable[[str], None]) -> Told:
    """Walk one post through its lifecycle with a real clock and a real queue; say what happens as it does."""
    async with database.transaction("you", "wrote a post") as connection:
        begun = await BEGIN.one(connection)
    say("You wrote a post. It is in review.")
    refused = await _jump_ahead(database, begun.post)
    say(f"Somebody tries to mark it published by hand. PostgreSQL: “{refused}”.")
    async with database.transaction("you", "it is ready") as connection:
        await MOVE_POST.one(connection, begun.post, "draft")
    async with database.transaction("you", "publish it soon") as connection:
        scheduled = await SCHEDULE.one(connection, begun.post, begun.account, WAIT)
    say(f"You approved it and scheduled it, {WAIT.total_seconds()} seconds from now. The clock sleeps until then.")
    await _work_until_published(database)
    async with database.connection() as connection:
        late = await LATE.one(connection, scheduled.id)
        story = await STORY.all(connection, begun.post)
    say(f"A worker took it {late.ms:.0f} ms after its time, said what it was about to do, and recorded the answer.")
    return Told(refused, late.ms, story, next(line.target for line in reversed(story) if line.lifecycle == "post"))


async def _jump_ahead(database: Database, post: UUID) -> str:
    try:
        async with database.transaction("somebody", "impatience") as connection:
            await MOVE_POST.one(connection, post, "published")
    except asyncpg.CheckViolationError as refusal:
        return refusal.message
    raise RuntimeError("PostgreSQL allowed a move that is not declared")


async def _work_until_published(database: Database) -> None:
    published = asyncio.Event()

    async def publish(job: Job) -> None:
        async with database.transaction("worker", "its time has come") as connection:
            lease = await PUBLICATIONS.claim(connection, UUID(job.key), LEASE)
        if lease is None:
            return
        async with database.transaction("worker", "about to send") as connection:
            await INTEND.one(connection, lease.id, lease.fence)
        async with database.transaction("worker", "the platform said so") as connection:
            await SUCCEED.one(connection, lease.id, lease.fence, "demo-1")
        published.set()

    entrypoint = Entrypoint("publish", publish, concurrency=0, attempts=1, timeout=timedelta(seconds=30))
    queue = Queue(database.url, [entrypoint], concurrency=2, grace_seconds=5)
    clock = Clock(database.url, timers(crashes_before_quarantine=3), [entrypoint.name])
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(queue.run(published))
        group.create_task(clock.run(published))
