"""A circuit keeps everybody away from what keeps refusing, and lets exactly one try it again."""

import asyncio
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from imprint.engine import circuit
from imprint.engine.circuit import POLLING, PUBLISHING, Failures, Kind, Policy
from imprint.store.query import Connection
from tests.engine.crowd import BEGIN, MOMENT, at_once, crowd, hold_time, move_time, undone, until_held_up

KEYS = st.sampled_from(["account:a", "account:a", "account:a", "host:h"])  # most of a story is about one of them
KINDS: st.SearchStrategy[Kind] = st.sampled_from(["rate limit", "error"])
# Whole seconds and their neighbours: what happens at a boundary happens there and not beside it.
TIMES = st.builds(
    lambda seconds, moments: timedelta(seconds=seconds) + moments * MOMENT, st.integers(0, 12), st.integers(-1, 1)
)
POLICIES = st.builds(
    lambda rate_limits, errors, failures, first, times, wait, probe: Policy(
        rate_limits=rate_limits,
        errors=errors,
        failures=failures,
        first=timedelta(seconds=first),
        longest=timedelta(seconds=first) * times,
        longest_wait=timedelta(seconds=wait),
        probe=timedelta(seconds=probe),
    ),
    st.integers(1, 3),
    st.integers(1, 4),
    st.none() | st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([1, 3, 4, 2**25]),
    st.integers(1, 12),
    st.integers(1, 5),
)


@dataclass(frozen=True)
class Ask:
    """Somebody asks."""

    key: str


@dataclass(frozen=True)
class Fail:
    """Somebody reports a failure."""

    key: str
    kind: Kind
    after: timedelta | None


@dataclass(frozen=True)
class Work:
    """Somebody reports a success."""

    key: str


@dataclass(frozen=True)
class Forget:
    """A person closes it."""

    key: str


@dataclass(frozen=True)
class Pass:
    """Time passes."""

    time: timedelta


@dataclass(frozen=True)
class Reach:
    """Somebody asks just before, at or after the moment at which a circuit changes by itself."""

    key: str
    moments: int


@dataclass(frozen=True)
class Change:
    """A new version comes with other numbers; the rows stay."""

    policy: Policy


Step = Ask | Fail | Work | Forget | Pass | Reach | Change
FAIL = st.builds(Fail, KEYS, KINDS, st.none() | TIMES | st.sampled_from([timedelta.min, -MOMENT, timedelta.max]))
# Failures and asking weigh more, and a list of lists is longer than a list: otherwise a circuit is rarely seen to
# open for the third time in a row.
STEPS = st.lists(
    st.lists(
        st.one_of(
            st.builds(Ask, KEYS),
            st.builds(Ask, KEYS),
            FAIL,
            st.builds(Fail, KEYS, KINDS, st.none()),
            st.builds(Work, KEYS),
            st.builds(Forget, KEYS),
            st.builds(Pass, TIMES),
            st.builds(Reach, KEYS, st.integers(-1, 1)),
            st.builds(Change, POLICIES),
        ),
        max_size=20,
    ),
    max_size=10,
).map(lambda parts: [step for part in parts for step in part])


@dataclass
class Model:
    """What a circuit should do, said in Python."""

    rate_limits: int = 0
    errors: int = 0
    openings: int = 0
    open_until: datetime | None = None
    probe_until: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Say whether its time runs."""
        return self.open_until is not None and now < self.open_until

    def ask(self, policy: Policy, now: datetime) -> tuple[str, datetime | None]:
        """Give the state and until when."""
        if self.open_until is None:
            return "closed", None
        if self.is_open(now):
            return "open", self.open_until
        if self.probe_until is not None and now < self.probe_until:
            return "open", self.probe_until
        self.probe_until = now + policy.probe
        return "probe", self.probe_until

    def fail(self, policy: Policy, step: Fail, now: datetime) -> None:
        """Count, and open where that is due."""
        self.rate_limits += step.kind == "rate limit"
        self.errors += step.kind == "error"
        was_open, ends = self.is_open(now), []
        if self.open_until is not None and was_open:
            ends.append(self.open_until)
        elif (
            self.openings > 0
            or self.rate_limits >= policy.rate_limits
            or self.errors >= policy.errors
            or (policy.failures is not None and self.rate_limits + self.errors >= policy.failures)
        ):
            ends.append(now + min(policy.first * 2 ** min(self.openings, 20), policy.longest))
            self.openings += 1
        if step.after is not None and step.after > timedelta(0):
            ends.append(now + min(step.after, policy.longest_wait))
        self.open_until = max(ends, default=None)
        self.probe_until = None


@pytest.fixture
async def still(connection: Connection) -> Connection:
    """Give a connection to a database in which time stands still."""
    await hold_time(connection)
    return connection


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policy=POLICIES, steps=STEPS)
async def test_a_circuit_does_what_its_model_does(still: Connection, policy: Policy, steps: list[Step]) -> None:
    """Whatever happens in whatever order, the database answers as the model does, and nobody slips in."""
    async with undone(still):
        await _walk(still, policy, steps)


async def _walk(connection: Connection, policy: Policy, steps: list[Step]) -> None:
    models: dict[str, Model] = {}
    shut: dict[str, datetime] = {}  # nobody may call before, said by what was reported and not by the model
    now = BEGIN
    await move_time(connection, now)
    for step in steps:
        if isinstance(step, Change):
            policy = step.policy
        now = _later(step, models, now)
        await move_time(connection, now)
        match step:
            case Ask(key) | Reach(key):
                answer = await circuit.ask(connection, key, policy)
                assert (answer.state, answer.until) == models.get(key, Model()).ask(policy, now)
                assert answer.may_call == (answer.state != "open")
                if answer.may_call:
                    assert now >= shut.get(key, now)
                if answer.state == "probe" and answer.until is not None:
                    shut[key] = answer.until
                assert answer.state == "closed" or answer.why == f"why {key}"
            case Fail(key, kind, after):
                told = await circuit.failed(connection, key, policy, kind, f"why {key}", after=after)
                model = models.setdefault(key, Model())
                model.fail(policy, step, now)
                assert told == Failures(model.rate_limits, model.errors, model.openings, model.open_until)
                shut[key] = told.open_until or now
            case Work(key):
                forgotten = key in models and not models[key].is_open(now)
                assert await circuit.worked(connection, key) == forgotten
                if forgotten:
                    del models[key], shut[key]
            case Forget(key):
                assert await circuit.forget(connection, key) == (key in models)
                models.pop(key, None)
                shut.pop(key, None)
        assert await _rows(connection) == models


def _later(step: Step, models: dict[str, Model], now: datetime) -> datetime:
    match step:
        case Pass(time):
            return now + max(time, timedelta(0))
        case Reach(key, moments):
            model = models.get(key, Model())
            return max(now, (model.probe_until or model.open_until or now) + moments * MOMENT)
        case _:
            return now


async def _rows(connection: Connection) -> dict[str, Model]:
    names = [field.name for field in fields(Model)]
    rows = await connection.fetch("SELECT * FROM circuit")
    return {row["key"]: Model(**{name: row[name] for name in names}) for row in rows}


async def test_publishing_opens_after_3_rate_limits_or_5_errors_for_5_minutes_doubling_to_an_hour(
    still: Connection,
) -> None:
    """The numbers of the specification, with the probe failing each time."""
    counts: dict[Kind, int] = {"rate limit": 3, "error": 5}
    for kind, count in counts.items():
        await circuit.forget(still, "account:a")
        now, minutes = BEGIN, []
        await move_time(still, now)
        for _ in range(count - 1):
            assert (await circuit.failed(still, "account:a", PUBLISHING, kind, "x")).open_until is None
        for _ in range(6):
            told = await circuit.failed(still, "account:a", PUBLISHING, kind, "x")
            assert told.open_until is not None
            minutes.append((told.open_until - now) / timedelta(minutes=1))
            now = told.open_until
            await move_time(still, now)
            assert (await circuit.ask(still, "account:a", PUBLISHING)).state == "probe"
        assert minutes == [5, 10, 20, 40, 60, 60]


async def test_polling_opens_after_5_failures_of_whatever_kind_for_24_hours(still: Connection) -> None:
    """Five failed polls in a row are five, also when some were rate limits; every opening is as long as the first."""
    kinds: list[Kind] = ["error", "rate limit", "error", "rate limit", "error"]
    told = [await circuit.failed(still, "source:s", POLLING, kind, "x") for kind in kinds]
    assert [each.openings for each in told] == [0, 0, 0, 0, 1]
    assert told[-1].open_until == BEGIN + timedelta(hours=24)
    await move_time(still, BEGIN + timedelta(hours=24))
    again = await circuit.failed(still, "source:s", POLLING, "error", "x")
    assert (again.openings, again.open_until) == (2, BEGIN + timedelta(hours=48))


async def test_a_hostile_wish_to_wait_is_clamped_and_does_not_count_as_an_opening(still: Connection) -> None:
    """A Retry-After of thousands of years keeps us away for the longest wait, one of the past not at all."""
    told = await circuit.failed(still, "host:h", PUBLISHING, "rate limit", "x", after=timedelta.max)
    assert told == Failures(1, 0, 0, BEGIN + timedelta(days=1))
    await circuit.forget(still, "host:h")
    told = await circuit.failed(still, "host:h", PUBLISHING, "rate limit", "x", after=timedelta.min)
    assert told == Failures(1, 0, 0, None)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(why=st.text(max_size=20) | st.text(st.sampled_from("a\0\udc80é😀"), min_size=490, max_size=600))
@example(why="x" * 501)
async def test_any_error_text_can_be_kept_and_is_kept_short(still: Connection, why: str) -> None:
    """What the other side sends as an error cannot make the report fail: no NUL, no half character, no length does."""
    async with undone(still):
        await circuit.failed(still, "host:h", PUBLISHING, "error", why)
        kept = await still.fetchval("SELECT last_error FROM circuit")
    assert len(kept) <= circuit.LONGEST_WHY
    assert "\0" not in kept
    if why.isascii() and "\0" not in why and len(why) <= circuit.LONGEST_WHY:
        assert kept == why


async def test_no_secret_is_kept_in_the_reason(still: Connection) -> None:
    """A URL's password is replaced, also one that a cut would split, and a secret type is refused outright."""
    url = "https://ada:" + "hunter2" * 100 + "@example.org"
    await circuit.failed(still, "host:h", PUBLISHING, "error", f"cannot reach {url}")
    assert "hunter2" not in await still.fetchval("SELECT last_error FROM circuit")
    with pytest.raises(TypeError):
        await circuit.failed(still, "host:h", PUBLISHING, "error", SecretStr("hunter2"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [{"rate_limits": 0}, {"errors": -1}, {"failures": 0}, {"first": timedelta(0)}, {"longest": timedelta(seconds=1)},
     {"longest_wait": timedelta(0)}, {"probe": timedelta(0)}],
    ids=str,
)  # fmt: skip
def test_a_policy_that_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    """A circuit that opens at nothing or never ends cannot be declared."""
    with pytest.raises(ValueError, match="cannot work"):
        replace(PUBLISHING, **wrong)


HOLD = "SELECT FROM circuit FOR UPDATE"


async def test_of_20_who_ask_at_once_exactly_one_gets_the_probe(still: Connection, database_url: str) -> None:
    """After the open time, and again when the prober was never heard of again; the others are told until when."""
    await circuit.failed(still, "host:h", PUBLISHING, "rate limit", "x", after=timedelta(seconds=1))
    now = BEGIN + timedelta(seconds=1)
    async with crowd(database_url) as many:
        for _ in range(3):
            for one in many:
                await move_time(one, now)
            answers = await at_once(still, HOLD, many, lambda one: circuit.ask(one, "host:h", PUBLISHING))
            assert sorted(answer.state for answer in answers) == ["open"] * 19 + ["probe"]
            assert {answer.until for answer in answers} == {now + PUBLISHING.probe}
            now += PUBLISHING.probe


async def test_20_who_ask_while_it_closes_are_all_let_in(still: Connection, database_url: str) -> None:
    """Who had to wait for a report of success is told the truth of after it, not of before."""
    await circuit.failed(still, "host:h", PUBLISHING, "rate limit", "x", after=timedelta(seconds=1))
    async with crowd(database_url) as many:
        for one in (still, *many):
            await move_time(one, BEGIN + timedelta(seconds=2))
        assert (await circuit.ask(still, "host:h", PUBLISHING)).state == "probe"
        async with still.transaction():
            assert await circuit.worked(still, "host:h")
            asked = [asyncio.ensure_future(circuit.ask(one, "host:h", PUBLISHING)) for one in many]
            await until_held_up(still, len(many))
        assert {answer.state for answer in await asyncio.gather(*asked)} == {"closed"}


@pytest.mark.parametrize(
    "lock",
    # Who holds up those with the first failure of all has reported one and then takes it back.
    [HOLD, "INSERT INTO circuit (key) VALUES ('host:h')"],
    ids=["known", "new"],
)
async def test_20_failures_at_once_are_all_counted_and_open_it_once(
    still: Connection, database_url: str, lock: str
) -> None:
    """Calls that were on their way when it opened do not make the open time any longer; no count is lost."""
    if lock == HOLD:
        await circuit.failed(still, "host:h", PUBLISHING, "rate limit", "x")
    async with crowd(database_url) as many:
        told = await at_once(still, lock, many, lambda one: circuit.failed(one, "host:h", PUBLISHING, "error", "x"))
    assert sorted(each.errors for each in told) == list(range(1, 21))
    assert {each.open_until for each in told if each.errors >= 5} == {BEGIN + timedelta(minutes=5)}
    assert {each.openings for each in told if each.errors >= 5} == {1}
