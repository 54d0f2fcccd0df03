"""A pace keeps calls apart, whoever makes them; it slows down when told to and recovers."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.engine import pace
from imprint.engine.pace import PUBLISHING, Policy
from imprint.store.query import Connection
from tests.engine.crowd import BEGIN, MOMENT, at_once, crowd, hold_time, move_time, undone

KEYS = st.sampled_from(["account:a", "account:b"])
TIMES = st.builds(
    lambda halves, moments: max(timedelta(seconds=0.5) * halves + moments * MOMENT, timedelta(0)),
    st.integers(0, 24),
    st.integers(-1, 1),
)
POLICIES = st.builds(
    lambda least, times, ease, wait: Policy(
        least=timedelta(seconds=least),
        most=timedelta(seconds=least) * times,
        ease=ease,
        longest_wait=timedelta(seconds=wait),
    ),
    st.integers(1, 3),
    st.integers(1, 12),
    st.sampled_from([0.25, 0.5, 0.75]),  # what a float holds exactly, so that the model rounds as PostgreSQL does
    st.integers(1, 30),
)


@dataclass(frozen=True)
class Take:
    """Somebody wants to call."""

    key: str
    patience: timedelta | None


@dataclass(frozen=True)
class Slow:
    """Somebody was told to slow down."""

    key: str
    after: timedelta | None


@dataclass(frozen=True)
class Ease:
    """Somebody's call worked."""

    key: str


@dataclass(frozen=True)
class Pass:
    """Time passes."""

    time: timedelta


@dataclass(frozen=True)
class Change:
    """A new version comes with other numbers; the rows stay."""

    policy: Policy


Step = Take | Slow | Ease | Pass | Change
STEPS = st.lists(
    st.lists(
        st.one_of(
            st.builds(Take, KEYS, st.none() | TIMES),
            st.builds(Take, KEYS, st.none()),
            st.builds(Slow, KEYS, st.none() | TIMES | st.sampled_from([timedelta.min, -MOMENT, timedelta.max])),
            st.builds(Ease, KEYS),
            st.builds(Pass, TIMES),
            st.builds(Change, POLICIES),
        ),
        max_size=20,
    ),
    max_size=10,
).map(lambda parts: [step for part in parts for step in part])


@dataclass
class Model:
    """What a pace should do, said in Python."""

    gap: timedelta
    next_at: datetime

    def take(self, policy: Policy, now: datetime, patience: timedelta | None) -> timedelta:
        """Give the wait, and reserve its moment unless it is too long."""
        moment = max(self.next_at, now)
        if patience is None or moment - now <= patience:
            self.gap = min(max(self.gap, policy.least), policy.most)
            self.next_at = moment + self.gap
        return moment - now

    def slow(self, policy: Policy, now: datetime, after: timedelta | None) -> None:
        """Widen the gap and move the next moment away."""
        self.gap = min(max(self.gap, policy.least) * 2, policy.most)
        self.next_at = max(self.next_at, now + max(self.gap, min(after or timedelta(0), policy.longest_wait)))

    def ease(self, policy: Policy) -> None:
        """Narrow the gap."""
        if self.gap > policy.least:
            self.gap = min(max(self.gap * policy.ease, policy.least), policy.most)


@pytest.fixture
async def still(connection: Connection) -> Connection:
    """Give a connection to a database in which time stands still."""
    await hold_time(connection)
    return connection


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policy=POLICIES, steps=STEPS)
async def test_a_pace_does_what_its_model_does(still: Connection, policy: Policy, steps: list[Step]) -> None:
    """Whatever happens in whatever order, moments are a gap apart and never within a time we were asked to wait."""
    async with undone(still):
        await _walk(still, policy, steps)


async def _walk(connection: Connection, policy: Policy, steps: list[Step]) -> None:
    models: dict[str, Model] = {}
    quiet: dict[str, datetime] = {}  # no moment may lie before, said by what was reported and not by the model
    now = BEGIN
    await move_time(connection, now)
    for step in steps:
        match step:
            case Pass(time):
                now += time
                await move_time(connection, now)
            case Change(other):
                policy = other
            case Take(key, patience):
                call = (connection, key, policy) if patience is None else (connection, key, policy, patience)
                wait = await pace.take(*call)
                assert wait == models.setdefault(key, Model(policy.least, now)).take(policy, now, patience)
                if patience is None or wait <= patience:
                    assert now + wait >= quiet.get(key, now)
                    quiet[key] = now + wait + models[key].gap
                    assert models[key].gap >= policy.least
            case Slow(key, after):
                slowed = await pace.slow(connection, key, policy, after)
                model = models.setdefault(key, Model(policy.least, now))
                model.slow(policy, now, after)
                assert slowed == pace.Slowed(model.gap, model.next_at)
                asked = min(max(after or timedelta(0), timedelta(0)), policy.longest_wait)
                quiet[key] = max(quiet.get(key, now), now + asked)
            case Ease(key):
                await pace.ease(connection, key, policy)
                if key in models:
                    models[key].ease(policy)
        rows = await connection.fetch("SELECT * FROM pace")
        assert {row["key"]: Model(row["gap"], row["next_at"]) for row in rows} == models


async def test_publishing_starts_at_two_calls_per_second_slows_to_one_a_minute_and_recovers(still: Connection) -> None:
    """The way down and back, in the numbers of the default."""
    assert [(await pace.take(still, "a", PUBLISHING)).total_seconds() for _ in range(4)] == [0, 0.5, 1, 1.5]
    gaps = [(await pace.slow(still, "a", PUBLISHING)).gap.total_seconds() for _ in range(8)]
    assert gaps == [1, 2, 4, 8, 16, 32, 60, 60]
    for count in range(23):
        assert (await still.fetchval("SELECT gap FROM pace") == PUBLISHING.least) == (count == 22)
        await pace.ease(still, "a", PUBLISHING)


async def test_those_who_only_come_back_to_ask_do_not_push_the_moment_away(still: Connection) -> None:
    """Who has no patience for the wait reserves nothing, and finds the moment free when it comes."""
    after, patience = timedelta(minutes=10), timedelta(seconds=30)
    await pace.slow(still, "a", PUBLISHING, after)
    for _ in range(5):
        assert await pace.take(still, "a", PUBLISHING, patience) == after
    await move_time(still, BEGIN + after)
    assert await pace.take(still, "a", PUBLISHING, patience) == timedelta(0)


@pytest.mark.parametrize("lock", ["SELECT FROM pace FOR UPDATE", "INSERT INTO pace VALUES ('a', '1 s', imprint_now())"])
async def test_20_who_take_at_once_get_moments_a_gap_apart(still: Connection, database_url: str, lock: str) -> None:
    """Also when nobody has taken one before: no two get the same moment, and none is left out."""
    begun = 0
    if lock.startswith("SELECT"):
        await pace.take(still, "a", PUBLISHING)
        begun = 1
    async with crowd(database_url) as many:
        waits = await at_once(still, lock, many, lambda one: pace.take(one, "a", PUBLISHING))
    assert sorted(waits) == [PUBLISHING.least * (begun + turn) for turn in range(20)]


async def test_of_20_impatient_ones_at_once_only_so_many_get_a_moment_as_there_are(
    still: Connection, database_url: str
) -> None:
    """A patience of two gaps has room for three; all others learn that their wait is longer, and reserve nothing."""
    patience = PUBLISHING.least * 2
    async with crowd(database_url) as many:
        lock = "INSERT INTO pace VALUES ('a', '1 s', imprint_now())"
        waits = await at_once(still, lock, many, lambda one: pace.take(one, "a", PUBLISHING, patience))
    assert sorted(wait for wait in waits if wait <= patience) == [PUBLISHING.least * turn for turn in range(3)]
    assert await still.fetchval("SELECT next_at FROM pace") == BEGIN + PUBLISHING.least * 3


async def test_20_who_are_slowed_and_take_at_once_leave_a_pace_within_its_bounds(
    still: Connection, database_url: str
) -> None:
    """A storm of 429 ends at the widest gap, and no moment lies within the time we were asked to wait."""
    after = timedelta(minutes=3)
    await pace.take(still, "a", PUBLISHING)
    async with crowd(database_url) as many:
        hold = "SELECT FROM pace FOR UPDATE"
        slowed = await at_once(still, hold, many, lambda one: pace.slow(one, "a", PUBLISHING, after))
        assert max(each.gap for each in slowed) == PUBLISHING.most
        waits = await at_once(still, hold, many, lambda one: pace.take(one, "a", PUBLISHING))
    assert sorted(waits) == [after + PUBLISHING.most * turn for turn in range(20)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"least": timedelta(0)},
        {"least": timedelta(minutes=2)},
        {"ease": 0.0},
        {"ease": 1.0},
        {"longest_wait": timedelta(0)},
    ],
    ids=str,
)
def test_a_policy_that_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    """A pace without a gap, or one that never recovers, cannot be declared."""
    with pytest.raises(ValueError, match="cannot work"):
        replace(PUBLISHING, **wrong)
