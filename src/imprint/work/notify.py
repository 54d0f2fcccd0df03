"""Notify: tells people of new chapters, and of what became of their posts, where they want to be told, once each.

A notice is made with its chapter, one for each person. `notify` puts the notices of a series into messages, one for
each target and series, or one for everything when the target wants a digest; the clock hands a message to `deliver`
when its window is over. An attempt is counted and committed before anything is sent, and its result after it: whoever
is killed between the two leaves a message of which nobody can tell whether it went out. It is sent once more, which may
be the one repeated message; if its sender dies again it becomes a dead letter. A webhook is sent to until it answers:
each attempt has the same id, so that its receiver acts once.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeAlias
from uuid import UUID

import structlog

from imprint.decisions.message import message
from imprint.decisions.retry import pause
from imprint.engine import circuit
from imprint.engine.circuit import NOTIFYING
from imprint.engine.courier import Courier
from imprint.engine.queue import Job
from imprint.engine.wire import Wire
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.credential import Unopenable
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work import webhook
from imprint.work.target import GET as TARGET
from imprint.work.target import key, opened
from imprint.work.tidings import Chapter, Tidings
from imprint.work.vault import Vault

log = structlog.get_logger()

ATTEMPTS = 5
MOST_LOST = 2  # the second time its sender dies a message is set aside
LEASE = timedelta(seconds=90)  # longer than a courier may take
Send: TypeAlias = Callable[[], Awaitable[None]]
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
    key: UUID
    news: str | None


@dataclass(frozen=True)
class Ended:
    """A delivery that was changed."""

    id: int


@dataclass(frozen=True)
class Written:
    """What a receiver is sent."""

    body: str


GATHER = query("delivery_gather", Nothing)
CLAIM = query("delivery_claim", Claimed)
NOTICES = query("delivery_notices", Chapter)
TIDINGS = query("delivery_tidings", Tidings)
WRITTEN = query("delivery_written", Written)
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
        wire: Wire | None = None,
    ) -> None:
        self._database = database
        self._vault = vault
        self._courier = courier
        self._settings = settings
        self._roll = roll
        self._wire = wire or Wire()

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
        mine, send, hook = taken
        try:
            await send()
        except Problem as problem:
            await self._failed(mine, problem, hook=hook)
        else:
            await self._sent(mine)

    async def _claim(self, delivery: int) -> tuple[Claimed, Send, bool] | None:  # noqa: PLR0911 - one way out for each reason
        """Take a message in one transaction, and give how it is sent and whether that is to a webhook; or None."""
        async with self._database.transaction("deliver", "a message is due") as connection:
            mine = await CLAIM.first(connection, delivery, LEASE)
            if mine is None:
                return None
            if mine.orphan:
                await ATTEMPTED.run(connection, mine.id, DIED)
            target = await TARGET.first(connection, mine.target_id)
            hook = target is not None and target.kind == "webhook"
            # A receiver knows by its key what it has already; so to a webhook it is sent again, whoever died with it.
            if mine.attempts > (webhook.ATTEMPTS if hook else ATTEMPTS) or (mine.lost >= MOST_LOST and not hook):
                await self._give_up(connection, mine, DIED)
                return None
            try:
                address = await opened(connection, self._vault, mine.target_id)
            except Unopenable as problem:
                await self._give_up(connection, mine, problem.sentence)
                return None
            told = await self._told(connection, mine)
            if address is None or target is None or target.muted or told is None:
                await END.one(connection, mine.id, "moot")
                await FORGET_ATTEMPTS.run(connection, mine.id)
                return None
            answer = await circuit.ask(connection, key(mine.target_id), NOTIFYING)
            if not answer.may_call:
                await PUT_OFF.run(connection, mine.id, mine.fence, answer.until)
                return None
            if hook:
                body = (await WRITTEN.one(connection, mine.id, webhook.body(told))).body
                wire = self._wire if target.trusted else self._wire.outward
                return mine, partial(webhook.call, wire, address, mine.key, body, target.now), hook
            text = told.message() if isinstance(told, Tidings) else message([each.news() for each in told])
            send = partial(
                self._courier.send, address.get_secret_value(), text.title, text.body, trusted=target.trusted
            )
            return mine, send, hook

    async def _told(self, connection: Link, mine: Claimed) -> Tidings | list[Chapter] | None:
        """Read what a message tells; None when there is nothing left to tell."""
        if mine.news is not None:
            return await TIDINGS.first(connection, mine.id)
        return await NOTICES.all(connection, mine.id) or None

    async def _sent(self, mine: Claimed) -> None:
        async with self._database.transaction("deliver", "it arrived") as connection:
            await END.first(connection, mine.id, "sent")
            await FORGET_ATTEMPTS.run(connection, mine.id)
            await WORKED_THERE.run(connection, mine.target_id)
            await circuit.worked(connection, key(mine.target_id))

    async def _failed(self, mine: Claimed, problem: Problem, *, hook: bool) -> None:
        why, gone = problem.sentence, problem.code == webhook.GONE
        last = gone or mine.attempts >= (webhook.ATTEMPTS if hook else ATTEMPTS)
        wait = webhook.wait(mine.attempts, self._roll()) if hook else pause(mine.attempts, self._roll())
        async with self._database.transaction("deliver", "it did not arrive") as connection:
            if await FAILED.first(connection, mine.id, mine.fence, why, wait, last) is None:
                return  # somebody else has it by now
            await ATTEMPTED.run(connection, mine.id, why)
            await FAILED_THERE.run(connection, mine.target_id, why)
            if gone:
                await webhook.GONE_FOR_GOOD.run(connection, mine.target_id)
            await circuit.failed(connection, key(mine.target_id), NOTIFYING, "error", why)
        log.warning("a message did not arrive", delivery=mine.id, attempt=mine.attempts, last=last, why=why)

    async def _give_up(self, connection: Link, mine: Claimed, why: str) -> None:
        await FAILED.one(connection, mine.id, mine.fence, why, timedelta(0), True)  # noqa: FBT003 - a value of SQL
        log.warning("a message is set aside", delivery=mine.id, why=why)
