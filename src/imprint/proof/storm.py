"""The storm: keeps workers at work, kills them, puts them to sleep, and skips the time in which all would wait."""

import asyncio
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from imprint.engine.queue import HEARTBEAT
from imprint.killpoint import POINTS
from imprint.problem import Problem
from imprint.proof.ground import Ground
from imprint.proof.nursery import Doom, Nursery
from imprint.store.db import connect
from imprint.store.query import Connection, Nothing, query

CONCURRENCY = 4
STEP, LOOK = 0.03, 0.15
# A life of a worker that is killed at random; and of one whose point does not come.
SHORT_LIFE, LONG_LIFE = (0.3, 2.0), (3.0, 6.0)
# Points that are passed only when something is unknown.
LOOKS = {"look_taken", "look_answered", "look_before_commit", "look_after_commit"}
# Asleep before the intent: past the lease. After it: past the deadline of the request, on the sleeper's own clock.
BEFORE_INTENT = ("claim_after_commit", "upload_before_id", "upload_after_id", "intent_before")
AFTER_INTENT = ("intent_after", "request_left", "answer_read")
LONG_SLEEP = 33.0
# At once: each holds its connections, of which the database has a hundred, and the dead keep theirs for a moment.
ASLEEP = 2
CONNECTIONS, OF_A_WORKER = 85, 10
AWAKE = 1.5
# When everybody waits: so many looks in a row; or nothing has moved for so long.
IDLE_LOOKS, IDLE_SECONDS = 3, 4.0
# A hop that has changed nothing doubles the patience before the next: perhaps the machine has too much to do.
FRUITLESS = 3
# What comes as soon as this is waited for.
SOON = timedelta(seconds=1)
# What a platform may still be doing for a worker that is dead.
SETTLES = 0.2
STOPS_WITHIN = 4.0
SPREAD = 1.0
# So many workers in a row that end by themselves at once are no accident.
REFUSED = 20
FEW, BUSY = 3, 2
WAVES = 100
EVEN = 0.5
# So many times longer lives those who are born while this part more is dead than out.
LEISURE, AHEAD = 5.0, 0.05
# A hop goes to the moment at which so many things, or this part of what waits, must be looked at: each costs all
# workers a new start. When nobody has to die any more it goes to the last.
TOGETHER, PART = 5, 4
MOMENT = timedelta(seconds=0.5)


@dataclass(frozen=True)
class Asked:
    """How much is to be proved."""

    publishes: int
    kills: int
    workers: int
    token: bool
    seed: int
    lease: float
    sleeps: int
    long_sleeps: bool
    seconds: float

    @property
    def points(self) -> tuple[str, ...]:
        """Name the points that can be passed on these platforms."""
        never = {"look_answered"} if self.token else {"folder_before_appears", "folder_after_appears"}
        return tuple(point for point in POINTS if point not in never)


@dataclass(frozen=True)
class Progress:
    """How far everything has come."""

    due: int
    queued: int
    held: int
    looks: int
    unknown: int
    open: int
    connections: int


@dataclass(frozen=True)
class Wait:
    """How long until something must be looked at."""

    wait: timedelta


@dataclass(frozen=True)
class Overdue:
    """A publication whose lease has ended without anybody having taken it back."""

    id: UUID
    fence: int


PROGRESS = query("proof_progress", Progress)
NEXT = query("proof_next", Wait)
AGE_JOBS = query("proof_age_jobs", Nothing)
OVERDUE = query("proof_overdue", Overdue)


@dataclass
class Worker:
    """A worker that lives, as far as is known."""

    number: int
    doom: Doom | None
    dies_at: float | None
    pid: int = 0
    wakes_at: float | None = None

    @property
    def asleep(self) -> bool:
        """Say whether it was put to sleep."""
        return self.wakes_at is not None


@dataclass
class Storm:
    """What happens, and what was counted of it."""

    asked: Asked
    ground: Ground
    nursery: Nursery
    dice: random.Random
    hits: Counter[str] = field(default_factory=Counter)
    random_kills: int = 0
    sleeps: int = 0
    recovered: list[float] = field(default_factory=list)
    victims: set[str] = field(default_factory=set)
    _workers: dict[int, Worker] = field(default_factory=dict)
    _born: int = 0
    _overdue: dict[tuple[UUID, int], float] = field(default_factory=dict)
    _looks: int = 0
    _open: int = 0
    _room: int = CONNECTIONS
    _held_back: bool = False
    _more: bool = True
    _refused: int = 0

    @property
    def named_kills(self) -> int:
        """Count the kills at named points."""
        return sum(self.hits.values())

    @property
    def kills(self) -> int:
        """Count the kills, at points and at random."""
        return self.named_kills + self.random_kills

    @property
    def done(self) -> float:
        """Say which part of the kills is done; half of them are at named points, and more of one kind do not help."""
        named = self.asked.kills // 2
        counted = min(self.named_kills, named) + min(self.random_kills, self.asked.kills - named)
        return counted / self.asked.kills if self.asked.kills else 1.0

    @property
    def oldest(self) -> float:
        """Say for how many seconds at most a lease that had ended was not taken back."""
        return max([*self.recovered, *(time.monotonic() - since for since in self._overdue.values())], default=0.0)

    @property
    def over(self) -> bool:
        """Say whether everybody may live from now on."""
        return self.done >= 1

    async def rage(self) -> None:
        """Let it happen until everything is over, or the time is."""
        ends_at = time.monotonic() + self.asked.seconds
        listening = asyncio.create_task(self.nursery.listen(self._heard))
        connection = await connect(self.ground.hops.url(self.ground.url))
        idle, fruitless, moved_at, before = 0, 0, time.monotonic(), (0, 0, 0)
        try:
            while time.monotonic() < ends_at:
                looks_at = time.monotonic() + LOOK
                while time.monotonic() < looks_at:
                    self._fates()
                    await asyncio.sleep(STEP)
                if listening.done():
                    listening.result()
                    raise Problem("proof.no_nursery", "The process that forks the workers has ended.")
                seen = await PROGRESS.one(connection, self._actors())
                await self._watch_leases(connection)
                self._see(seen)
                self._more = seen.open > 2 * BUSY * self.asked.workers
                now = (seen.open, self.kills, self.ground.planned)
                if now != before:
                    moved_at, before, fruitless = time.monotonic(), now, 0
                if seen.open == 0 and self.ground.planned >= self.asked.publishes and self.over:
                    return
                ready = seen.due + seen.queued + seen.held
                idle = idle + 1 if ready == 0 else 0
                looks_wanted = seen.unknown > 0 and not self.over and self._looks_are_rare()
                if not looks_wanted and ready < BUSY * self.asked.workers:
                    idle = 0 if await self._release(connection, bored=ready == 0) else idle
                patience = IDLE_LOOKS * 2 ** min(fruitless, FRUITLESS)
                if idle >= patience or time.monotonic() - moved_at > IDLE_SECONDS:
                    connection = await self._hop(connection, seen.open, only_unknown=looks_wanted)
                    idle, fruitless, moved_at = 0, fruitless + 1, time.monotonic()
        finally:
            self._held_back = True
            await connection.close()
            await self._end_all(signal.SIGTERM)
            await self._end_all(signal.SIGKILL)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Keep the workers at work inside the block, without a hop."""
        listening, keeping = asyncio.create_task(self.nursery.listen(self._heard)), asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            await self._end_all(signal.SIGTERM)
            await self._end_all(signal.SIGKILL)
            listening.cancel()
            await asyncio.gather(listening, keeping, return_exceptions=True)

    async def _keep(self) -> None:
        while True:
            self._room = CONNECTIONS  # few workers, of whom hardly any dies
            self._fates()
            await asyncio.sleep(STEP)

    def _heard(self, told: dict[str, Any]) -> None:
        worker = self._workers.get(told["number"])
        if "born" in told and worker is not None:
            worker.pid = told["born"]
        elif "hit" in told and told["ends"] == signal.SIGSTOP and worker is not None:
            self.sleeps += 1
            long = told["hit"] in AFTER_INTENT
            worker.wakes_at = time.monotonic() + (LONG_SLEEP if long else self.asked.lease + 1)
            self.victims.add(_actor(worker.pid))
        elif "hit" in told:
            self.hits[told["hit"]] += 1
        elif "ended" in told:
            if told["signal"]:
                self.victims.add(_actor(told["ended"]))
            self._refused = self._refused + 1 if told["signal"] == 0 and told["code"] else 0
            self._workers.pop(told["number"], None)

    def _fates(self) -> None:
        """Kill whose time has come, wake the sleepers, and let new ones be born."""
        if self._refused > REFUSED:
            raise Problem("proof.no_worker", f"No worker stays alive: {self.ground.last_words()}")
        now = time.monotonic()
        for worker in list(self._workers.values()):
            if worker.asleep and worker.wakes_at is not None and now >= worker.wakes_at:
                self._signal(worker, signal.SIGCONT)
                # Its clock may be behind by now, as no clock of one database can be: it is not to take anything new.
                worker.wakes_at, worker.dies_at = None, now + AWAKE
            elif worker.pid and not worker.asleep and worker.dies_at is not None and now >= worker.dies_at:
                self.random_kills += 1
                worker.dies_at = None
                self._signal(worker, signal.SIGKILL)
        awake = sum(not worker.asleep for worker in self._workers.values())
        # When nobody has to die any more a few are quicker than many: each hop costs them all a new start.
        wanted = min(FEW, self.asked.workers) if self.over and not self._more else self.asked.workers
        for _ in range(min(wanted - awake, 0 if self._held_back else self._room)):
            self._room -= 1
            self._bear()

    def _see(self, seen: Progress) -> None:
        self._looks, self._open = seen.looks, seen.open
        self._room = (CONNECTIONS - seen.connections) // OF_A_WORKER

    def _bear(self) -> None:
        doom, life = self._fate()
        self._born += 1
        dies_at = None if life is None else time.monotonic() + self.dice.uniform(*life) * self._leisure()
        born = Worker(self._born, doom, dies_at)
        self._workers[born.number] = born
        arguments = ["worker", "--concurrency", str(CONCURRENCY), "--until-stdin-closes"]
        self.nursery.bear(born.number, arguments, self.ground.environment(), doom)

    def _fate(self) -> tuple[Doom | None, tuple[float, float] | None]:
        asked = self.asked
        if self.over:
            return None, None
        dooms = [worker.doom for worker in self._workers.values() if worker.doom]
        sleepers = sum(each.ends == signal.SIGSTOP for each in dooms)
        if sleepers < ASLEEP and self.sleeps < asked.sleeps * self.done:
            beds = (*BEFORE_INTENT, *(AFTER_INTENT if asked.long_sleeps else ()))
            return Doom(self.dice.choice(beds), 1, signal.SIGSTOP), LONG_LIFE
        meant = Counter(each.point for each in dooms)
        looked = sum(meant[each] for each in LOOKS) < self._looks
        ahead = self.named_kills - self.random_kills
        if (ahead > 0 or (ahead == 0 and self.dice.random() < EVEN)) and not (looked and self._looks_are_rare()):
            return None, SHORT_LIFE
        points = tuple(each for each in asked.points if looked or each not in LOOKS)
        rarest = min(self.hits[each] + meant[each] for each in points)
        point = self.dice.choice([each for each in points if self.hits[each] + meant[each] == rarest])
        return Doom(point, 1 if point in LOOKS else self.dice.randint(1, 3)), LONG_LIFE

    def _leisure(self) -> float:
        """Let workers live longer while the dying is ahead of the publishing: a slow machine gets nothing done else."""
        out = (self.ground.planned - self._open) / self.asked.publishes
        return LEISURE if self.done > out + AHEAD else 1.0

    def _looks_are_rare(self) -> bool:
        """Say whether a point is hit least of all that is passed only when something is looked for."""
        looks = [self.hits[each] for each in self.asked.points if each in LOOKS]
        return min(looks) <= min(self.hits[each] for each in self.asked.points if each not in LOOKS)

    async def _release(self, connection: Connection, *, bored: bool) -> bool:
        """Plan the next wave when enough have died for it, so that the dying lasts as long as the publishing.

        When nobody has anything to do and there is still dying to be done, some more are planned, beyond what was asked
        for if need be.
        """
        left = self.asked.publishes - self.ground.planned
        wave = max(BUSY * self.asked.workers, self.asked.publishes // WAVES)
        if left > 0 and (self.over or self.ground.planned / self.asked.publishes <= self.done):
            count = left if self.over else min(wave, left)
        elif bored and not self.over:
            count = self.asked.workers
        else:
            return False
        await self.ground.plan(connection, [self.dice.uniform(0, SPREAD) for _ in range(count)])
        return True

    async def _watch_leases(self, connection: Connection) -> None:
        now = time.monotonic()
        overdue = {(row.id, row.fence) for row in await OVERDUE.all(connection)}
        self.recovered += [now - since for each, since in self._overdue.items() if each not in overdue]
        self._overdue = {each: self._overdue.get(each, now) for each in overdue}

    async def _hop(self, connection: Connection, waiting: int, *, only_unknown: bool) -> Connection:
        """Stop everybody who is awake, skip to the next things that must be looked at, and go on."""
        together = self.asked.workers if only_unknown else waiting if self.over else max(TOGETHER, waiting // PART)
        found = await NEXT.first(connection, together, HEARTBEAT, only_unknown)
        if found is None or timedelta(0) < found.wait < SOON:
            return connection
        self._held_back = True
        try:
            await self._end_all(signal.SIGKILL, asleep=False)
            await asyncio.sleep(SETTLES)
            found = await NEXT.first(connection, together, HEARTBEAT, only_unknown)
            if found is None:
                return connection
            skipped = found.wait + MOMENT
            await AGE_JOBS.run(connection, skipped)
            await connection.close()
            self.ground.hop(skipped.total_seconds())
            connection = await connect(self.ground.hops.url(self.ground.url))
            self._see(await PROGRESS.one(connection, []))
            return connection
        finally:
            self._held_back = False

    async def _end_all(self, how: signal.Signals, *, asleep: bool = True) -> None:
        """End everybody, or everybody who is awake, and wait for it a while."""
        deadline = time.monotonic() + STOPS_WITHIN
        asked: set[int] = set()
        while left := [each for each in self._workers.values() if asleep or not each.asleep]:
            if time.monotonic() > deadline:
                return
            for worker in left:
                if worker.pid and worker.number not in asked:
                    asked.add(worker.number)
                    worker.dies_at = None
                    self._signal(worker, signal.SIGKILL if worker.asleep else how)
            await asyncio.sleep(STEP)

    def _actors(self) -> list[str]:
        return [_actor(each.pid) for each in self._workers.values() if each.pid and not each.asleep]

    def _signal(self, worker: Worker, kind: signal.Signals) -> None:
        self.nursery.send(worker.number, kind)


def _actor(pid: int) -> str:
    """Name a worker as it names itself in the attempts."""
    return f"worker {socket.gethostname()}:{pid}"
