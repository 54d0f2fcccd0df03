"""The clock: sleeps until the earliest row that is due, and hands what is due and allowed to the queue.

A due time lives in the row it belongs to, never in a delayed job: to reschedule, pause or cancel is to
update the row, and what became due while nobody was there is found by the same query. Any number of
clocks may run; they skip what another one is handing over.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
import structlog

from imprint.decisions.retry import pause
from imprint.engine.lease import PUBLICATIONS, SOURCES, Expired
from imprint.engine.queue import First, Job, enqueue, nothing_first
from imprint.killpoint import here
from imprint.store.db import ACT, GONE, TROUBLE
from imprint.store.query import Connection, Link, Nothing, Query, query

log = structlog.get_logger()

CHANNEL = "imprint_clock"
LONGEST_SLEEP = 60.0  # should a ring ever be missed, this is how late the clock can be
BLOCKED_SLEEP = 0.25  # something is due that another transaction holds at this moment
BATCH = 500


@dataclass(frozen=True)
class Due:
    """A row that was due: its key, and whether it may go now or was put off."""

    key: str
    priority: int
    go: bool


@dataclass(frozen=True)
class Planned:
    """How long until the earliest row of a timer must be looked at."""

    timer: str
    wake_at: float  # seconds, since a row may hold a time that no program can
    wake_in: float


@dataclass(frozen=True)
class Timer:
    """A column of times: which rows are due, and which entrypoint they are handed to (None: the statement did it).

    `soon` looks again at once at rows whose last job is just ending: the queue takes no second one before it has.
    """

    name: str
    entrypoint: str | None
    fire: Callable[[Link], Awaitable[Collection[Due]]]
    soon: Query[Nothing] | None = None


PLAN = query("clock_plan", Planned)
PUBLICATION_SOON = query("clock_publication_soon", Nothing)
SOURCE_SOON = query("clock_source_soon", Nothing)


def _handed(name: str, statement: Query[Due], entrypoint: str, soon: Query[Nothing] | None = None) -> Timer:
    return Timer(name, entrypoint, lambda connection: statement.all(connection, BATCH), soon)


def _expired(name: str, statement: Query[Expired], crashes: int) -> Timer:
    async def fire(connection: Link) -> Collection[Due]:
        lost = await statement.all(connection, BATCH, crashes)
        for row in lost:
            log.warning(
                "took back the lease of a worker that died", row=str(row.id), now=row.status, crashes=row.crashes
            )
        return [Due(str(row.id), 0, go=False) for row in lost]

    return Timer(name, None, fire)


def timers(crashes_before_quarantine: int) -> tuple[Timer, ...]:
    """Every timer there is."""
    return (
        _handed("publication_due", query("clock_publication_due", Due), "publish", PUBLICATION_SOON),
        _expired("publication_lost", PUBLICATIONS.expire, crashes_before_quarantine),
        _handed("publication_unknown", query("clock_publication_unknown", Due), "reconcile", PUBLICATION_SOON),
        _handed("source_due", query("clock_source_due", Due), "poll", SOURCE_SOON),
        _expired("source_lost", SOURCES.expire, crashes_before_quarantine),
        _handed("delivery_due", query("clock_delivery_due", Due), "deliver"),
        _handed("turn_due", query("clock_turn_due", Due), "publish"),
        _handed("chore_due", query("clock_chore_due", Due), "chore"),
    )


class Clock:
    """Watches the timers of which this program can do the work, until it is told to stop."""

    def __init__(
        self, url: str, every: Collection[Timer], entrypoints: Collection[str], first: First = nothing_first
    ) -> None:
        self._url = url
        self._first = first
        self._timers = {t.name: t for t in every if t.entrypoint is None or t.entrypoint in entrypoints}
        self._rung = asyncio.Event()
        self._planned_for = math.inf

    async def run(self, stop: asyncio.Event) -> None:
        """Tick until `stop`, through any outage of the database."""
        failures = 0
        stopping = asyncio.create_task(self._ring_on(stop))
        try:
            while not stop.is_set():
                try:
                    connection = await asyncpg.connect(self._url, server_settings={"application_name": "imprint clock"})
                    try:
                        await self._first()
                        failures = 0
                        await self._watch(connection, stop)
                    finally:
                        await _close(connection)
                except TROUBLE as error:
                    failures += 1
                    wait = pause(failures, random.uniform(0.5, 1), longest=timedelta(seconds=5))  # noqa: S311
                    log.warning("the database does not serve; the clock tries again", error=str(error))
                    if not stop.is_set():
                        self._rung.clear()  # the cut connection has rung, and would let us try again without a pause
                    await self._sleep(wait.total_seconds())
        finally:
            stopping.cancel()

    async def _watch(self, connection: Connection, stop: asyncio.Event) -> None:
        connection.add_termination_listener(lambda _: self._rung.set())
        await connection.add_listener(CHANNEL, self._heard)
        names = list(self._timers)
        for timer in self._timers.values():  # what became due while nobody was there; and statements are now prepared
            await self._fire(connection, timer)
        while not stop.is_set():
            self._rung.clear()
            plan = await PLAN.all(connection, names)
            overdue = [planned.timer for planned in plan if planned.wake_in <= 0]
            due = overdue or await self._until_due(plan)
            handed = sum([await self._fire(connection, self._timers[name]) for name in due])
            if overdue and not handed:
                await self._sleep(BLOCKED_SLEEP)

    async def _until_due(self, plan: list[Planned]) -> list[str]:
        """Sleep until the earliest row of the plan and name its timer; nothing when rung or there was no plan."""
        if not plan:
            self._planned_for = math.inf
            await self._sleep(LONGEST_SLEEP)
            return []
        first = plan[0]
        self._planned_for = first.wake_at
        seconds = first.wake_in
        if await self._sleep(min(seconds, LONGEST_SLEEP)) or seconds > LONGEST_SLEEP:
            return []
        return [planned.timer for planned in plan if planned.wake_at <= first.wake_at]

    async def _fire(self, connection: Link, timer: Timer) -> int:
        """Hand over what is due, its marks and its jobs in one transaction; say how many rows were dealt with."""
        async with connection.transaction():
            if timer.entrypoint is None:  # its statement moves rows, so the audit wants to know who did
                await ACT.one(connection, "clock", timer.name)
            rows = await timer.fire(connection)
            if timer.entrypoint is not None:
                jobs = [Job(timer.entrypoint, r.key, priority=r.priority) for r in rows if r.go]
                if await enqueue(connection, jobs) < len(jobs) and timer.soon is not None:
                    await timer.soon.run(connection, timer.entrypoint, [job.key for job in jobs])
            if rows:
                here("clock_before_commit")
        if rows:
            here("clock_after_commit")
        return len(rows)

    def _heard(self, _connection: object, _pid: object, _channel: object, payload: object) -> None:
        """Wake only for a time that is earlier than the one slept for."""
        try:
            earlier = float(str(payload)) < self._planned_for
        except ValueError:  # not one of ours; a look does no harm
            earlier = True
        if earlier:
            self._rung.set()

    async def _sleep(self, seconds: float) -> bool:
        """Sleep, and say whether the clock was rung before the time was over."""
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._rung.wait(), timeout=max(seconds, 0))
        return False

    async def _ring_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._rung.set()


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=5)
    except GONE:
        connection.terminate()
