"""Simulating without a database: each reason, and that the rules workers keep to hold in every simulation."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import process_time
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint.engine import pace
from imprint.work.claim import GRACE
from imprint.work.simulation import Forecast, Lane, Planned, Rhythm, Why, World, simulated

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
WORLD = World(NOW, None, worker_alive=True)
ACCOUNT, BATCH = UUID(int=1), UUID(int=2)
LANE = Lane(ACCOUNT, "webhook", "hook", "connected", None, None, None, SECOND)


def planned(due: timedelta = HOUR, **changes: object) -> Planned:
    """Plan a publication so long from now."""
    at = NOW + due
    plain = Planned(
        uuid4(), uuid4(), "A tower", ACCOUNT, "pending", at, at, None, None, None, 0, False,  # noqa: FBT003
        "publish", None, None, None, None, False, 0, 0,  # noqa: FBT003
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def behind(place: int, **changes: object) -> Planned:
    """Plan a publication that waits for its turn in the batch."""
    return planned(timedelta(0), batch_id=BATCH, batch_place=place, **{"turn": "behind", "held_why": "batch"} | changes)


def run(
    rows: Sequence[Planned], lane: Lane = LANE, rhythms: Sequence[Rhythm] = (), world: World = WORLD
) -> list[Forecast]:
    """Simulate them on one account."""
    return simulated(world, [lane], rhythms, rows)


def only(row: Planned, lane: Lane = LANE, world: World = WORLD) -> tuple[Why, timedelta | None]:
    """Simulate one, and give why and how long from now."""
    (one,) = run([row], lane, world=world)
    return one.why, one.at - NOW if one.at else None


CASES = {
    "it waits for its time": (planned(), LANE, Why.TIME, HOUR),
    "it is due": (planned(-MINUTE), LANE, Why.QUEUE, timedelta(0)),
    "it was handed to the queue": (
        planned(-MINUTE, held_until=NOW + MINUTE, held_why="queue"), LANE, Why.QUEUE, timedelta(0),
    ),
    "it is tried again": (planned(30 * SECOND, attempts=2), LANE, Why.AGAIN, 30 * SECOND),
    "it runs": (planned(-MINUTE, status="running"), LANE, Why.RUNNING, timedelta(0)),
    "the platform asked for a pause": (
        planned(-MINUTE), replace(LANE, next_at=NOW + 5 * MINUTE), Why.PACE, 5 * MINUTE,
    ),
    "the circuit of its account is open": (
        planned(-MINUTE), replace(LANE, circuit_until=NOW + 5 * MINUTE), Why.CIRCUIT, 5 * MINUTE,
    ),
    "the circuit of its host is open": (
        planned(-MINUTE, held_until=NOW + 5 * MINUTE, held_why="circuit"), LANE, Why.CIRCUIT, 5 * MINUTE,
    ),
    "signing in did not work": (
        planned(-MINUTE, held_until=NOW + MINUTE, held_why="sign-in"), LANE, Why.SIGN_IN, MINUTE,
    ),
    "its account wants its person": (planned(), replace(LANE, status="reconnect"), Why.ACCOUNT, None),
    "its account is disabled": (planned(), replace(LANE, status="disabled"), Why.ACCOUNT, None),
    "its batch is paused": (behind(1, paused=True), LANE, Why.PAUSED, None),
    "it is late and is published": (planned(-2 * HOUR), LANE, Why.QUEUE, timedelta(0)),
    "it is late and is skipped": (planned(-2 * HOUR, late_policy="skip"), LANE, Why.LATE, None),
    "it is late and a person is asked": (planned(-2 * HOUR, late_policy="ask"), LANE, Why.LATE, None),
    "it is later than it may be": (planned(-2 * HOUR, late_hours=1), LANE, Why.LATE, None),
    "it is late by more than all may be": (planned(-25 * HOUR), LANE, Why.LATE, None),
    "it may be out, which cannot be too late": (planned(-25 * HOUR, left=True), LANE, Why.QUEUE, timedelta(0)),
    "the circuit is open until it is too late": (
        planned(-MINUTE, late_policy="skip"), replace(LANE, circuit_until=NOW + HOUR), Why.LATE, None,
    ),
    "nobody can tell whether it is out": (planned(-HOUR, status="unknown", look_at=NOW), LANE, Why.LOOK, None),
    "a person must decide": (planned(-HOUR, status="unknown"), LANE, Why.PERSON, None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_reason(case: str) -> None:
    """One publication alone: why, and when."""
    row, lane, why, after = CASES[case]
    assert only(row, lane) == (why, after)


def test_every_send_is_held() -> None:
    """A restored database sends nothing until a person has looked."""
    assert only(planned(), world=replace(WORLD, sends_held="restored")) == (Why.HELD, None)


def test_the_others_of_an_account_go_after_it_at_its_pace() -> None:
    """One after the other: when the one before has ended and its calls are over."""
    rows = [planned(-MINUTE, due_at=NOW - n * SECOND, files=3) for n in (3, 2, 1)]
    told = run(rows)
    assert [each.of for each in told] == rows
    assert [each.at - NOW for each in told if each.at] == [0 * SECOND, 2 * SECOND, 4 * SECOND]  # four calls, 0.5 s each
    assert [each.why for each in told] == [Why.QUEUE, Why.BUSY, Why.BUSY]
    slow = replace(LANE, took=10 * SECOND)
    assert [each.at - NOW for each in run(rows, slow) if each.at] == [0 * SECOND, 10 * SECOND, 20 * SECOND]


def test_a_pace_recovers_as_it_goes() -> None:
    """After a 429 the gap is wide; each success narrows it."""
    lane = replace(LANE, gap=10 * SECOND, next_at=NOW)
    told = run([planned(-MINUTE, due_at=NOW - n * SECOND) for n in (3, 2, 1)], lane)
    assert [each.at - NOW for each in told if each.at] == [0 * SECOND, 10 * SECOND, 18 * SECOND]
    assert [each.why for each in told] == [Why.QUEUE, Why.PACE, Why.PACE]


def test_files_that_are_there_cost_no_call_and_what_a_platform_does_not_take_neither() -> None:
    """Of three files two are uploaded; a platform that takes one file of a post is called for one."""
    one, two = planned(-MINUTE, due_at=NOW - MINUTE, files=3, uploaded=2), planned(-SECOND)
    assert run([one, two], replace(LANE, took=timedelta(0)))[1].at == NOW + SECOND
    art = replace(LANE, took=timedelta(0), platform="deviantart")
    assert run([replace(one, files=9, uploaded=0), two], art)[1].at == NOW + SECOND


def test_a_batch_keeps_its_order_and_its_interval() -> None:
    """The next one an interval after the end of the one before; one whose account is away is passed by."""
    rhythm = Rhythm(BATCH, 30 * MINUTE, NOW + HOUR)
    away = Lane(UUID(int=9), "webhook", "away", "reconnect", None, None, None, None)
    rows = [behind(3), behind(1), behind(2, account_id=away.id)]
    told = simulated(WORLD, [LANE, away], [rhythm], rows)
    assert [(each.of.batch_place, each.why, each.at and each.at - NOW) for each in told] == [
        (1, Why.BATCH, HOUR),
        (3, Why.BATCH, HOUR + SECOND + 30 * MINUTE),
        (2, Why.ACCOUNT, None),
    ]


@pytest.mark.parametrize("status", ["pending", "running"])
def test_the_turn_of_a_batch_waits_for_the_one_that_has_it(status: str) -> None:
    """While one is at the front nobody else is; its end begins the interval."""
    front = behind(1, turn="front", status=status, held_why=None)
    told = run([behind(2), front], rhythms=[Rhythm(BATCH, HOUR, None)])
    assert [(each.of.batch_place, each.at) for each in told] == [(1, NOW), (2, NOW + SECOND + HOUR)]


def test_one_that_is_too_late_at_the_front_passes_its_turn_on_at_once() -> None:
    """It was not tried, so the next need not wait."""
    front = behind(1, turn="front", due_at=NOW - HOUR, late_policy="skip", held_why=None)
    told = run([behind(2), front], rhythms=[Rhythm(BATCH, HOUR, None)])
    assert [(each.of.batch_place, each.at) for each in told] == [(2, NOW), (1, None)]


def test_a_queue_that_is_too_long_makes_the_last_ones_late() -> None:
    """Many at once on a slow account: those whose time was missed by more than the grace are skipped."""
    lane = replace(LANE, took=5 * MINUTE)
    told = run([planned(timedelta(0), late_policy="skip") for _ in range(6)], lane)
    assert [each.why for each in told] == [Why.QUEUE, Why.BUSY, Why.BUSY, Why.BUSY, Why.LATE, Why.LATE]


rows = st.builds(
    planned,
    st.integers(-7200, 7200).map(lambda seconds: timedelta(seconds=seconds)),
    account_id=st.sampled_from([UUID(int=n) for n in range(1, 4)]),
    late_policy=st.sampled_from(["publish", "skip", "ask"]),
    files=st.integers(0, 5),
)
members = st.lists(st.sampled_from([UUID(int=n) for n in range(1, 4)]), max_size=8).map(
    lambda accounts: [behind(place, account_id=account) for place, account in enumerate(accounts, 1)]
)
lanes = st.tuples(
    *[
        st.builds(
            Lane,
            st.just(UUID(int=n)),
            st.sampled_from(["webhook", "deviantart"]),
            st.just(f"account {n}"),
            st.sampled_from(["connected", "connected", "reconnect"]),
            st.none() | st.integers(0, 90).map(lambda seconds: timedelta(seconds=seconds)),
            st.none() | st.integers(-60, 3600).map(lambda seconds: NOW + timedelta(seconds=seconds)),
            st.none() | st.integers(-60, 3600).map(lambda seconds: NOW + timedelta(seconds=seconds)),
            st.none() | st.integers(0, 600).map(lambda seconds: timedelta(seconds=seconds)),
        )
        for n in range(1, 4)
    ]
)


@settings(max_examples=150, deadline=None)
@given(lanes, st.lists(rows, max_size=25), members, st.integers(0, 1440))
def test_the_rules_hold_in_every_simulation(
    accounts: tuple[Lane, ...], alone: list[Planned], in_batch: list[Planned], minutes: int
) -> None:
    """Each once; never early; one at a time per account, past its pace's first moment; a batch in its order."""
    rhythm = Rhythm(BATCH, timedelta(minutes=minutes), NOW)
    told = simulated(WORLD, accounts, [rhythm], [*alone, *in_batch])
    assert sorted(each.of.id for each in told) == sorted(each.id for each in [*alone, *in_batch])
    going = [(each, each.at) for each in told if each.at is not None]
    assert [at for _, at in going] == sorted(at for _, at in going)
    for lane in accounts:
        mine = [(each, at) for each, at in going if each.of.account_id == lane.id]
        assert not mine or lane.status == "connected"
        took = timedelta(seconds=2) if lane.took is None else lane.took
        assert all(at >= max(NOW, each.of.due_at, lane.next_at or NOW, lane.circuit_until or NOW) for each, at in mine)
        assert all(after - before >= max(took, pace.PUBLISHING.least) for (_, before), (_, after) in pairwise(mine))
        for each, at in mine:
            if each.of.late_policy != "publish" and each.of.turn is None:
                assert at - each.of.due_at <= GRACE
    places = [(each.of.batch_place or 0, at) for each, at in going if each.of.batch_id]
    assert [place for place, _ in places] == sorted(place for place, _ in places)
    assert all(after - before >= rhythm.every for (_, before), (_, after) in pairwise(places))


def test_many_are_simulated_in_a_moment() -> None:
    """Twenty thousand rows on a hundred accounts; a hundred thousand take five times as long."""
    accounts = [replace(LANE, id=UUID(int=n)) for n in range(1, 101)]
    many = [planned(n * SECOND, account_id=UUID(int=n % 100 + 1)) for n in range(20_000)]
    began = process_time()
    assert len(simulated(WORLD, accounts, [], many)) == len(many)
    assert process_time() - began < 3
