"""What people do with a batch: pause, resume, stop, delete, put into another order, and take something out of it."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from imprint.problem import Problem
from imprint.work import schedule as schedules
from imprint.work.batch import MOST, arrange, create, delete, find, listed, pause, resume, stop
from tests.work.posts import HOUR, LIMITS, MINUTE, OWNER, Author
from tests.work.rhythm import HALF, Rhythm, made

NOTHING = timedelta(0)


@pytest.fixture
def rhythm(author: Author) -> Rhythm:
    """Give the rhythm of the author's batches."""
    return Rhythm(author.database)


async def test_paused_and_resumed(author: Author, rhythm: Rhythm) -> None:
    """Nothing goes while it is paused, not even a retry; then each goes at the later of now and its time."""
    batch, _, _ = await made(author)
    first = await rhythm.given(batch)
    lease = await rhythm.claim(first)
    assert lease is not None
    assert (await pause(author.database, OWNER, batch)).batch.state == "paused"
    await rhythm.end(lease, "not_yet")  # what a worker had in its hands comes to its end
    passed_on = await rhythm.next_at(batch)
    await author.pass_time(2 * HALF)
    assert await rhythm.tick() == []
    assert await rhythm.hand_over() == []
    assert await rhythm.claim(first) is None
    shown = await resume(author.database, OWNER, batch)
    assert shown.batch.state == "runs"
    assert await rhythm.next_at(batch) == passed_on  # that was half an hour ago: now
    assert await rhythm.hand_over() == [first]
    assert await rhythm.read("SELECT imprint_now() - due_at FROM publication WHERE id = $1", first) < MINUTE
    assert await rhythm.given(batch) == shown.members[1].id
    await rhythm.tried(first, "published")
    await pause(author.database, OWNER, batch)
    await pause(author.database, OWNER, batch)
    assert await rhythm.hand_over() == []
    await author.pass_time(3 * HALF)
    shown = await resume(author.database, OWNER, batch)
    now = await rhythm.read("SELECT imprint_now()")
    assert [each.estimated for each in shown.members] == [False, False, True]
    assert abs(shown.members[2].goes_at - (now + HALF)) < MINUTE
    assert await rhythm.hand_over() == [shown.members[1].id]


async def test_resumed_before_its_time(author: Author, rhythm: Rhythm) -> None:
    """A short pause changes nothing: the next one goes when it would have gone."""
    batch, _, _ = await made(author)
    await rhythm.tried(await rhythm.given(batch), "published")
    planned = await rhythm.next_at(batch)
    await pause(author.database, OWNER, batch)
    await resume(author.database, OWNER, batch)
    assert await rhythm.next_at(batch) == planned
    assert await rhythm.tick() == []


async def test_stopped(author: Author, rhythm: Rhythm) -> None:
    """What has not left is cancelled at once, says why, and frees its post; what has left is seen through."""
    batch, posts, _ = await made(author, 4)
    first = await rhythm.given(batch)
    lease = await rhythm.claim(first)
    assert lease is not None
    await author.intend(lease)
    assert len(await stop(author.database, OWNER, batch)) == 3
    assert [state for state, _ in await rhythm.states(batch)] == ["running", *["cancelled"] * 3]
    assert [await author.status(post) for post in posts[1:]] == ["draft"] * 3
    other = (await rhythm.members(batch))[1]
    assert (await author.reasons(other.id))[-1] == ("cancel", OWNER, "cancelled by hand: the batch was stopped")
    assert other.error_code == "cancelled_by_hand"
    with pytest.raises(Problem, match="has left"):
        await stop(author.database, OWNER, batch)
    await rhythm.end(lease, "published")
    await author.pass_time(HALF + MINUTE)
    await rhythm.tick()
    assert await rhythm.next_at(batch) is None
    assert (await rhythm.shown(batch)).batch.state == "over"
    for act in (stop, pause):
        with pytest.raises(Problem, match="Nothing of this batch waits"):
            await act(author.database, OWNER, batch)


async def test_stop_takes_back_what_is_still_uploading(author: Author, rhythm: Rhythm) -> None:
    """Before the intent a running one is cancelled too, and its worker's word no longer counts."""
    batch, posts, _ = await made(author)
    lease = await rhythm.claim(await rhythm.given(batch))
    assert lease is not None
    await pause(author.database, OWNER, batch)
    await stop(author.database, OWNER, batch)
    assert {state for state, _ in await rhythm.states(batch)} == {"cancelled"}
    assert await author.intend(lease) is False
    assert await author.status(posts[0]) == "draft"


async def test_deleted(author: Author, rhythm: Rhythm) -> None:
    """Its posts are free and can be planned again; while something is on its way nothing happens at all."""
    batch, posts, on = await made(author)
    lease = await rhythm.claim(await rhythm.given(batch))
    assert lease is not None
    await author.intend(lease)
    with pytest.raises(Problem) as refused:
        await delete(author.database, OWNER, batch)
    assert refused.value.code == "batch.on_its_way"
    assert [state for state, _ in await rhythm.states(batch)] == ["running", "pending", "pending"]
    await rhythm.end(lease, "no_answer")
    with pytest.raises(Problem, match="resolve that first"):
        await delete(author.database, OWNER, batch)
    await rhythm.read(
        "UPDATE publication SET status = 'failed', error_code = 'e', look_at = NULL, left_at = NULL WHERE id = $1",
        lease.id,
    )
    assert len(await delete(author.database, OWNER, batch)) == 2
    async with author.database.connection() as connection:
        assert await listed(connection, OWNER) == []
        with pytest.raises(Problem, match="no such batch"):
            await find(connection, OWNER, str(batch))
    again = await create(author.database, LIMITS, OWNER, posts, every=NOTHING, accounts=on)
    assert [each.post_id for each in again.members] == posts


async def test_what_gets_a_time_of_its_own_leaves(author: Author, rhythm: Rhythm) -> None:
    """Rescheduled or published now it goes then, also while the batch is paused, and the others go on without it."""
    batch, posts, _ = await made(author, 4)
    await rhythm.given(batch)
    await pause(author.database, OWNER, batch)
    await schedules.publish_now(author.database, OWNER, posts[0])
    await schedules.reschedule(author.database, LIMITS, OWNER, posts[2], datetime.now(UTC) + 3 * HOUR)
    assert [each.place for each in await rhythm.members(batch)] == [2, 4]
    assert await rhythm.hand_over() == [await author.publication(posts[0])]
    assert await rhythm.tick() == []
    await resume(author.database, OWNER, batch)
    assert await rhythm.given(batch) == await author.publication(posts[1])


async def test_a_failed_one_can_join_another_batch(author: Author, rhythm: Rhythm) -> None:
    """The batch it leaves goes on in its rhythm."""
    batch, posts, on = await made(author, 2)
    await rhythm.tried(await rhythm.given(batch), "refused")
    other = await create(author.database, LIMITS, OWNER, [posts[0]], every=NOTHING, accounts=on)
    assert [each.status for each in other.members] == ["pending"]
    await author.pass_time(HALF + MINUTE)
    assert await rhythm.given(batch) == await author.publication(posts[1])


async def test_arranged(author: Author, rhythm: Rhythm) -> None:
    """Those behind change places, and with them the times at which they probably go; the others stay."""
    batch, posts, _ = await made(author, 4)
    await rhythm.given(batch)
    shown = await arrange(author.database, OWNER, batch, [4, 2, 3])
    assert [each.post_id for each in shown.members] == [posts[0], posts[3], posts[1], posts[2]]
    assert [each.place for each in shown.members] == [1, 2, 3, 4]
    times = [each.goes_at for each in shown.members if each.goes_at]
    assert times == sorted(times)
    assert len(times) == 4
    for wrong in ([1, 2, 3, 4], [2, 3], [2, 2, 3], []):
        with pytest.raises(Problem, match="2, 3, 4"):
            await arrange(author.database, OWNER, batch, wrong)


async def test_what_a_batch_refuses(author: Author) -> None:
    """A bad interval, no posts, one twice, one that is not ready, one that is planned already: and then nothing is."""
    on = [await author.account()]
    draft, review, planned = await author.draft(), await author.review(), await author.scheduled()
    for posts, every, code in (
        ([draft], timedelta(minutes=1441), "batch.bad_interval"),
        ([draft], -MINUTE, "batch.bad_interval"),
        ([], HALF, "batch.empty"),
        ([draft, draft], HALF, "batch.post_twice"),
        ([draft, review], HALF, "post.not_schedulable"),
        ([draft, planned], HALF, "post.not_schedulable"),
        ([draft, uuid4()], HALF, "post.missing"),
    ):
        with pytest.raises(Problem) as refused:
            await create(author.database, LIMITS, OWNER, posts, every=every, accounts=on)
        assert refused.value.code == code
    with pytest.raises(Problem, match="choose a default one"):
        await create(author.database, LIMITS, OWNER, [draft], every=HALF)
    with pytest.raises(Problem, match="no such batch"):
        await stop(author.database, "somebody else", (await made(author))[0])
    assert await author.status(draft) == "draft"
    with pytest.raises(asyncpg.CheckViolationError):
        await author.read(
            "INSERT INTO batch (owner, every, starts_at, zone) VALUES ('a', '1 day 1 min', imprint_now(), 'UTC')"
        )
    assert MOST >= 100
