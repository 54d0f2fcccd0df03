"""The properties of seed 002 that are about posts and their schedules: 4, 6, 7, 13 and 14, by their numbers.

Where the seed had a lock on the article that could leak, a post's status follows from its publications.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.decisions.schedule import Bounds
from imprint.problem import Problem
from imprint.work.post import edit, listed
from imprint.work.schedule import Target, cancel, delete, publish_now, reschedule, retry, schedule, unschedule
from tests.work.posts import AT_ONCE, HOUR, OWNER, Author

shared = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ENDS = ("pending", "uploading", "publishing", "success", "failed", "unknown", "cancelled")
MIXES = st.lists(st.sampled_from(ENDS), min_size=1, max_size=4)
OPEN = {"pending", "running", "unknown"}


async def mixed(author: Author, states: list[str]) -> UUID:
    """Write a post with one publication in each of these states, each on an account of its own."""
    post = await author.draft()
    accounts = [await author.account(uuid4().hex) for _ in states]
    at = datetime.now(UTC)
    targets = [
        Target(account, at + HOUR if state == "pending" else at - HOUR)
        for account, state in zip(accounts, states, strict=True)
    ]
    await schedule(author.database, AT_ONCE, OWNER, post, None, targets=targets)
    rows = {each.account_id: each.id for each in (await author.show(post)).publications}
    for account, state in zip(accounts, states, strict=True):
        await bring(author, post, account, rows[account], state)
    return post


async def bring(author: Author, post: UUID, account: UUID, publication: UUID, state: str) -> None:
    """Bring a publication that is due into a state."""
    if state == "pending":
        return
    if state == "cancelled":
        await cancel(author.database, OWNER, post, accounts=[account])
        return
    lease = await author.claim(publication)
    assert lease is not None
    if state == "failed":
        await author.fail(lease)
    elif state != "uploading":
        await author.intend(lease)
        ends: dict[str, Callable[[Any], Awaitable[bool]]] = {"success": author.succeed, "unknown": author.lose}
        if state in ends:
            await ends[state](lease)


@shared
@given(accounts=st.integers(1, 4), ahead=st.integers(1, 300), jitter=st.integers(0, 300))
async def test_property_4_cancellation_status_update(author: Author, accounts: int, ahead: int, jitter: int) -> None:
    """Everything that waits becomes cancelled at once, says that it was by hand, and when."""
    post = await author.draft()
    targets = [Target(await author.account(uuid4().hex)) for _ in range(accounts)]
    at = datetime.now(UTC) + timedelta(hours=ahead)
    limits = Bounds(jitter=timedelta(seconds=jitter), lead=timedelta(0))
    await schedule(author.database, limits, OWNER, post, at, targets=targets)
    before = await author.read("SELECT imprint_now()")
    await cancel(author.database, OWNER, post)
    for publication in (await author.show(post)).publications:
        assert (publication.status, publication.error_code) == ("cancelled", "cancelled_by_hand")
        assert publication.status_at >= before
        assert (await author.reasons(publication.id))[-1] == ("cancel", OWNER, "cancelled by hand")


@shared
@given(states=MIXES, act=st.sampled_from(["cancel", "delete", "unschedule", "fail"]))
async def test_property_6_the_post_is_freed_with_its_publications(author: Author, states: list[str], act: str) -> None:
    """After a cancellation, a deletion or a last failure the post is taken exactly if something of it is still open."""
    post = await mixed(author, states)
    acts: dict[str, Callable[[], Awaitable[object]]] = {
        "cancel": lambda: cancel(author.database, OWNER, post),
        "delete": lambda: delete(author.database, OWNER, post),
        "unschedule": lambda: unschedule(author.database, OWNER, post),
        "fail": lambda: author.read(
            "UPDATE publication SET status = 'failed', error_code = 'e', phase = NULL, lease_until = NULL "
            "WHERE post_id = $1 AND status IN ('pending', 'running')",
            post,
        ),
    }
    try:
        await acts[act]()
    except Problem as problem:
        assert problem.code.startswith("post.")  # noqa: PT017 - whether it is refused depends on the states
    left = set(await author.read("SELECT array_agg(status) FROM publication WHERE post_id = $1", post))
    status = await author.read("SELECT status FROM post WHERE id = $1", post)
    assert (status in {"scheduled", "uploading", "publishing"}) == bool(left & {"pending", "running"})
    assert await author.read("SELECT post_projection($1)", post) in {status, None}
    if await author.read("SELECT deleted_at FROM post WHERE id = $1", post):
        assert not left & OPEN


@shared
@given(states=MIXES)
async def test_property_7_a_free_post_can_be_chosen(author: Author, states: list[str]) -> None:
    """What nothing holds is in the list, and as a draft or failed it can be scheduled on a new account."""
    post = await mixed(author, states)
    status = await author.status(post)
    async with author.database.connection() as connection:
        assert post in {each.id for each in await listed(connection, OWNER, status=status, limit=10_000)}
    target = [Target(await author.account(uuid4().hex))]
    at = datetime.now(UTC) + HOUR
    try:
        await schedule(author.database, AT_ONCE, OWNER, post, at, targets=target)
        chosen = True
    except Problem as problem:
        assert problem.code == "post.not_schedulable"  # noqa: PT017 - whether it is refused depends on the states
        chosen = False
    assert chosen == (status in {"draft", "failed"})


REFUSE = """
    CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'refused for the test'; END $$"""
REFUSING = "CREATE TRIGGER zz_refuse AFTER UPDATE ON post FOR EACH ROW EXECUTE FUNCTION refuse()"


@shared
@given(states=st.lists(st.sampled_from(["pending", "uploading", "failed"]), min_size=1, max_size=3), data=st.data())
async def test_property_13_both_or_neither(author: Author, states: list[str], data: st.DataObject) -> None:
    """When the post cannot follow, nothing happens to its publications, whoever asked for what."""
    post = await mixed(author, states)
    at = datetime.now(UTC) + 5 * HOUR
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: cancel(author.database, OWNER, post),
        lambda: delete(author.database, OWNER, post),
        lambda: unschedule(author.database, OWNER, post),
        lambda: retry(author.database, OWNER, post),
        lambda: publish_now(author.database, OWNER, post),
        lambda: reschedule(author.database, AT_ONCE, OWNER, post, at),
    ]
    act = data.draw(st.sampled_from(range(len(acts))))
    rows = "SELECT array_agg(p::text ORDER BY p.id) FROM publication p WHERE post_id = $1"
    before = await author.read(rows, post), await author.read("SELECT p::text FROM post p WHERE id = $1", post)
    await author.read(REFUSE)
    await author.read(REFUSING)
    try:
        await acts[act]()
        changed_post = False
    except asyncpg.RaiseError:
        changed_post = True
    except Problem:
        return
    finally:
        await author.read("DROP TRIGGER zz_refuse ON post")
    after = await author.read(rows, post), await author.read("SELECT p::text FROM post p WHERE id = $1", post)
    assert after[1] == before[1]
    if changed_post:
        assert after[0] == before[0]


@shared
@given(
    state=st.sampled_from(["pending", "failed"]),
    first=st.integers(0, 5),
    second=st.integers(0, 5),
)
async def test_property_14_two_at_once_are_one_after_the_other(
    author: Author, state: str, first: int, second: int
) -> None:
    """What is there in the end is what one order of the two would have left, and every move is in the audit."""
    at = datetime.now(UTC) + 5 * HOUR
    post = await mixed(author, [state])
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: cancel(author.database, OWNER, post),
        lambda: delete(author.database, OWNER, post),
        lambda: unschedule(author.database, OWNER, post),
        lambda: retry(author.database, OWNER, post),
        lambda: publish_now(author.database, OWNER, post),
        lambda: reschedule(author.database, AT_ONCE, OWNER, post, at),
    ]

    async def attempt(which: int) -> bool:
        try:
            await acts[which]()
        except Problem:
            return False
        return True

    publication = await author.publication(post)
    await asyncio.gather(attempt(first), attempt(second), _edited(author, post))
    row = await author.read("SELECT status FROM publication WHERE id = $1", publication)
    async with author.database.connection() as connection:
        lines = await connection.fetch("SELECT source, target FROM audit WHERE row_id = $1 ORDER BY id", publication)
    assert lines[-1]["target"] == row
    assert all(before["target"] == after["source"] for before, after in pairwise(lines))
    assert await author.read("SELECT count(*) FROM publication WHERE post_id = $1 AND status <> 'cancelled'", post) <= 1


async def _edited(author: Author, post: UUID) -> None:
    try:
        await edit(author.database, OWNER, post, {"title": str(uuid4())})
    except Problem as problem:
        assert problem.code == "post.missing"  # noqa: PT017 - it may just have been deleted
