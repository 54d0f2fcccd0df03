"""Batches: one after the other, a while after the end of the one before, whatever ends, dies or is changed."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from imprint.engine.lease import PUBLICATIONS
from imprint.engine.queue import Entrypoint
from imprint.problem import Problem
from imprint.sandbox.faults import Fault
from imprint.store import incarnation
from imprint.work import account as accounts
from imprint.work import schedule as schedules
from imprint.work.batch import create
from imprint.work.publish import Publisher
from imprint.work.status import status
from tests.engine.scene import clock_runs, queue_runs
from tests.waiting import until
from tests.work.mortal import Mortal
from tests.work.posts import HOUR, LIMITS, MINUTE, OWNER, Author
from tests.work.rhythm import ENDS, HALF, Rhythm, made
from tests.work.stage import FOLDER, UPLOAD, WEBHOOK, Stage

NOTHING = timedelta(0)


@pytest.fixture
def rhythm(author: Author) -> Rhythm:
    """Give the rhythm of the author's batches."""
    return Rhythm(author.database)


async def test_one_after_the_other_with_the_interval_from_the_end(play: Stage) -> None:
    """Each goes half an hour after the end of the one before, however long that took, in order, and each once."""
    rhythm = Rhythm(play.database)
    account = await play.account()
    posts = [await play.post() for _ in range(3)]
    shown = await create(play.database, LIMITS, OWNER, posts, every=HALF, accounts=[account])
    batch = shown.batch.id
    assert shown.batch.state == "waits"
    for number, member in enumerate(shown.members):
        front = await rhythm.given(batch)
        assert front == member.id
        await play.pass_time(timedelta(minutes=7))  # it may go, but nobody is there
        before = await rhythm.read("SELECT imprint_now()")
        await play.publish(front)
        assert await play.state(front) == "success"
        assert await rhythm.front(batch) is None
        if number < 2:
            ended = await rhythm.read("SELECT max(ended_at) FROM attempt")
            assert ended >= before
            assert abs(await rhythm.next_at(batch) - (ended + HALF)) < timedelta(seconds=1)
            assert await rhythm.tick() == []
            await play.pass_time(HALF - timedelta(minutes=1))
            assert await rhythm.tick() == []
            await play.pass_time(MINUTE + timedelta(seconds=1))
    await play.pass_time(HALF)
    assert await rhythm.tick() == [str(batch)]  # the last one had nobody behind it
    assert await rhythm.next_at(batch) is None
    shown = await rhythm.shown(batch)
    assert (shown.batch.state, shown.batch.out) == ("over", 3)
    titles = [member.title for member in shown.members]
    assert [title for _, title in play.effects()] == titles


async def test_a_real_clock_and_queue_drive_it(play: Stage) -> None:
    """With no interval a batch goes out in order by itself, each a moment after the one before."""
    on = [await play.account(each) for each in (WEBHOOK, FOLDER, WEBHOOK, FOLDER, WEBHOOK)]
    posts = [await play.post()]
    rhythm = Rhythm(play.database)
    publish = Entrypoint("publish", Publisher(play.desk).publish, concurrency=4, attempts=3, timeout=MINUTE)
    async with clock_runs(play.database.url, clocks=2), queue_runs(play.database.url, publish):
        shown = await create(play.database, LIMITS, OWNER, posts, every=NOTHING, accounts=on)

        async def over() -> bool:
            return (await rhythm.shown(shown.batch.id)).batch.state == "over"

        await until(over)
    assert [(each.post_id, each.account_id) for each in shown.members] == [(p, a) for p in posts for a in on]
    members = await rhythm.members(shown.batch.id)
    assert {each.status for each in members} == {"success"}
    went = [each.goes_at for each in members if each.goes_at]
    assert went == sorted(went)
    assert len(went) == len(on)


async def test_one_that_is_tried_again_does_not_hold_up_the_next(play: Stage) -> None:
    """A failure with attempts left passes the turn on; the retry takes no turn, keeps its place and comes through."""
    rhythm = Rhythm(play.database)
    account = await play.account()
    posts = [await play.post() for _ in range(3)]
    shown = await create(play.database, LIMITS, OWNER, posts, every=MINUTE, accounts=[account])
    first, second, third = (each.id for each in shown.members)
    play.fault(Fault.ERROR_BEFORE, UPLOAD)
    await play.publish(await rhythm.given(shown.batch.id))
    assert await rhythm.states(shown.batch.id) == [("pending", "over"), ("pending", "behind"), ("pending", "behind")]
    await play.wait_for("SELECT at FROM batch_turn")
    assert await rhythm.given(shown.batch.id) == second
    await play.out(first)
    assert await play.state(first) == "success"
    assert await rhythm.front(shown.batch.id) == second  # the retry's end gave nobody a turn
    assert await rhythm.next_at(shown.batch.id) is None
    await play.out(second)
    await play.wait_for("SELECT at FROM batch_turn")
    assert await rhythm.given(shown.batch.id) == third
    assert [each.place for each in await rhythm.members(shown.batch.id)] == [1, 2, 3]


@pytest.mark.parametrize("how", ENDS)
async def test_every_end_of_an_attempt(author: Author, rhythm: Rhythm, how: str) -> None:
    """The turn is passed on after the interval; only a worker that was stopped before anything left keeps it."""
    batch, _, _ = await made(author)
    await rhythm.tried(await rhythm.given(batch), how)
    (_, turn), *_ = await rhythm.states(batch)
    if how == "stopped":
        assert (turn, await rhythm.next_at(batch)) == ("front", None)
    else:
        assert turn == "over"
        left = await rhythm.next_at(batch) - await rhythm.read("SELECT imprint_now()")
        assert HALF - timedelta(seconds=5) < left <= HALF


async def test_a_killed_worker_keeps_order_and_rhythm(play: Stage, worker: Mortal) -> None:
    """Killed before anything left, the same one goes on; after it left it is unknown, and the next has its turn."""
    rhythm = Rhythm(play.database)
    account = await play.account()
    posts = [await play.post() for _ in range(3)]
    shown = await create(play.database, LIMITS, OWNER, posts, every=HALF, accounts=[account])
    first, second, _ = (each.id for each in shown.members)
    assert await rhythm.given(shown.batch.id) == first
    await worker.do("publish", first, "before publish_intend")
    await _expire(play)
    assert await rhythm.states(shown.batch.id) == [("pending", "front"), ("pending", "behind"), ("pending", "behind")]
    assert await rhythm.tick() == []
    await worker.do("publish", first, "left")
    await _expire(play)
    if await play.state(first) == "pending":  # what had left was only a file
        await play.publish(first)
    assert (await rhythm.members(shown.batch.id))[0].turn == "over"
    await play.wait_for("SELECT at FROM batch_turn")
    assert await rhythm.given(shown.batch.id) == second


async def _expire(play: Stage) -> None:
    await play.wait_for("SELECT max(lease_until) FROM publication WHERE status = 'running'")
    async with play.database.transaction("clock", "publication_lost") as connection:
        assert await PUBLICATIONS.expire.all(connection, 100, 9)


async def test_a_time_to_begin(author: Author, rhythm: Rhythm) -> None:
    """Nothing goes before the time and its jitter; when the first is taken out before, the second goes at that time."""
    at = datetime.now(UTC) + 2 * HOUR
    batch, posts, _ = await made(author, at=at)
    assert await rhythm.tick() == []
    begins = await rhythm.next_at(batch)
    assert begins is not None
    assert timedelta(0) <= begins - at <= LIMITS.jitter
    expected = [each.goes_at for each in await rhythm.members(batch)]
    assert expected == [begins, begins + HALF, begins + 2 * HALF]
    assert await rhythm.read("SELECT array_agg(due_at ORDER BY batch_place) FROM publication") == expected
    await schedules.cancel(author.database, OWNER, posts[0])
    assert await rhythm.next_at(batch) == begins
    assert (await rhythm.members(batch))[1].goes_at == begins
    await author.pass_time(2 * HOUR + LIMITS.jitter + MINUTE)
    assert await rhythm.given(batch) == (await rhythm.members(batch))[1].id


@pytest.mark.parametrize(("ahead", "code"), [(MINUTE, "schedule.too_soon"), (timedelta(days=366), "schedule.too_far")])
async def test_the_time_to_begin_has_limits(author: Author, ahead: timedelta, code: str) -> None:
    """Lead and horizon are those of a schedule."""
    with pytest.raises(Problem) as refused:
        await made(author, at=datetime.now(UTC) + ahead)
    assert refused.value.code == code
    assert await author.read("SELECT count(*) FROM batch") == 0


async def test_one_cancelled_at_the_front_does_not_cost_an_interval(author: Author, rhythm: Rhythm) -> None:
    """Nothing was tried, so the next one has its turn at once."""
    batch, posts, _ = await made(author)
    await rhythm.given(batch)
    await schedules.unschedule(author.database, OWNER, posts[0])
    assert await rhythm.given(batch) == (await rhythm.members(batch))[1].id


async def test_nothing_goes_before_its_turn(author: Author, rhythm: Rhythm) -> None:
    """A job for one that is behind does nothing, raw SQL is refused, and no release of anything wakes it."""
    batch, _, (account,) = await made(author, every=NOTHING)
    _, second, _ = await rhythm.members(batch)
    assert await rhythm.claim(second.id) is None
    with pytest.raises(asyncpg.CheckViolationError, match="publication_behind_waits"):
        await rhythm.read(
            "UPDATE publication SET status = 'running', phase = 'uploading', lease_until = imprint_now() WHERE id = $1",
            second.id,
        )
    await rhythm.read("UPDATE account SET status = 'reconnect' WHERE id = $1", account)
    await rhythm.read("UPDATE account SET status = 'connected' WHERE id = $1", account)
    await rhythm.read("UPDATE publication SET due_at = imprint_now(), held_until = NULL WHERE batch_id = $1", batch)
    assert await rhythm.hand_over() == []
    with pytest.raises(asyncpg.UniqueViolationError, match="publication_front"):
        await rhythm.read("UPDATE publication SET turn = 'front' WHERE batch_id = $1", batch)
    with pytest.raises(asyncpg.UniqueViolationError, match="publication_place"):
        await rhythm.read("UPDATE publication SET batch_place = 2 WHERE batch_id = $1", batch)
    async with author.database.connection() as connection:
        assert next(work for work in (await status(connection)).work if work.kind == "publications").late == 0


async def test_an_account_that_is_away_does_not_stop_the_others(author: Author, rhythm: Rhythm) -> None:
    """Its publications stay behind and go when it is back, in their order and not all at once."""
    batch, _, (one, two) = await made(author, 3, on=2)
    members = await rhythm.members(batch)
    lease = await rhythm.claim(await rhythm.given(batch))
    assert lease is not None
    await rhythm.read("UPDATE account SET status = 'reconnect' WHERE id = $1", one)
    await rhythm.end(lease, "sign_in_again")
    assert (await rhythm.states(batch))[0] == ("pending", "behind")
    await author.pass_time(HALF + MINUTE)
    assert await rhythm.given(batch) == members[1].id
    assert members[1].account_id == two
    await rhythm.tried(members[1].id, "published")
    await rhythm.read("UPDATE account SET status = 'disabled' WHERE id = $1", two)
    await author.pass_time(2 * (HALF + MINUTE))
    await rhythm.tick()
    assert await rhythm.front(batch) is None
    soon = await rhythm.next_at(batch) - await rhythm.read("SELECT imprint_now()")
    assert timedelta(0) < soon <= MINUTE  # nobody can go: somebody looks again
    await accounts.enable(author.database, OWNER, two)
    await author.pass_time(2 * (HALF + 2 * MINUTE))
    assert await rhythm.given(batch) == members[3].id
    await rhythm.read("UPDATE account SET status = 'reconnect' WHERE id = $1", two)
    await rhythm.read("UPDATE account SET status = 'connected' WHERE id = $1", one)
    assert await rhythm.hand_over() == []  # its account has gone away at the last moment
    assert await rhythm.given(batch) == members[0].id
    assert (await rhythm.states(batch))[3] == ("pending", "behind")


async def test_one_file_at_a_time(author: Author, rhythm: Rhythm) -> None:
    """Of a post that is published one file at a time each file has a place of its own."""
    account = await author.account(default=True)
    posts = [await author.draft(3, uploadMode="multiple"), await author.draft()]
    shown = await create(author.database, LIMITS, OWNER, posts, every=HALF)
    assert [(each.post_id, each.account_id) for each in shown.members] == [(posts[0], account)] * 3 + [
        (posts[1], account)
    ]
    assert await rhythm.given(shown.batch.id) == shown.members[0].id


async def test_a_held_database_gives_no_turn(author: Author, rhythm: Rhythm) -> None:
    """While every send is held no turn is given, so that nothing is late when they are not."""
    batch, _, _ = await made(author)
    async with author.database.connection() as connection:
        await incarnation.BEGIN.run(connection)
        await incarnation.HOLD.run(connection, "restored")
    assert await rhythm.tick() == []
    await rhythm.read("UPDATE incarnation SET held_since = NULL, held_why = NULL")
    assert await rhythm.given(batch) == (await rhythm.members(batch))[0].id
