"""Notify: tells people of new chapters where they want to be told, once each.

A notice is made with its chapter, one for each person. `notify` puts the notices of a series into messages, one for
each target and series, or one for everything when the target wants a digest; the clock hands a message to `deliver`
when its window is over. An attempt is counted and committed before anything is sent, and its result after it: whoever
is killed between the two leaves a message of which nobody can tell whether it went out. It is sent once more, which may
be the one repeated message; if its sender dies again it becomes a dead letter.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import structlog

from imprint.decisions.chapter_number import ChapterNumber, Kind
from imprint.decisions.message import Message, News, message
from imprint.decisions.retry import pause
from imprint.engine import circuit
from imprint.engine.circuit import NOTIFYING
from imprint.engine.courier import Courier
from imprint.engine.queue import Job
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.credential import Unopenable
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.target import GET as TARGET
from imprint.work.target import key, opened
from imprint.work.vault import Vault

log = structlog.get_logger()

ATTEMPTS = 5
MOST_LOST = 2  # the second time its sender dies a message is set aside
LEASE = timedelta(seconds=90)  # longer than a courier may take
DIED = "Whoever was sending it died before it could say how it went."


@dataclass(frozen=True)
class Claimed:
    """A message that is ours to send, under a fence."""

    id: int
    target_id: UUID
    attempts: int
    lost: int
    fence: int
    orphan: bool  # whoever had it before died with it


@dataclass(frozen=True)
class Chapter:
    """A chapter that a message tells of."""

    series: str
    kind: str
    slug: str
    number: Decimal | None
    number_end: Decimal | None
    volume: Decimal | None
    season: int | None
    version: int | None
    title: str | None
    url: str | None

    def news(self) -> News:
        """Give it as a person is told of it."""
        named = ChapterNumber(
            Kind(self.kind), self.slug, self.number, self.number_end, self.volume, self.season, self.version
        )
        return News(self.series, named.label, self.title or "", self.url or "")


@dataclass(frozen=True)
class Ended:
    """A delivery that was changed."""

    id: int


GATHER = query("delivery_gather", Nothing)
CLAIM = query("delivery_claim", Claimed)
NOTICES = query("delivery_notices", Chapter)
PUT_OFF = query("delivery_put_off", Nothing)
END = query("delivery_end", Ended)
FORGET_ATTEMPTS = query("delivery_forget_attempts", Nothing)
FAILED = query("delivery_failed", Ended)
ATTEMPTED = query("delivery_attempted", Nothing)
WORKED_THERE = query("target_worked", Nothing)
FAILED_THERE = query("target_failed", Nothing)


class Notifier:
    """Puts notices into messages and sends those."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        courier: Courier,
        settings: Settings,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._vault = vault
        self._courier = courier
        self._settings = settings
        self._roll = roll

    async def notify(self, job: Job) -> None:
        """Put what is new in a series into the messages of those who follow it."""
        window = timedelta(seconds=self._settings.notice_window_seconds)
        async with self._database.transaction("notify", "new chapters") as connection:
            await GATHER.run(connection, UUID(job.key), window, self._settings.zone, self._settings.notice_daily_hour)

    async def deliver(self, job: Job) -> None:
        """Send one message, if it is due, its target is well, and its person still wants it."""
        taken = await self._claim(int(job.key))
        if taken is None:
            return
        mine, address, text = taken
        try:
            await self._courier.send(address, text.title, text.body)
        except Problem as problem:
            await self._failed(mine, problem.sentence)
        else:
            await self._sent(mine)

    async def _claim(self, delivery: int) -> tuple[Claimed, str, Message] | None:
        """Take a message in one transaction and say what is to be sent where; None when there is nothing to send."""
        async with self._database.transaction("deliver", "a message is due") as connection:
            mine = await CLAIM.first(connection, delivery, LEASE)
            if mine is None:
                return None
            if mine.orphan:
                await ATTEMPTED.run(connection, mine.id, DIED)
            if mine.lost >= MOST_LOST or mine.attempts > ATTEMPTS:
                await self._give_up(connection, mine, DIED)
                return None
            try:
                address = await opened(connection, self._vault, mine.target_id)
            except Unopenable as problem:
                await self._give_up(connection, mine, problem.sentence)
                return None
            target = await TARGET.first(connection, mine.target_id)
            chapters = await NOTICES.all(connection, mine.id)
            if address is None or target is None or target.muted or not chapters:
                await END.one(connection, mine.id, "moot")
                await FORGET_ATTEMPTS.run(connection, mine.id)
                return None
            answer = await circuit.ask(connection, key(mine.target_id), NOTIFYING)
            if not answer.may_call:
                await PUT_OFF.run(connection, mine.id, mine.fence, answer.until)
                return None
            return mine, address.get_secret_value(), message([each.news() for each in chapters])

    async def _sent(self, mine: Claimed) -> None:
        async with self._database.transaction("deliver", "it arrived") as connection:
            await END.first(connection, mine.id, "sent")
            await FORGET_ATTEMPTS.run(connection, mine.id)
            await WORKED_THERE.run(connection, mine.target_id)
            await circuit.worked(connection, key(mine.target_id))

    async def _failed(self, mine: Claimed, why: str) -> None:
        wait = pause(mine.attempts, self._roll())
        async with self._database.transaction("deliver", "it did not arrive") as connection:
            last = mine.attempts >= ATTEMPTS
            if await FAILED.first(connection, mine.id, mine.fence, why, wait, last) is None:
                return  # somebody else has it by now
            await ATTEMPTED.run(connection, mine.id, why)
            await FAILED_THERE.run(connection, mine.target_id, why)
            await circuit.failed(connection, key(mine.target_id), NOTIFYING, "error", why)
        log.warning("a message did not arrive", delivery=mine.id, attempt=mine.attempts, last=last, why=why)

    async def _give_up(self, connection: Link, mine: Claimed, why: str) -> None:
        await FAILED.one(connection, mine.id, mine.fence, why, timedelta(0), True)  # noqa: FBT003 - a value of SQL
        log.warning("a message is set aside", delivery=mine.id, why=why)
