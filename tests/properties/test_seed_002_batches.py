"""The properties of seed 002 that are about batches: 5, 10, 11 and 12, by their numbers.

Where the seed had a process that slept between two tasks, the turn and its time stand in rows.
"""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.decisions.publishing import DEFAULT
from imprint.problem import Problem
from imprint.work.batch import create, pause, stop
from tests.work.posts import LIMITS, OWNER, Author
from tests.work.rhythm import ENDS, Rhythm

shared = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HOWS = st.lists(st.sampled_from(ENDS[:-1]), max_size=3)
INTERVALS = st.integers(0, 1440).map(lambda minutes: timedelta(minutes=minutes))
SOON = timedelta(seconds=30)


@pytest.fixture
def rhythm(author: Author) -> Rhythm:
    """Give the rhythm of the author's batches."""
    return Rhythm(author.database)


async def planned(author: Author, posts: int, accounts: int, every: timedelta) -> UUID:
    """Plan new posts on new accounts in a batch."""
    on = [await author.account(uuid4().hex) for _ in range(accounts)]
    drafts = [await author.draft() for _ in range(posts)]
    return (await create(author.database, LIMITS, OWNER, drafts, every=every, accounts=on)).batch.id


async def next_turn(rhythm: Rhythm, batch: UUID) -> UUID | None:
    """Let the interval be over and the clock give the turn, and name who has it."""
    await rhythm.read("UPDATE batch_turn SET at = imprint_now() WHERE batch_id = $1", batch)
    await rhythm.tick()
    return await rhythm.front(batch)


async def tried(rhythm: Rhythm, batch: UUID, hows: list[str]) -> list[UUID]:
    """Let those in front be tried once, each with its end, and name them."""
    went = []
    for how in hows:
        front = await next_turn(rhythm, batch)
        assert front is not None
        await rhythm.tried(front, how)
        went.append(front)
    return went


@shared
@given(
    posts=st.integers(1, 3),
    accounts=st.integers(1, 2),
    every=INTERVALS,
    hows=HOWS,
    running=st.booleans(),
    paused=st.booleans(),
)
async def test_property_5_batch_cancellation(
    author: Author,
    rhythm: Rhythm,
    posts: int,
    accounts: int,
    every: timedelta,
    hows: list[str],
    *,
    running: bool,
    paused: bool,
) -> None:
    """Stopped, a batch has nothing left that waits; everything that had not left is cancelled, by hand, and freed."""
    batch = await planned(author, posts, accounts, every)
    await tried(rhythm, batch, hows[: posts * accounts])
    front = await next_turn(rhythm, batch)
    if running and front is not None:
        assert await rhythm.claim(front) is not None
    if paused and (await rhythm.shown(batch)).batch.state != "over":
        await pause(author.database, OWNER, batch)
    before = {each.id: each for each in await rhythm.members(batch)}
    open_before = {id_ for id_, each in before.items() if each.status in {"pending", "running"}}
    try:
        cancelled = {each.id for each in await stop(author.database, OWNER, batch)}
    except Problem as problem:
        assert (problem.code, open_before) == ("batch.over", set())  # noqa: PT017 - nothing may be left to stop
        return
    assert cancelled == open_before
    for each in await rhythm.members(batch):
        if each.id in cancelled:
            assert (each.status, each.turn, each.error_code) == ("cancelled", "over", "cancelled_by_hand")
            reason = (await author.reasons(each.id))[-1]
            assert reason == ("cancel", OWNER, "cancelled by hand: the batch was stopped")
        else:
            assert each.status == before[each.id].status
        assert await author.status(each.post_id) not in {"scheduled", "uploading", "publishing"}
    assert await next_turn(rhythm, batch) is None


@shared
@given(
    hows=st.lists(st.sampled_from(["not_yet", "rate_limited", "no_answer"]), min_size=1, max_size=3), every=INTERVALS
)
async def test_property_10_batch_task_retry_continuation(
    author: Author, rhythm: Rhythm, hows: list[str], every: timedelta
) -> None:
    """One that failed with attempts left waits for its own time; the next has its turn after the interval, no later."""
    batch = await planned(author, len(hows) + 1, 1, every)
    for how in hows:
        front = await next_turn(rhythm, batch)
        assert front is not None
        await rhythm.tried(front, how)
        failed = next(each for each in await rhythm.members(batch) if each.id == front)
        assert failed.status == ("unknown" if how == "no_answer" else "pending")
        assert failed.turn == "over"
        wait = await rhythm.read("SELECT at - imprint_now() FROM batch_turn WHERE batch_id = $1", batch)
        assert every - SOON < wait <= every
    last = (await rhythm.members(batch))[-1]
    assert await next_turn(rhythm, batch) == last.id
    await rhythm.tried(last.id, "published")
    assert (await rhythm.members(batch))[-1].status == "success"


@shared
@given(posts=st.integers(2, 4), ends=st.lists(st.sampled_from(ENDS), min_size=1, max_size=6), data=st.data())
async def test_property_11_batch_order_preservation(
    author: Author, rhythm: Rhythm, posts: int, ends: list[str], data: st.DataObject
) -> None:
    """Whatever is tried again, and when, keeps its place, and those behind are first tried in their order."""
    batch = await planned(author, posts, 1, timedelta(0))
    places = {each.id: each.place for each in await rhythm.members(batch)}
    first: list[UUID] = []
    for how in ends:
        await next_turn(rhythm, batch)
        may_go = [each.id for each in await rhythm.members(batch) if each.status == "pending" and each.turn != "behind"]
        if not may_go:
            break
        which = data.draw(st.sampled_from(may_go))
        await rhythm.read("UPDATE publication SET due_at = scheduled_at WHERE id = $1", which)
        await rhythm.tried(which, how)
        first += [which] if which not in first else []
    assert {each.id: each.place for each in await rhythm.members(batch)} == places
    assert [places[each] for each in first] == list(range(1, len(first) + 1))


@shared
@given(posts=st.integers(1, 3), every=INTERVALS, refused=st.sets(st.integers(0, 2)))
async def test_property_12_batch_completion_with_failures(
    author: Author, rhythm: Rhythm, posts: int, every: timedelta, refused: set[int]
) -> None:
    """One that has used up its attempts has failed, frees its post and does not keep the others from their turn."""
    batch = await planned(author, posts, 1, every)
    for number in range(posts):
        front = await next_turn(rhythm, batch)
        assert front is not None
        if number not in refused:
            await rhythm.tried(front, "published")
            continue
        await rhythm.read("UPDATE publication SET attempts = $2 WHERE id = $1", front, DEFAULT.attempts - 1)
        await rhythm.tried(front, "not_yet")
        given_up = (await rhythm.members(batch))[number]
        assert (given_up.status, given_up.turn, given_up.error_code) == ("failed", "over", "exhausted")
        assert await author.status(given_up.post_id) == "failed"
    assert await next_turn(rhythm, batch) is None
    shown = await rhythm.shown(batch)
    failed = len(refused & set(range(posts)))
    assert (shown.batch.state, shown.batch.failed, shown.batch.out) == ("over", failed, posts - failed)
