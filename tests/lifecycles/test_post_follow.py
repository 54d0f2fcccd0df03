"""The post follows its publications: whatever happens to them, in whatever order and however many at once."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.lifecycles.post import POST
from imprint.lifecycles.publication import PUBLICATION
from imprint.store.query import Connection, Link

# What an UPDATE sets for each move of a publication; and the states and phases it is legal from.
PUBLISHING = "phase = 'publishing', intent_at = imprint_now()"
ENDED = "lease_until = NULL, phase = NULL"
MOVES = {
    "claim": "status = 'running', phase = 'uploading', lease_until = imprint_now() + interval '1 min'",
    "intend": PUBLISHING,
    "release": f"status = 'pending', intent_at = NULL, {ENDED}",
    "succeed": f"status = 'success', remote_id = 'r', {ENDED}",
    "lose": f"status = 'unknown', intent_at = coalesce(intent_at, imprint_now()), {ENDED}",
    "find": "status = 'success', remote_id = 'r'",
    "resend": "status = 'pending', intent_at = NULL",
    "cancel": f"status = 'cancelled', {ENDED}",
    "fail": f"status = 'failed', error_code = 'e', {ENDED}",
    "give_up": "status = 'failed', error_code = 'e'",
    "retry": "status = 'pending', intent_at = NULL",
}
OPEN = {"pending", "uploading", "publishing", "unknown"}


@dataclass
class Pub:
    """What is known of one publication: its status, or its phase while it runs."""

    id: UUID
    at: str = "pending"

    def moves(self) -> list[tuple[str, str]]:
        """List the legal moves from here and where they lead."""
        status = "running" if self.at in {"uploading", "publishing"} else self.at
        legal = [(a.name, str(a.target)) for a in PUBLICATION.open_to(status)]
        legal = [(name, "uploading" if name == "claim" else target) for name, target in legal]
        if self.at == "publishing":  # after the intent there is no cancelling
            legal = [(name, target) for name, target in legal if name != "cancel"]
        return [*legal, ("intend", "publishing")] if self.at == "uploading" else legal


def rule(pubs: list[Pub]) -> str:
    """Compute the status of a post from its publications, as spec.md says it in section 1."""
    at = {pub.at for pub in pubs}
    if "publishing" in at:
        return "publishing"
    if "uploading" in at:
        return "uploading"
    if "pending" in at:
        return "scheduled"
    if at & {"failed", "unknown"}:
        return "failed"
    return "published" if "success" in at else "draft"


async def new_post(connection: Link) -> UUID:
    """Make a post that can be scheduled."""
    post: UUID = await connection.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id")
    await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
    return post


async def new_publication(connection: Link, post: UUID) -> Pub:
    """Schedule a post on an account of its own."""
    return Pub(
        await connection.fetchval(
            "WITH a AS (INSERT INTO account (platform, name) VALUES ('sandbox', 'a') RETURNING id) "
            "INSERT INTO publication (post_id, account_id, due_at) SELECT $1, id, imprint_now() FROM a RETURNING id",
            post,
        )
    )


async def move(connection: Link, pub: Pub, name: str, target: str) -> None:
    """Take one step."""
    await connection.execute(f"UPDATE publication SET {MOVES[name]} WHERE id = $1", pub.id)
    pub.at = target


async def brought(connection: Link, post: UUID, *names: str) -> Pub:
    """Make a publication and lead it along moves."""
    pub = await new_publication(connection, post)
    for name in names:
        await move(connection, pub, name, dict(pub.moves())[name])
    return pub


async def status(connection: Link, post: UUID) -> str:
    """Read where the post stands."""
    return str(await connection.fetchval("SELECT status FROM post WHERE id = $1", post))


def test_every_legal_move_of_a_publication_is_tried() -> None:
    """The steps above are the declared moves and the intent, no fewer."""
    assert set(MOVES) == {arrow.name for arrow in PUBLICATION.arrows} | {"intend"}


def choices(post: str, pubs: list[Pub]) -> list[tuple[Pub | None, str, str]]:
    """List what can happen next: to a publication, or to the post itself by its author's hand."""
    legal: list[tuple[Pub | None, str, str]] = [(pub, *step) for pub in pubs for step in pub.moves()]
    if post == "review":  # not ready to go anywhere: what is done can at most be approved
        return [(None, "approve", "draft"), *(choice for choice in legal if choice[2] not in OPEN)]
    if post == "draft":
        legal.append((None, "reopen", "review"))
    if post == "failed" and not any(pub.at in OPEN for pub in pubs):
        legal.append((None, "rework", "draft"))
    if post != "published" and len(pubs) < 4:  # a post that is out as a whole stays so
        legal.append((None, "insert", "pending"))
    return legal


@given(data=st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_the_post_is_what_its_publications_make_of_it(connection: Connection, data: st.DataObject) -> None:
    """After any legal move of one to four publications the rule holds, and no move is refused because of the post.

    In between its author may take the post back, which is possible exactly when nothing of it is open.
    """
    transaction = connection.transaction()
    await transaction.start()
    try:
        post, pubs, expected = await new_post(connection), list[Pub](), "draft"
        for _ in range(data.draw(st.integers(1, 25), label="steps")):
            if not (possible := choices(expected, pubs)):
                break
            pub, name, target = data.draw(st.sampled_from(possible), label="move")
            if pub is not None:
                await move(connection, pub, name, target)
            elif name == "insert":
                pubs.append(await new_publication(connection, post))
            else:
                await connection.execute("UPDATE post SET status = $1 WHERE id = $2", target, post)
                expected = target
            if expected not in {"draft", "review"} or any(each.at in OPEN for each in pubs):
                expected = rule(pubs)
            assert await status(connection, post) == expected
        # The audit tells the same story without a gap.
        lines = await connection.fetch("SELECT source, target, move FROM audit WHERE row_id = $1 ORDER BY id", post)
        for before, after in pairwise(lines):
            assert before["target"] == after["source"]
            assert POST.move(after["source"], after["target"]) == after["move"]
        assert lines[-1]["target"] == expected
    finally:
        await transaction.rollback()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["unknown"], "failed"),
        (["unknown", "failed"], "failed"),
        (["pending"], "scheduled"),
        (["uploading", "failed"], "uploading"),
        (["publishing"], "publishing"),
        (["success"], "published"),
    ],
)
async def test_nobody_moves_a_post_past_its_publications(connection: Connection, names: list[str], said: str) -> None:
    """Raw SQL cannot take back, publish or fail a post of which its publications say otherwise.

    So what may be out is neither edited nor sent again, and when it is found its post can say so.
    """
    ways = {
        "unknown": ("claim", "intend", "lose"),
        "failed": ("fail",),
        "pending": (),
        "uploading": ("claim",),
        "publishing": ("claim", "intend"),
        "success": ("claim", "intend", "succeed"),
    }
    post = await new_post(connection)
    pubs = [await brought(connection, post, *ways[name]) for name in names]
    assert await status(connection, post) == said
    for target in POST.states:
        if target != said:
            with pytest.raises(asyncpg.CheckViolationError):
                await connection.execute("UPDATE post SET status = $1 WHERE id = $2", str(target), post)
    if names[0] == "unknown":
        await move(connection, pubs[0], "find", "success")
        assert await status(connection, post) == rule(pubs)


async def test_a_post_that_was_taken_back_is_scheduled_again_by_a_retry(connection: Connection) -> None:
    """From draft a failed publication can be tried again; from review not, since the post is not approved."""
    post = await new_post(connection)
    pub = await brought(connection, post, "fail")
    await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
    await connection.execute("UPDATE post SET status = 'review' WHERE id = $1", post)
    with pytest.raises(asyncpg.CheckViolationError, match="a post cannot go from review to scheduled"):
        await move(connection, pub, "retry", "pending")
    await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
    await move(connection, pub, "retry", "pending")
    assert await status(connection, post) == "scheduled"


async def test_a_post_that_is_out_takes_no_more_publications(connection: Connection) -> None:
    """Published is where a post ends, and nothing that is still in review goes out."""
    post = await new_post(connection)
    await brought(connection, post, "claim", "intend", "succeed")
    with pytest.raises(asyncpg.CheckViolationError, match="cannot go from published to scheduled"):
        await new_publication(connection, post)
    fresh = await connection.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id")
    with pytest.raises(asyncpg.CheckViolationError, match="cannot go from review to scheduled"):
        await new_publication(connection, fresh)


async def test_deleting_the_last_publication_frees_the_post(connection: Connection) -> None:
    """With none left a post is its author's again, unless something of it is out or about to be."""
    for ways, left in (((), "draft"), (("fail",), "draft")):
        post = await new_post(connection)
        pub = await brought(connection, post, *ways)
        await connection.execute("DELETE FROM publication WHERE id = $1", pub.id)
        assert await status(connection, post) == left
    for gone in (("claim",), ("claim", "intend"), ("claim", "intend", "lose"), ("claim", "intend", "succeed")):
        pub = await brought(connection, await new_post(connection), *gone)
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("DELETE FROM publication WHERE id = $1", pub.id)


async def test_deleting_one_of_several_leaves_what_the_others_say(connection: Connection) -> None:
    """And nothing happens to a post that its author has taken back meanwhile."""
    for taken_back, expected in ((False, "published"), (True, "draft")):
        post = await new_post(connection)
        failed = await brought(connection, post, "fail")
        await brought(connection, post, "claim", "intend", "succeed")
        assert await status(connection, post) == "failed"
        if taken_back:
            await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
        await connection.execute("DELETE FROM publication WHERE id = $1", failed.id)
        assert await status(connection, post) == expected


async def test_a_publication_does_not_change_sides(connection: Connection) -> None:
    """Nor does its phase say that it is being published before the intent is written."""
    post, other = await new_post(connection), await new_post(connection)
    pub = await brought(connection, post, "claim")
    for change in (f"post_id = '{other}'", "account_id = gen_random_uuid()", "phase = 'publishing'"):
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(f"UPDATE publication SET {change} WHERE id = $1", pub.id)


async def test_no_session_setting_stops_the_post_from_following(connection: Connection) -> None:
    """Replica mode turns ordinary triggers off, not these."""
    post = await new_post(connection)
    await connection.execute("SET session_replication_role = replica")
    await brought(connection, post, "claim")
    assert await status(connection, post) == "uploading"


async def blocked(watcher: Connection, waiting: Connection) -> None:
    """Return when the other session stands before a lock."""
    async with asyncio.timeout(10):
        while not await watcher.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", waiting.get_server_pid()):
            pass


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (("succeed", "succeed"), "published"),
        (("succeed", "fail"), "failed"),
        (("lose", "succeed"), "failed"),
        (("release", "succeed"), "scheduled"),
        (("fail", "release"), "scheduled"),
    ],
)
async def test_two_that_end_at_the_same_moment_are_both_seen(
    connection: Connection, database_url: str, ends: tuple[str, str], expected: str
) -> None:
    """The second transaction comes to the post while the first has not committed, and counts what that one did."""
    first, second = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    for _ in range(10):
        post = await new_post(connection)
        pubs = [await brought(connection, post, "claim", "intend") for _ in ends]
        async with first.transaction():
            await move(first, pubs[0], ends[0], dict(pubs[0].moves())[ends[0]])
            waiting = asyncio.create_task(move(second, pubs[1], ends[1], dict(pubs[1].moves())[ends[1]]))
            await blocked(connection, second)
        await waiting
        assert await status(connection, post) == expected == rule(pubs)
    await first.close()
    await second.close()


async def test_many_are_scheduled_and_end_at_once_without_a_deadlock(database_url: str) -> None:
    """Eight sessions insert, run and end publications of one post at once: all get through, and the post is out."""
    async with asyncpg.create_pool(database_url, min_size=8, max_size=8) as pool:
        seen: Counter[str] = Counter()
        for _ in range(15):
            async with pool.acquire() as connection:
                post = await new_post(connection)
            ready = asyncio.Barrier(8)

            async def live(post: UUID = post, ready: asyncio.Barrier = ready) -> None:
                async with pool.acquire() as connection:
                    await ready.wait()
                    try:
                        pub = await new_publication(connection, post)
                    except asyncpg.PostgresError:
                        await ready.abort()
                        raise
                    await ready.wait()  # or the first would be out, and the post closed, before the last is there
                    for name in ("claim", "intend", "succeed"):
                        await move(connection, pub, name, dict(pub.moves())[name])

            outcomes = await asyncio.gather(*(live() for _ in range(8)), return_exceptions=True)
            assert [each for each in outcomes if each is not None] == []
            async with pool.acquire() as connection:
                seen[await status(connection, post)] += 1
        assert seen == {"published": 15}


async def test_the_next_in_line_is_claimed_while_the_one_before_ends(connection: Connection, database_url: str) -> None:
    """The claim of an account's next publication waits for the one that ends, and that one not for the claim."""
    first, second = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    ending = await brought(connection, await new_post(connection), "claim", "intend")
    following = await connection.fetchval(
        "INSERT INTO publication (post_id, account_id, due_at, held_until) SELECT $1, account_id, imprint_now(), "
        "imprint_now() FROM publication WHERE id = $2 RETURNING id",
        await new_post(connection),
        ending.id,
    )
    async with first.transaction():
        await first.execute("UPDATE publication SET crashes = 0 WHERE id = $1", ending.id)
        # It has the row of the next one and stands at the account's unique index, where `ending` still runs.
        claim = asyncio.create_task(move(second, Pub(following), "claim", "uploading"))
        await blocked(connection, second)
        await move(first, ending, "succeed", "success")
    await claim
    assert await connection.fetchval("SELECT status FROM publication WHERE id = $1", following) == "running"
    await first.close()
    await second.close()
