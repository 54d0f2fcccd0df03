"""A lease has one holder at a time, whatever happens to the holders; those who kill workers are set aside."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.engine.lease import PUBLICATIONS, SOURCES, Expired, Lease, Leased, LeaseLost
from imprint.store import incarnation
from imprint.store.db import Database
from imprint.store.query import Connection, Link, Query
from tests.engine.crowd import BEGIN, MOMENT, at_once, crowd, hold_time, move_time, undone, until_held_up
from tests.engine.scene import add_account, add_publication

MINUTE = timedelta(minutes=1)
DAY = timedelta(hours=24)
SHORT = timedelta(seconds=0.3)

TIMES = st.builds(
    lambda seconds, moments: max(timedelta(seconds=seconds) + moments * MOMENT, timedelta(0)),
    st.integers(0, 8),
    st.integers(-1, 1),
)
DURATIONS = st.integers(1, 6).map(lambda seconds: timedelta(seconds=seconds))
# Which of the rows, and which of all the leases there ever were, those of the dead included.
WHICH = st.integers(0, 30)


NEW_ACCOUNT = "INSERT INTO account (platform, name) VALUES ('sandbox', 'a') RETURNING id"
NEW_PUBLICATION = "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now()) RETURNING id"
NEW_SOURCE = "INSERT INTO source (name) VALUES ('s') RETURNING id"
INTEND = """UPDATE publication SET intent_at = imprint_now(), phase = 'publishing'
            WHERE id = $1 AND fence = $2 AND lease_until > imprint_now()"""


async def publications(connection: Link, accounts: Sequence[int]) -> list[UUID]:
    """Make due publications, each on the account of that number, two to a post where their accounts differ."""
    names = {name: await connection.fetchval(NEW_ACCOUNT) for name in sorted(set(accounts))}
    made: list[UUID] = []
    for place, name in enumerate(accounts):
        if place % 2 == 0 or name == accounts[place - 1]:
            post = await connection.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id")
            await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
        made.append(await connection.fetchval(NEW_PUBLICATION, post, names[name]))
    return made


@pytest.fixture
async def still(connection: Connection) -> Connection:
    """Give a connection to a database in which time stands still."""
    await hold_time(connection)
    return connection


@dataclass(frozen=True)
class Claim:
    """A worker wants a row."""

    row: int
    duration: timedelta


@dataclass(frozen=True)
class Renew:
    """A holder, alive or thought dead, wants to keep a lease."""

    lease: int
    duration: timedelta


@dataclass(frozen=True)
class Late:
    """A holder wants to keep a lease just before, at or after its end."""

    lease: int
    moments: int


@dataclass(frozen=True)
class Release:
    """A holder, alive or thought dead, gives a row back."""

    lease: int


@dataclass(frozen=True)
class Change:
    """A holder of a publication is about to send; a person disables the source of a lease, or enables it again."""

    lease: int


@dataclass(frozen=True)
class Expire:
    """The clock takes back what the dead held, so many at a time."""

    batch: int


@dataclass(frozen=True)
class Again:
    """A person wants a row tried again that was set aside."""

    row: int


@dataclass(frozen=True)
class Pass:
    """Time passes."""

    time: timedelta


Step = Claim | Renew | Late | Release | Change | Expire | Again | Pass
STEPS = st.lists(
    st.lists(
        st.one_of(
            st.builds(Claim, WHICH, DURATIONS),
            st.builds(Claim, WHICH, DURATIONS),
            st.builds(Renew, WHICH, DURATIONS),
            st.builds(Late, WHICH, st.integers(-1, 1)),
            st.builds(Release, WHICH),
            st.builds(Change, WHICH),
            st.builds(Expire, st.sampled_from([1, 500])),
            st.builds(Again, WHICH),
            st.builds(Pass, TIMES),
            st.builds(Pass, st.sampled_from([DAY - MOMENT, DAY])),
        ),
        max_size=20,
    ),
    max_size=10,
).map(lambda parts: [step for part in parts for step in part])


@dataclass
class Row:
    """What a leased row should look like, said in Python; `place` is where only one may be at work."""

    place: str
    status: str
    fence: int = 0
    until: datetime | None = None
    crashes: int = 0
    intent: bool = False
    error_code: str | None = None
    due_at: datetime = BEGIN


@dataclass
class World:
    """All rows of one table, every lease there ever was, and until when its holder believes to have it."""

    leased: Leased
    rows: dict[UUID, Row]
    limit: int
    now: datetime = BEGIN
    leases: list[Lease] = field(default_factory=list)
    believed: dict[tuple[UUID, int], datetime] = field(default_factory=dict)

    def is_publication(self) -> bool:
        """Say which of the two tables it is."""
        return self.leased is PUBLICATIONS

    def free(self, row: Row) -> bool:
        """Say whether a row can be claimed."""
        if self.is_publication():
            busy = any(other.status == "running" and other.place == row.place for other in self.rows.values())
            return row.status == "pending" and not busy
        return row.until is None and row.status != "disabled" and row.due_at <= self.now

    def crash(self, row: Row) -> None:
        """Count a holder that died, and set its row aside if that is one too many."""
        row.until, row.fence, row.crashes = None, row.fence + 1, row.crashes + 1
        too_many = row.crashes >= self.limit
        if self.is_publication():
            row.status = "unknown" if row.intent else "failed" if too_many else "pending"
            row.error_code = "quarantined" if row.status == "failed" else row.error_code
        elif too_many:
            row.status = "resting" if row.status == "active" else row.status
            row.due_at = max(row.due_at, self.now + DAY)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 3), steps=STEPS)
async def test_publications_are_held_by_one_at_a_time_and_one_per_account(
    still: Connection, limit: int, steps: list[Step]
) -> None:
    """Whatever holders, the clock and people do in whatever order, the rows are what the model says."""
    async with undone(still):
        await move_time(still, BEGIN)
        ids = await publications(still, [1, 1, 2])
        rows = {row: Row(place, "pending") for row, place in zip(ids, "112", strict=True)}
        await _walk(still, World(PUBLICATIONS, rows, limit), steps)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 3), steps=STEPS)
async def test_sources_are_held_by_one_at_a_time(still: Connection, limit: int, steps: list[Step]) -> None:
    """The same for sources, which a person may also disable in the middle."""
    async with undone(still):
        await move_time(still, BEGIN)
        rows = {await still.fetchval(NEW_SOURCE): Row(str(place), "active") for place in range(2)}
        await _walk(still, World(SOURCES, rows, limit), steps)


async def _walk(connection: Connection, world: World, steps: list[Step]) -> None:
    for step in steps:
        await _step(connection, world, step)
        assert await _rows(connection, world) == world.rows
        at_work = [world.rows[row].place for (row, _), until in world.believed.items() if world.now < until]
        assert len(at_work) == len(set(at_work)), "two believe at the same time that it is theirs"


async def _step(connection: Connection, world: World, step: Step) -> None:
    match step:
        case Pass(time):
            world.now += time
            await move_time(connection, world.now)
        case Claim(which, duration):
            await _claim(connection, world, list(world.rows)[which % len(world.rows)], duration)
        case Expire(batch):
            await _expire(connection, world, batch)
        case Again(which):
            await _again(connection, world, list(world.rows)[which % len(world.rows)])
        case Renew() | Late() | Release() | Change() if world.leases:
            await _hold(connection, world, step, world.leases[-1 - step.lease % len(world.leases)])
        case _:
            pass


async def _claim(connection: Connection, world: World, key: UUID, duration: timedelta) -> None:
    row = world.rows[key]
    expected = world.free(row)
    lease = await world.leased.claim(connection, key, duration)
    assert (lease is not None) == expected
    if lease is None:
        return
    assert lease.fence > max((old.fence for old in world.leases if old.id == key), default=0)
    assert (lease.id, lease.until, lease.crashes) == (key, world.now + duration, row.crashes)
    row.fence, row.until = lease.fence, lease.until
    row.status = "running" if world.is_publication() else row.status
    world.leases.append(lease)
    world.believed[key, lease.fence] = lease.until


async def _hold(connection: Connection, world: World, step: Renew | Late | Release | Change, lease: Lease) -> None:
    row = world.rows[lease.id]
    if isinstance(step, Late):
        world.now = max(world.now, (row.until or world.now) + step.moments * MOMENT)
        await move_time(connection, world.now)
        step = Renew(step.lease, timedelta(seconds=2))
    mine = row.fence == lease.fence and row.until is not None
    match step:
        case Renew(_, duration):
            kept = await world.leased.renew(connection, lease, duration)
            assert (kept is not None) == (mine and row.until is not None and row.until > world.now)
            if kept is not None:
                ends = world.now + duration
                if world.leased is PUBLICATIONS and row.until is not None:  # an intent may have made it longer
                    ends = max(ends, row.until)
                assert (kept.fence, kept.until) == (lease.fence, ends)
                row.until = world.believed[lease.id, lease.fence] = kept.until
        case Release():
            given_back = await world.leased.release(connection, lease)
            assert given_back == (mine and not row.intent)
            if given_back:
                row.until, row.crashes = None, 0
                row.status = "pending" if world.is_publication() else row.status
                del world.believed[lease.id, lease.fence]
        case Change() if world.is_publication():
            tag = await connection.execute(INTEND, lease.id, lease.fence)
            row.intent = row.intent or tag == "UPDATE 1"
        case Change():
            row.status = "active" if row.status == "disabled" else "disabled"
            await connection.execute("UPDATE source SET status = $2 WHERE id = $1", lease.id, row.status)


async def _expire(connection: Connection, world: World, batch: int) -> None:
    """Let the clock work until there is nothing left; each lease that has ended is one crash, and no other is."""
    ended = {key for key, row in world.rows.items() if row.until is not None and row.until <= world.now}
    seen: list[Expired] = []
    while found := await world.leased.expire.all(connection, batch, world.limit):
        assert len(found) <= batch
        seen += found
    assert sorted(each.id for each in seen) == sorted(ended)
    for each in seen:
        row = world.rows[each.id]
        world.crash(row)
        assert each == Expired(each.id, row.fence, row.crashes, row.status)


async def _again(connection: Connection, world: World, key: UUID) -> None:
    row = world.rows[key]
    if row.status in {"failed", "unknown"}:
        await connection.execute(
            "UPDATE publication SET status = 'pending', intent_at = NULL, left_at = NULL, look_at = NULL WHERE id = $1",
            key,
        )
        row.status, row.intent = "pending", False
    if row.status == "resting":
        await connection.execute("UPDATE source SET status = 'active' WHERE id = $1", key)
        row.status = "active"


async def _rows(connection: Connection, world: World) -> dict[UUID, Row]:
    """Read every row the way the model has it."""
    if world.is_publication():
        found = await connection.fetch(
            "SELECT id, status, fence, lease_until, crashes, intent_at IS NOT NULL, error_code, due_at FROM publication"
        )
    else:
        found = await connection.fetch(
            "SELECT id, status, fence, lease_until, crashes, false, NULL, next_check_at FROM source"
        )
    return {key: Row(world.rows[key].place, *values) for key, *values in found}


async def test_a_row_that_is_not_due_or_is_deleted_cannot_be_claimed(still: Connection) -> None:
    """A job that comes too early, after a reschedule for instance, finds nothing to claim."""
    (publication,) = await publications(still, [1])
    source = await still.fetchval(NEW_SOURCE)
    await still.execute("UPDATE publication SET due_at = imprint_now() + interval '1 s'")
    await still.execute("UPDATE source SET next_check_at = imprint_now() + interval '1 s'")
    for leased, row in ((PUBLICATIONS, publication), (SOURCES, source)):
        assert await leased.claim(still, row, MINUTE) is None
    await move_time(still, BEGIN + timedelta(seconds=1))
    await still.execute("UPDATE source SET deleted_at = imprint_now()")
    assert await SOURCES.claim(still, source, MINUTE) is None
    assert await PUBLICATIONS.claim(still, publication, MINUTE) is not None


async def test_of_20_who_claim_on_one_account_at_once_exactly_one_wins(still: Connection, database_url: str) -> None:
    """Twenty due publications of one account, a worker for each: the database lets one through."""
    rows = await publications(still, [1] * 20)
    async with crowd(database_url) as many:
        work = dict(zip(many, rows, strict=True))
        won = await at_once(
            still, "SELECT FROM publication FOR UPDATE", many, lambda one: PUBLICATIONS.claim(one, work[one], MINUTE)
        )
    assert sum(lease is not None for lease in won) == 1
    assert await still.fetchval("SELECT count(*) FROM publication WHERE status = 'running'") == 1


@pytest.mark.parametrize("leased", [PUBLICATIONS, SOURCES], ids=lambda leased: leased.table)
async def test_of_20_who_claim_one_row_at_once_exactly_one_wins(
    still: Connection, database_url: str, leased: Leased
) -> None:
    """One row, twenty workers, as when a job is delivered again and again."""
    row = (await publications(still, [1]))[0] if leased is PUBLICATIONS else await still.fetchval(NEW_SOURCE)
    async with crowd(database_url) as many:
        lock = f"SELECT FROM {leased.table} FOR UPDATE"
        won = await at_once(still, lock, many, lambda one: leased.claim(one, row, MINUTE))
    assert [lease.fence for lease in won if lease is not None] == [1]


async def test_20_clocks_at_once_count_each_crash_once(still: Connection, database_url: str) -> None:
    """However many clocks look at the same dead holders, each row is taken back by one of them."""
    rows = await publications(still, range(30))
    for row in rows:
        assert await PUBLICATIONS.claim(still, row, MINUTE) is not None
    async with crowd(database_url) as many:
        for one in many:
            await move_time(one, BEGIN + MINUTE)
        taken = await asyncio.gather(*(PUBLICATIONS.expire.all(one, 7, 3) for one in many))
        taken.append(await PUBLICATIONS.expire.all(many[0], 500, 3))
    assert sorted(each.id for some in taken for each in some) == sorted(rows)
    assert {each.crashes for some in taken for each in some} == {1}


async def test_two_clocks_do_not_wait_for_each_other(still: Connection, database_url: str) -> None:
    """Where rows of the same posts are lost in crossed order, the second clock leaves them to the first."""
    posts = [await still.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id") for _ in range(2)]
    await still.execute("UPDATE post SET status = 'draft'")
    for place, post in enumerate([posts[0], posts[1], posts[1], posts[0]], start=1):
        row = await still.fetchval(NEW_PUBLICATION, post, await still.fetchval(NEW_ACCOUNT))
        assert await PUBLICATIONS.claim(still, row, timedelta(seconds=place)) is not None
    async with crowd(database_url, 2) as (one, other):
        for clock in (one, other):
            await move_time(clock, BEGIN + MINUTE)
        async with undone(still):
            await still.execute("SELECT FROM post WHERE id = $1 FOR UPDATE", posts[0])  # stops the first half way
            first = asyncio.ensure_future(PUBLICATIONS.expire.all(one, 2, 3))
            await until_held_up(still, 1)
            async with asyncio.timeout(10):
                assert await PUBLICATIONS.expire.all(other, 2, 3) == []
        assert len(await first) == 2
        assert len(await PUBLICATIONS.expire.all(other, 2, 3)) == 2


async def test_a_renewal_that_comes_first_saves_the_row_from_the_clock(still: Connection, database_url: str) -> None:
    """The clock neither waits for a renewal that is being written, nor takes the row back after it."""
    (row,) = await publications(still, [1])
    lease = await PUBLICATIONS.claim(still, row, MINUTE)
    assert lease is not None
    async with crowd(database_url, 2) as (holder, clock):
        await move_time(holder, BEGIN + MINUTE - MOMENT)
        await move_time(clock, BEGIN + MINUTE)
        async with holder.transaction():
            assert await PUBLICATIONS.renew(holder, lease, MINUTE) is not None
            async with asyncio.timeout(10):
                assert await PUBLICATIONS.expire.all(clock, 500, 3) == []
        assert await PUBLICATIONS.expire.all(clock, 500, 3) == []


async def test_a_claim_never_stands_in_the_way_of_one_who_finishes(still: Connection, database_url: str) -> None:
    """The one who finishes wakes the account's next row; a claim of that row does not hold it meanwhile."""
    first, second = await publications(still, [1, 1])
    lease = await PUBLICATIONS.claim(still, first, MINUTE)
    assert lease is not None
    await still.execute("UPDATE publication SET held_until = due_at WHERE id = $1", second)
    async with crowd(database_url, 2) as (finisher, claimer):
        async with undone(still):
            await still.execute("SELECT FROM post FOR UPDATE")  # stops the finisher half way, its row written
            finishing = asyncio.ensure_future(PUBLICATIONS.release(finisher, lease))
            await until_held_up(still, 1)
            claiming = asyncio.ensure_future(PUBLICATIONS.claim(claimer, second, MINUTE))
            async with asyncio.timeout(10):
                assert await claiming is None
        assert await finishing


@pytest.fixture
async def claimed(database: Database) -> Lease:
    """Give a lease that has just been claimed."""
    async with database.connection() as connection:
        (row,) = await publications(connection, [1])
        lease = await PUBLICATIONS.claim(connection, row, MINUTE)
    assert lease is not None
    return lease


async def until_of(database: Database) -> datetime:
    """Read when the one lease there is ends."""
    async with database.connection() as connection:
        until: datetime = await connection.fetchval("SELECT lease_until FROM publication")
    return until


async def for_ever() -> None:
    """Work until somebody stops it; the test fails if nobody does."""
    async with asyncio.timeout(10):
        await asyncio.Event().wait()


async def test_a_kept_lease_is_renewed_as_long_as_the_body_runs_and_no_longer(
    database: Database, claimed: Lease
) -> None:
    """The body outlives the lease it began with, is not disturbed, and the heart stops with it."""
    duration = timedelta(seconds=1)
    before = asyncio.all_tasks()
    async with database.connection() as connection:  # a renewal never makes it shorter
        await connection.execute("UPDATE publication SET lease_until = imprint_now() + $1::interval", duration)
    async with asyncio.timeout(10), PUBLICATIONS.kept(database, claimed, duration):
        first = await until_of(database)
        while True:
            await asyncio.sleep(0.01)
            if await until_of(database) > first + duration:
                break
    assert asyncio.all_tasks() == before
    async with database.connection() as connection:
        assert await PUBLICATIONS.release(connection, claimed)


async def test_the_body_ends_when_another_takes_the_lease(
    database: Database, claimed: Lease, database_url: str
) -> None:
    """A clock that is ahead takes the row back and another worker claims it: the first is told, and changes nothing."""
    taken: list[Lease | None] = []

    async def work() -> None:
        async with PUBLICATIONS.kept(database, claimed, timedelta(seconds=2)):
            assert [each.id for each in await PUBLICATIONS.expire.all(other, 500, 3)] == [claimed.id]
            taken.append(await PUBLICATIONS.claim(other, claimed.id, MINUTE))
            begun = clock.time()
            try:
                await for_ever()
            finally:
                waits.append(clock.time() - begun)

    clock, waits = asyncio.get_running_loop(), list[float]()
    async with crowd(database_url, 1) as (other,):
        await other.execute("SET imprint.clock_offset = '1 hour'")
        with pytest.raises(LeaseLost) as lost:
            await work()
        assert lost.value.code == "lease.lost"
        assert waits[0] < 1.8, "it learned of it from its own deadline, not from the next heartbeat"
        (theirs,) = taken
        assert theirs is not None
        assert not await PUBLICATIONS.release(other, claimed)
        assert await PUBLICATIONS.renew(other, theirs, MINUTE) is not None


async def test_the_body_ends_when_the_database_is_gone_past_the_deadline(database: Database, claimed: Lease) -> None:
    """Without a database nothing can be renewed: the body ends, because its lease does."""

    async def work() -> None:
        async with PUBLICATIONS.kept(database, claimed, SHORT):
            database.pool.terminate()
            await for_ever()

    with pytest.raises(LeaseLost):
        await work()


async def test_the_body_ends_when_the_database_does_not_answer(database: Database, claimed: Lease) -> None:
    """A renewal that hangs is no renewal: the deadline does not wait for it, nor does a body begin on it."""

    async def work(*, lock_first: bool) -> None:
        if lock_first:
            await other.execute(lock)
        async with PUBLICATIONS.kept(database, claimed, SHORT):
            if lock_first:
                pytest.fail("it began")
            await other.execute(lock)
            await for_ever()

    lock = "SELECT FROM publication FOR UPDATE"
    for lock_first in (False, True):
        async with database.connection() as other, other.transaction():
            with pytest.raises(LeaseLost):
                await work(lock_first=lock_first)
            await other.execute("UPDATE publication SET lease_until = imprint_now() + interval '1 min'")


async def test_the_heart_outlives_a_refusal_of_the_database(database: Database, claimed: Lease) -> None:
    """One renewal that fails for whatever reason PostgreSQL has is followed by the next one."""
    beats: list[None] = []
    enough = asyncio.Event()

    class Sick(Query[Lease]):
        """A renewal of which the second one finds the disk full."""

        async def first(self, connection: Link, *values: object) -> Lease | None:
            """Renew, or not."""
            beats.append(None)
            if len(beats) == 2:
                raise asyncpg.DiskFullError
            if len(beats) == 4:
                enough.set()
            return await super().first(connection, *values)

    renew = PUBLICATIONS._renew
    sick = replace(PUBLICATIONS, _renew=Sick(renew.name, renew.sentence, renew.sql, renew.row))
    async with asyncio.timeout(10), sick.kept(database, claimed, timedelta(seconds=1.5)):
        await enough.wait()


async def test_a_lease_that_has_already_ended_lets_no_body_begin(database: Database, claimed: Lease) -> None:
    """Between the claim and the work any time may pass: the work begins only on a lease that still holds."""
    async with database.connection() as connection:
        await connection.execute("UPDATE publication SET lease_until = imprint_now()")
    with pytest.raises(LeaseLost):
        async with PUBLICATIONS.kept(database, claimed, MINUTE):
            pytest.fail("it began")


async def test_what_goes_wrong_in_the_body_is_not_taken_for_a_lost_lease(database: Database, claimed: Lease) -> None:
    """A time-out of the body's own, and a cancellation from outside, come out as what they are."""

    async def work(seconds: float) -> None:
        async with PUBLICATIONS.kept(database, claimed, MINUTE), asyncio.timeout(seconds):
            begun.set()
            await for_ever()

    begun = asyncio.Event()
    with pytest.raises(TimeoutError):
        await work(0)
    begun.clear()
    working = asyncio.ensure_future(work(10))
    await begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def test_nothing_is_claimed_while_sends_are_held(connection: Connection) -> None:
    """A job that a restored database brought along finds nothing to claim until a person has looked."""
    row = await add_publication(connection, await add_account(connection))
    await incarnation.BEGIN.run(connection)
    await incarnation.HOLD.run(connection, "restored")
    assert await PUBLICATIONS.claim(connection, row, timedelta(seconds=30)) is None
    await connection.execute("UPDATE incarnation SET held_since = NULL, held_why = NULL")
    assert await PUBLICATIONS.claim(connection, row, timedelta(seconds=30)) is not None
