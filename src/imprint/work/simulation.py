"""A simulation: when everything that is planned will probably go out, by the rules that workers keep to.

One at a time on each account, at its pace, not while its circuit is open, a batch in its order, too late as the post's
policy says. No clock and no database: it lets the time of its own rows pass. It takes for granted that a worker is free
whenever something may go, that every attempt works and takes as long as they did lately, and that nobody changes
anything: what it says of more than the next due time is an estimate.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count
from uuid import UUID

from imprint.decisions.schedule import Late, Verdict, verdict
from imprint.engine import pace
from imprint.lifecycles.account import AccountStatus
from imprint.lifecycles.publication import PublicationStatus as Status
from imprint.platforms.registry import PLATFORMS
from imprint.work.claim import CALLS, GRACE

# How long an attempt takes on an account on which nothing has gone out yet.
USUAL = timedelta(seconds=2)
# These end by themselves when their time is over; what is held for another reason is let go when its turn has come.
HOLDS = {"circuit", "sign-in"}


class Why(StrEnum):
    """What decides about the time of a publication; the last six: it does not go out by itself."""

    RUNNING = "running"
    QUEUE = "queue"
    TIME = "time"
    AGAIN = "again"
    BATCH = "batch"
    BUSY = "busy"
    PACE = "pace"
    CIRCUIT = "circuit"
    SIGN_IN = "sign-in"
    HELD = "held"
    ACCOUNT = "account"
    PAUSED = "paused"
    LATE = "late"
    LOOK = "look"
    PERSON = "person"


# Of these the time stands in the row itself; of all others it follows from what others do first.
CERTAIN = {Why.RUNNING, Why.QUEUE, Why.TIME, Why.AGAIN}


@dataclass(frozen=True)
class World:
    """What holds for every publication."""

    now: datetime
    sends_held: str | None
    worker_alive: bool


@dataclass(frozen=True)
class Lane:
    """An account, on which one goes after the other; `took` is how long an attempt took lately."""

    id: UUID
    platform: str
    account: str
    status: str
    gap: timedelta | None
    next_at: datetime | None
    circuit_until: datetime | None
    took: timedelta | None


@dataclass(frozen=True)
class Rhythm:
    """A batch that is not over: its interval, and when the next one gets its turn if nobody has it."""

    id: UUID
    every: timedelta
    turn_at: datetime | None


@dataclass(frozen=True, slots=True)
class Planned:
    """A publication that has not come to its end."""

    id: UUID
    post_id: UUID
    title: str
    account_id: UUID
    status: str
    due_at: datetime
    not_before: datetime
    held_until: datetime | None
    held_why: str | None
    look_at: datetime | None
    attempts: int
    left: bool
    late_policy: str
    late_hours: int | None
    batch_id: UUID | None
    batch_place: int | None
    turn: str | None
    paused: bool
    files: int
    uploaded: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a publication will probably go out, and what decides about that; no time: not by itself."""

    of: Planned
    at: datetime | None
    why: Why

    @property
    def estimated(self) -> bool:
        """Say whether the time depends on how it goes with others."""
        return self.why not in CERTAIN


@dataclass(frozen=True, slots=True)
class _Ready:
    """A publication whose time has come, and why it was not earlier."""

    of: Planned
    due_at: datetime
    since: datetime
    why: Why


@dataclass
class _Account:
    """An account while time passes: from when on it is free, its pace, and what waits for it."""

    connected: bool
    took: timedelta
    free_at: datetime
    next_at: datetime
    gap: timedelta
    closed_until: datetime
    most_files: int | None
    begun: bool = False
    ready: list[tuple[datetime, UUID, _Ready]] = field(default_factory=list)
    asked_for: datetime | None = None


@dataclass
class _Batch:
    """A batch while time passes: who is behind, in order."""

    every: timedelta
    behind: Iterator[Planned]


class _Passing:
    """Time passing: what happens next is at the top of the heap."""

    def __init__(
        self, world: World, lanes: Iterable[Lane], rhythms: Iterable[Rhythm], most_late: timedelta, policy: pace.Policy
    ) -> None:
        self.now = world.now
        self.held = world.sends_held is not None
        self.most_late, self.policy = most_late, policy
        self.accounts = {lane.id: self._account(lane) for lane in lanes}
        self.batches = {each.id: _Batch(each.every, iter(())) for each in rhythms}
        self.forecasts: list[Forecast] = []
        self._events: list[tuple[datetime, int, _Ready | _Account | _Batch]] = []
        self._number = count()

    def _account(self, lane: Lane) -> _Account:
        now, known = self.now, PLATFORMS.get(lane.platform)
        return _Account(
            connected=lane.status == AccountStatus.CONNECTED,
            took=USUAL if lane.took is None else lane.took,
            free_at=now,
            next_at=max(lane.next_at or now, now),
            gap=min(max(lane.gap or self.policy.least, self.policy.least), self.policy.most),
            closed_until=max(lane.circuit_until or now, now),
            most_files=known.limits.most_files if known else None,
        )

    def run(self, planned: Iterable[Planned], rhythms: Iterable[Rhythm]) -> None:
        """Put everything in its place, then let time pass until nothing happens any more."""
        behind: dict[UUID, list[Planned]] = {each.id: [] for each in rhythms}
        taken: set[UUID] = set()
        for each in planned:
            if (why := self._stuck(each)) is not None:
                self.forecasts.append(Forecast(each, None, why))
            elif each.turn == "behind" and each.batch_id in behind:
                behind[each.batch_id].append(each)
            else:
                self._set(each)
                if each.turn == "front" and each.batch_id is not None:
                    taken.add(each.batch_id)
        for rhythm in rhythms:
            batch = self.batches[rhythm.id]
            batch.behind = iter(sorted(behind[rhythm.id], key=lambda each: each.batch_place or 0))
            if rhythm.id not in taken:
                self._at(max(rhythm.turn_at or self.now, self.now), batch)
        self._pass_time()

    def _pass_time(self) -> None:
        while self._events:
            at, _, what = heappop(self._events)
            match what:
                case _Ready():
                    self._arrive(at, what)
                case _Batch():
                    self._give_turn(at, what)
                case _Account():
                    self._go(at, what)

    def _stuck(self, each: Planned) -> Why | None:
        """Say what keeps a publication from going out by itself, if anything does."""
        if each.status == Status.UNKNOWN:
            return Why.PERSON if each.look_at is None else Why.LOOK
        if each.status == Status.RUNNING:
            return None
        if self.held:
            return Why.HELD
        if each.account_id not in self.accounts or not self.accounts[each.account_id].connected:
            return Why.ACCOUNT
        return Why.PAUSED if each.paused else None

    def _set(self, each: Planned) -> None:
        """Put a publication that is not behind in its place."""
        if each.status == Status.RUNNING:
            self.forecasts.append(Forecast(each, self.now, Why.RUNNING))
            account = self.accounts.get(each.account_id)
            ends = self.now + (account.took if account else USUAL)
            if account:
                account.free_at, account.begun = ends, True
            self._pass_turn(each, ends, ended=True)
            return
        held = each.held_until if each.held_why in HOLDS and each.held_until else self.now
        if each.held_why == "circuit":  # the circuit of a host is known only by whom it holds
            account = self.accounts[each.account_id]
            account.closed_until = max(account.closed_until, held)
        since = max(each.due_at, self.now)
        why = Why.QUEUE if each.due_at <= self.now else Why.AGAIN if each.attempts else Why.TIME
        if held > since:
            since, why = held, Why(each.held_why or "")
        self._at(since, _Ready(each, each.due_at, since, why))

    def _arrive(self, at: datetime, ready: _Ready) -> None:
        account = self.accounts[ready.of.account_id]
        heappush(account.ready, (ready.due_at, ready.of.id, ready))
        self._ask(account, at)

    def _give_turn(self, at: datetime, batch: _Batch) -> None:
        if (each := next(batch.behind, None)) is not None:
            due = max(at, each.not_before)
            self._at(due, _Ready(each, due, due, Why.BATCH))

    def _go(self, at: datetime, account: _Account) -> None:
        """Let the first one that waits for an account go, or refuse it because it is too late by now."""
        if account.asked_for == at:
            account.asked_for = None
        if not account.ready:
            return
        if (free := max(account.free_at, account.next_at, account.closed_until)) > at:
            self._ask(account, free)
            return
        _, _, ready = heappop(account.ready)
        if self._too_late(at, ready):
            self.forecasts.append(Forecast(ready.of, None, Why.LATE))
            self._pass_turn(ready.of, at, ended=False)
        else:
            self.forecasts.append(Forecast(ready.of, at, self._why(at, ready, account)))
            files = ready.of.files if account.most_files is None else min(ready.of.files, account.most_files)
            account.next_at = at + account.gap * (CALLS + max(files - ready.of.uploaded, 0))
            account.gap = max(account.gap * self.policy.ease, self.policy.least)
            account.free_at, account.begun = at + account.took, True
            self._pass_turn(ready.of, account.free_at, ended=True)
        if account.ready:
            self._ask(account, max(account.free_at, account.next_at, at))

    def _too_late(self, at: datetime, ready: _Ready) -> bool:
        if ready.of.left:
            return False
        hours = ready.of.late_hours
        most = self.most_late if hours is None else timedelta(hours=hours)
        return verdict(at, ready.due_at, Late(ready.of.late_policy), most, GRACE) is not Verdict.GO

    def _why(self, at: datetime, ready: _Ready, account: _Account) -> Why:
        if at <= ready.since:
            return ready.why
        if account.closed_until == at:
            return Why.CIRCUIT
        slowed = not account.begun or account.gap > self.policy.least
        return Why.PACE if account.next_at == at and slowed else Why.BUSY

    def _pass_turn(self, each: Planned, at: datetime, *, ended: bool) -> None:
        """Let the next of a batch have its turn, after the interval if this one was tried."""
        batch = self.batches.get(each.batch_id) if each.batch_id and each.turn in {"front", "behind"} else None
        if batch is not None:
            self._at(at + batch.every if ended else at, batch)

    def _ask(self, account: _Account, at: datetime) -> None:
        """Look at an account at a time, unless somebody does so earlier anyway."""
        if account.asked_for is None or account.asked_for > at:
            account.asked_for = at
            self._at(at, account)

    def _at(self, at: datetime, what: _Ready | _Account | _Batch) -> None:
        heappush(self._events, (at, next(self._number), what))


def simulated(
    world: World,
    lanes: Sequence[Lane],
    rhythms: Sequence[Rhythm],
    planned: Iterable[Planned],
    *,
    most_late: timedelta = timedelta(hours=24),
    policy: pace.Policy | None = None,
) -> list[Forecast]:
    """Say of everything that is planned when it goes out, in that order; what does not go by itself comes last."""
    passing = _Passing(world, lanes, rhythms, most_late, policy or pace.PUBLISHING)
    passing.run(planned, rhythms)
    timeless = datetime.max.replace(tzinfo=world.now.tzinfo)
    staying = sorted(
        (each for each in passing.forecasts if each.at is None), key=lambda each: (each.of.due_at, each.of.id)
    )
    # Of two that go at the same moment the one comes first that was let go first, as in a batch.
    going = sorted((each for each in passing.forecasts if each.at), key=lambda each: each.at or timeless)
    return going + staying


def by_account(forecasts: Iterable[Forecast]) -> Mapping[UUID, list[Forecast]]:
    """Give the forecasts of each account, in their order."""
    found: dict[UUID, list[Forecast]] = {}
    for each in forecasts:
        found.setdefault(each.of.account_id, []).append(each)
    return found
