"""Schedules: on which accounts and when, what can still be changed, and that a worker and a person never both win."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from imprint.decisions.schedule import BadTime, Bounds, Every, Rule
from imprint.problem import Problem
from imprint.settings import load
from imprint.work import bulk
from imprint.work.attach import attach
from imprint.work.post import create, edit, ready, reopen
from imprint.work.schedule import (
    Changed,
    Target,
    bounds,
    cancel,
    delete,
    in_turn,
    publish_now,
    reschedule,
    retry,
    schedule,
    unschedule,
)
from tests.work.posts import AT_ONCE, HOUR, LIMITS, OWNER, Author
from tests.work.test_post import refused

RACES = 100


def ahead(time: timedelta = 2 * HOUR) -> datetime:
    """Give a moment that is ahead."""
    return datetime.now(UTC) + time


async def planned(author: Author, post: UUID, at: datetime | None = None, **more: Any) -> list[Changed]:
    """Schedule with the limits people have."""
    return await schedule(author.database, LIMITS, OWNER, post, at or ahead(), **more)


# Schedule


async def test_a_draft_is_scheduled_on_the_default_account(author: Author) -> None:
    """What was asked for, the zone, the jitter and the moment that comes of them are all stored."""
    account, post, at = await author.account(default=True), await author.draft(), ahead()
    (changed,) = await planned(author, post, at, zone="Europe/Berlin", roll=lambda: 0.5)
    (publication,) = (await author.show(post)).publications
    assert await author.status(post) == "scheduled"
    assert (publication.account_id, publication.status) == (account, "pending")
    assert (publication.scheduled_at, publication.zone, publication.jitter_seconds) == (at, "Europe/Berlin", 150)
    assert publication.due_at == changed.due_at == at + timedelta(seconds=150)
    assert publication.as_data()["actualPublishAt"] == publication.due_at
    assert await author.reasons(publication.id) == [("create", OWNER, "scheduled")]


async def test_accounts_have_times_of_their_own(author: Author) -> None:
    """Or the common one; each draws its own jitter."""
    one, two = await author.account("one"), await author.account("two")
    post, at, later = await author.draft(), ahead(), ahead(5 * HOUR)
    rolls = iter([0.0, 0.999])
    await planned(author, post, at, targets=[Target(one), Target(two, later)], roll=lambda: next(rolls))
    times = {
        each.account_id: (each.scheduled_at, each.jitter_seconds) for each in (await author.show(post)).publications
    }
    assert times == {one: (at, 0), two: (later, 300)}


async def test_jitter_is_between_nothing_and_five_minutes_and_stored(author: Author) -> None:
    """Drawn for each, not for all."""
    accounts = [await author.account(str(n)) for n in range(12)]
    post = await author.draft()
    await planned(author, post, targets=[Target(account) for account in accounts])
    drawn = [each.jitter_seconds for each in (await author.show(post)).publications]
    assert all(0 <= seconds <= 300 for seconds in drawn)
    assert len(set(drawn)) > 1


@pytest.mark.parametrize(
    ("time", "code"),
    [
        (timedelta(minutes=59), "schedule.too_soon"),
        (-timedelta(days=1), "schedule.too_soon"),
        (timedelta(days=366), "schedule.too_far"),
    ],
)
async def test_lead_and_horizon(author: Author, time: timedelta, code: str) -> None:
    """Nothing is planned, and the post stays a draft."""
    await author.account(default=True)
    post = await author.draft()
    await refused(code, planned(author, post, ahead(time)))
    assert (await author.status(post), await author.states(post)) == ("draft", [])
    with pytest.raises(BadTime, match="Say when"):
        await schedule(author.database, LIMITS, OWNER, post, None)


def test_the_limits_come_from_the_settings() -> None:
    """One hour, a year, five minutes unless something else is set."""
    assert bounds(load({})) == LIMITS
    assert bounds(load({"IMPRINT_SCHEDULE_LEAD_MINUTES": "5"})).lead == timedelta(minutes=5)


async def test_only_drafts_and_failed_posts_are_scheduled(author: Author) -> None:
    """Everything else is refused with what it is."""
    await author.account(default=True)
    review = await author.review()
    assert "in review" in (await refused("post.not_schedulable", planned(author, review))).sentence
    for state in ("pending", "uploading", "publishing", "success"):
        await refused("post.not_schedulable", planned(author, await author.brought(state)))
    failed = await author.brought("failed")
    await planned(author, failed)
    assert await author.status(failed) == "scheduled"


async def test_accounts_that_cannot_be_scheduled_on(author: Author) -> None:
    """None, unknown, somebody else's, disabled, named twice; one that wants to be reconnected can be."""
    post = await author.draft()
    await refused("account.no_default", planned(author, post))
    await refused("account.missing", planned(author, post, targets=[Target(uuid4())]))
    others = await Author(author.database, "eve").account()
    await refused("account.missing", planned(author, post, targets=[Target(others)]))
    account = await author.account()
    await refused("post.account_twice", planned(author, post, targets=[Target(account), Target(account)]))
    await author.read("UPDATE account SET status = 'disabled' WHERE id = $1", account)
    assert "gallery" in (await refused("account.disabled", planned(author, post, targets=[Target(account)]))).sentence
    away = await author.account("away")
    await author.read("UPDATE account SET status = 'reconnect' WHERE id = $1", away)
    await planned(author, post, targets=[Target(away)])


async def test_what_failed_is_planned_anew_and_nothing_twice(author: Author) -> None:
    """The same row, so that it cannot go out twice; another account gets a row of its own."""
    account, other = await author.account("one"), await author.account("two")
    post = await author.scheduled(account, ahead=timedelta(0))
    publication = await author.publication(post)
    lease = await author.claim(publication)
    assert lease
    assert await author.fail(lease)
    await planned(author, post, targets=[Target(account), Target(other)])
    shown = (await author.show(post)).publications
    assert {each.account_id: each.id for each in shown}[account] == publication
    assert [each.status for each in shown] == ["pending", "pending"]


async def test_what_is_out_or_unknown_on_an_account_is_not_planned_there_again(author: Author) -> None:
    """Elsewhere it can be; and the database has the last word."""
    one, two, three = await author.account("one"), await author.account("two"), await author.account("three")
    post = await author.draft()
    await schedule(author.database, AT_ONCE, OWNER, post, ahead(-HOUR), targets=[Target(one), Target(two)])
    for publication, end in zip((await author.show(post)).publications, (author.succeed, author.fail), strict=True):
        lease = await author.claim(publication.id)
        assert lease
        assert await author.intend(lease)
        assert await end(lease)
    assert await author.status(post) == "failed"
    told = await refused("post.already_out", planned(author, post, targets=[Target(one)]))
    assert "duplicate it" in told.sentence
    unknown = await author.brought("unknown")
    where = (await author.show(unknown)).publications[0].account_id
    await refused("post.unknown", planned(author, unknown, targets=[Target(where)]))
    await planned(author, unknown, targets=[Target(three)])
    with pytest.raises(asyncpg.UniqueViolationError, match="publication_once"):
        await author.read(
            "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now())", post, one
        )


async def test_multiple_is_one_publication_for_each_file(author: Author) -> None:
    """What is out of several is not planned again when the others are."""
    account = await author.account(default=True)
    post = await author.draft(3, uploadMode="multiple")
    await schedule(author.database, AT_ONCE, OWNER, post, ahead(-HOUR))
    shown = await author.show(post)
    assert [each.file_id for each in shown.publications] == [file.id for file in shown.files]
    lease = await author.claim(shown.publications[0].id)
    assert lease
    assert await author.intend(lease)
    assert await author.succeed(lease)
    await unschedule(author.database, OWNER, post)
    assert await author.states(post) == ["success", "cancelled", "cancelled"]
    assert await author.status(post) == "published"
    failed = await author.draft(2, uploadMode="multiple")
    await schedule(author.database, AT_ONCE, OWNER, failed, ahead(-HOUR))
    first, second = (await author.show(failed)).publications
    for publication, end in ((first, author.succeed), (second, author.fail)):
        lease = await author.claim(publication.id)
        assert lease
        assert await author.intend(lease)
        assert await end(lease)
    again = await planned(author, failed, targets=[Target(account)])
    assert [each.id for each in again] == [second.id]


async def test_a_post_that_is_no_longer_ready_is_not_scheduled(author: Author) -> None:
    """Its file may have been deleted in the meantime."""
    await author.account(default=True)
    post = await author.draft()
    await author.read("UPDATE content SET deleted_at = imprint_now()")
    await refused("post.unconfirmed_file", planned(author, post))
    await refused("post.unconfirmed_file", publish_now(author.database, OWNER, post))


async def test_a_rule_gives_each_post_its_turn(author: Author) -> None:
    """Tuesdays at six in the evening, across the end of summer time."""
    posts = [await author.draft() for _ in range(3)]
    begin = datetime(2026, 10, 20, 12, tzinfo=UTC)
    turns = in_turn(Rule(Every.WEEK, begin.date(), time(18)), "Europe/Berlin", begin, posts)
    assert [turns[post].isoformat() for post in posts] == [
        "2026-10-20T16:00:00+00:00",
        "2026-10-27T17:00:00+00:00",
        "2026-11-03T17:00:00+00:00",
    ]


# Now


async def test_publish_now_is_due_now(author: Author) -> None:
    """A worker can take it at once; chance does not delay it."""
    await author.account(default=True)
    post = await author.draft()
    await publish_now(author.database, OWNER, post)
    (publication,) = (await author.show(post)).publications
    assert publication.jitter_seconds == 0
    assert await author.claim(publication.id)


async def test_publish_now_brings_forward_what_waits(author: Author) -> None:
    """The same row: it does not go out once more at its old time."""
    post = await author.scheduled()
    publication = await author.publication(post)
    assert await author.claim(publication) is None
    (moved,) = await publish_now(author.database, OWNER, post)
    assert moved.id == publication
    lease = await author.claim(publication)
    assert lease
    await refused("post.not_schedulable", publish_now(author.database, OWNER, post))


# Unschedule, reschedule, cancel, retry, delete


async def test_unschedule_gives_the_post_back(author: Author) -> None:
    """The publication says that it was by hand, and so does the audit; it can be scheduled again."""
    post = await author.scheduled()
    account = (await author.show(post)).publications[0].account_id
    publication = await author.publication(post)
    await unschedule(author.database, OWNER, post)
    assert (await author.status(post), await author.states(post)) == ("draft", ["cancelled"])
    assert (await author.show(post)).publications[0].error_code == "cancelled_by_hand"
    assert (await author.reasons(publication))[-1] == ("cancel", OWNER, "cancelled by hand: unscheduled")
    await refused("post.not_scheduled", unschedule(author.database, OWNER, post))
    await planned(author, post, targets=[Target(account)])
    assert await author.states(post) == ["cancelled", "pending"]


async def test_one_account_of_several(author: Author) -> None:
    """The others wait on."""
    one, two = await author.account("one"), await author.account("two")
    post = await author.draft()
    await planned(author, post, targets=[Target(one), Target(two)])
    await unschedule(author.database, OWNER, post, accounts=[one])
    assert sorted(await author.states(post)) == ["cancelled", "pending"]
    assert await author.status(post) == "scheduled"
    later = ahead(9 * HOUR)
    (moved,) = await reschedule(author.database, LIMITS, OWNER, post, later, accounts=[two])
    assert moved.account_id == two
    await refused("post.not_scheduled", reschedule(author.database, LIMITS, OWNER, post, later, accounts=[one]))


async def test_reschedule_keeps_the_jitter_and_obeys_the_limits(author: Author) -> None:
    """Earlier or later; what the clock has set aside is asked again."""
    await author.account(default=True)
    post = await author.draft()
    await planned(author, post, ahead(9 * HOUR), roll=lambda: 0.9)
    before = (await author.show(post)).publications[0]
    await author.read("UPDATE publication SET held_until = imprint_now() + interval '1 day'")
    at = ahead(3 * HOUR)
    await reschedule(author.database, LIMITS, OWNER, post, at, zone="Australia/Lord_Howe")
    after = (await author.show(post)).publications[0]
    assert (after.id, after.scheduled_at, after.zone) == (before.id, at, "Australia/Lord_Howe")
    assert after.jitter_seconds == before.jitter_seconds > 0
    assert after.due_at == at + timedelta(seconds=after.jitter_seconds)
    assert await author.read("SELECT held_until FROM publication") is None
    await refused("schedule.too_soon", reschedule(author.database, LIMITS, OWNER, post, ahead(timedelta(0))))
    await refused("schedule.too_far", reschedule(author.database, LIMITS, OWNER, post, ahead(timedelta(days=400))))


async def test_the_database_lets_nothing_be_due_before_its_time(author: Author) -> None:
    """By raw SQL either."""
    post = await author.scheduled()
    with pytest.raises(asyncpg.CheckViolationError, match="publication_never_early"):
        await author.read("UPDATE publication SET due_at = scheduled_at - interval '1 s' WHERE post_id = $1", post)
    with pytest.raises(asyncpg.CheckViolationError, match="publication_never_early"):
        await author.read("UPDATE publication SET jitter_seconds = 100 WHERE post_id = $1", post)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("uploading", "post.on_its_way"),
        ("publishing", "post.on_its_way"),
        ("unknown", "post.unknown"),
        ("success", "post.not_scheduled"),
        ("failed", "post.not_scheduled"),
    ],
)
async def test_what_no_longer_waits_is_neither_moved_nor_unscheduled(author: Author, state: str, code: str) -> None:
    """The sentence says what it does instead."""
    post = await author.brought(state)
    await refused(code, unschedule(author.database, OWNER, post))
    await refused(code, reschedule(author.database, LIMITS, OWNER, post, ahead()))


async def test_cancel_stops_what_has_not_left(author: Author) -> None:
    """Also what a worker has in its hands: its fence is old from then on, and it can neither intend nor renew."""
    post = await author.scheduled(ahead=timedelta(0))
    lease = await author.claim(await author.publication(post))
    assert lease
    assert await author.status(post) == "uploading"
    await cancel(author.database, OWNER, post)
    assert (await author.status(post), await author.states(post)) == ("draft", ["cancelled"])
    assert not await author.intend(lease)
    assert await author.read("SELECT fence FROM publication") == lease.fence + 1


async def test_cancel_lets_go_of_what_failed(author: Author) -> None:
    """The post is what the others make of it; its history stays in the audit."""
    one, two = await author.account("one"), await author.account("two")
    post = await author.draft()
    await schedule(author.database, AT_ONCE, OWNER, post, ahead(-HOUR), targets=[Target(one), Target(two)])
    for publication, end in zip((await author.show(post)).publications, (author.succeed, author.fail), strict=True):
        lease = await author.claim(publication.id)
        assert lease
        assert await author.intend(lease)
        assert await end(lease)
    assert await author.status(post) == "failed"
    await cancel(author.database, OWNER, post)
    assert (await author.status(post), await author.states(post)) == ("published", ["success"])
    await refused("post.nothing_to_cancel", cancel(author.database, OWNER, post))


@pytest.mark.parametrize(("state", "code"), [("publishing", "post.on_its_way"), ("unknown", "post.unknown")])
async def test_what_may_have_left_is_neither_cancelled_nor_deleted(author: Author, state: str, code: str) -> None:
    """And raw SQL is refused as well."""
    post = await author.brought(state)
    await refused(code, cancel(author.database, OWNER, post))
    await refused(code, delete(author.database, OWNER, post))
    with pytest.raises(asyncpg.CheckViolationError):
        await author.read("UPDATE publication SET status = 'cancelled', phase = NULL, lease_until = NULL")
    with pytest.raises(asyncpg.CheckViolationError, match="cannot be deleted"):
        await author.read("UPDATE post SET deleted_at = imprint_now() WHERE id = $1", post)


async def test_a_delete_that_is_refused_cancels_nothing(author: Author) -> None:
    """Of two publications one may be out: the other one goes on waiting."""
    one, two = await author.account("one"), await author.account("two")
    post = await author.draft()
    targets = [Target(one, ahead(-HOUR)), Target(two, ahead())]
    await schedule(author.database, AT_ONCE, OWNER, post, None, targets=targets)
    first = next(each for each in (await author.show(post)).publications if each.account_id == one)
    lease = await author.claim(first.id)
    assert lease
    assert await author.intend(lease)
    await refused("post.on_its_way", delete(author.database, OWNER, post))
    assert sorted(await author.states(post)) == ["pending", "running"]


async def test_retry_tries_what_failed_once_more(author: Author) -> None:
    """Crashes are forgotten; what has failed before its time waits for it."""
    post = await author.brought("failed")
    publication = await author.publication(post)
    await author.read("UPDATE publication SET crashes = 3")
    await retry(author.database, OWNER, post)
    assert await author.status(post) == "scheduled"
    lease = await author.claim(publication)
    assert lease
    assert lease.crashes == 0
    early = await author.scheduled()
    await author.read("UPDATE publication SET status = 'failed', error_code = 'e' WHERE post_id = $1", early)
    (changed,) = await retry(author.database, OWNER, early)
    assert changed.due_at > ahead(HOUR)
    assert await author.claim(changed.id) is None
    await refused("post.nothing_failed", retry(author.database, OWNER, early))


async def test_a_post_in_review_is_not_retried(author: Author) -> None:
    """It was taken back: it must be declared ready first."""
    post = await author.brought("failed")
    await reopen(author.database, OWNER, post)
    await reopen(author.database, OWNER, post)
    await refused("post.not_ready", retry(author.database, OWNER, post))
    await ready(author.database, OWNER, post)
    await retry(author.database, OWNER, post)


@pytest.mark.parametrize("state", ["pending", "uploading", "success", "failed"])
async def test_delete_is_soft_and_frees_what_waits(author: Author, state: str) -> None:
    """The row is still there, nothing of it is on its way, and it can be scheduled by nobody."""
    post = await author.brought(state)
    account = (await author.show(post)).publications[0].account_id
    await delete(author.database, OWNER, post)
    assert await author.read("SELECT deleted_at IS NOT NULL FROM post WHERE id = $1", post)
    open_ = "SELECT count(*) FROM publication WHERE post_id = $1 AND status IN ('pending', 'running', 'unknown')"
    assert await author.read(open_, post) == 0
    await refused("post.missing", delete(author.database, OWNER, post))
    await refused("post.missing", planned(author, post, targets=[Target(account)]))
    if state in {"pending", "uploading"}:
        with pytest.raises(asyncpg.CheckViolationError, match="deleted post"):
            await author.read(
                "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now())", post, account
            )


async def test_a_post_without_publications_can_be_deleted(author: Author) -> None:
    """In review or as a draft."""
    for post in (await author.review(), await author.draft()):
        assert await delete(author.database, OWNER, post) == []


# Bulk


async def test_bulk_reports_each_row(author: Author) -> None:
    """A problem with one does not stop the others; a row that is named twice is done once."""
    await author.account(default=True)
    drafts = [await author.draft() for _ in range(2)]
    rows = [drafts[0], await author.review(), uuid4(), await author.brought("success"), drafts[1], drafts[0]]
    outcomes = await bulk.each(rows, lambda post: planned(author, post))
    assert [outcome.problem.code if outcome.problem else "ok" for outcome in outcomes] == [
        "ok",
        "post.not_schedulable",
        "post.missing",
        "post.not_schedulable",
        "ok",
    ]
    assert [outcome.id for outcome in outcomes] == rows[:5]
    assert outcomes[1].as_data()["ok"] is False
    assert outcomes[0].as_data([])["ok"] is True
    ended = await bulk.each(rows, lambda post: delete(author.database, OWNER, post))
    assert [outcome.problem is None for outcome in ended] == [True, True, False, True, True]


# Races: a person against a worker


async def race(author: Author, act: Callable[[UUID], Awaitable[object]], after: float) -> tuple[str, bool, UUID]:
    """Let a person act while a worker claims, intends and records; give what the person was told, and if it left."""
    post = await author.scheduled(ahead=timedelta(0))
    publication = await author.publication(post)

    async def work() -> bool:
        lease = await author.claim(publication)
        if lease is None:
            return False
        await asyncio.sleep(random.choice((0, 0, 0.001)))  # noqa: S311 - no secret
        if not await author.intend(lease):
            return False
        return await author.succeed(lease)

    async def person() -> str:
        await asyncio.sleep(after)
        try:
            await act(post)
        except Problem as problem:
            return problem.code
        return "done"

    said, left = await asyncio.gather(person(), work())
    return said, left, post


def moments() -> list[float]:
    """Give the moments at which the person acts: before, while and after the worker does."""
    return [random.uniform(0, 0.012) for _ in range(RACES)]  # noqa: S311 - no secret


async def test_cancel_against_a_worker(author: Author) -> None:
    """Never both cancelled and out, never neither."""
    for after in moments():
        said, left, post = await race(author, lambda post: cancel(author.database, OWNER, post), after)
        states = await author.states(post)
        assert (said == "done") != left
        assert states == (["cancelled"] if said == "done" else ["success"])
        assert await author.status(post) == ("draft" if said == "done" else "published")


async def test_delete_against_a_worker(author: Author) -> None:
    """What was deleted before it left does not go out; what had left is deleted only once it is known to be out."""
    for after in moments():
        said, left, post = await race(author, lambda post: delete(author.database, OWNER, post), after)
        state = await author.read("SELECT status FROM publication WHERE post_id = $1", post)
        deleted = await author.read("SELECT deleted_at IS NOT NULL FROM post WHERE id = $1", post)
        assert deleted == (said == "done")
        assert state == ("success" if left else "cancelled")
        assert said == "done" or (left and said == "post.on_its_way")


async def test_reschedule_against_a_worker(author: Author) -> None:
    """Moved before it was taken: it waits for its new time. Taken before it was moved: it goes out once, unmoved."""
    at = ahead(5 * HOUR)
    for after in moments():
        said, left, post = await race(author, lambda post: reschedule(author.database, LIMITS, OWNER, post, at), after)
        (publication,) = (await author.show(post)).publications
        assert (said == "done") != left
        if left:
            assert publication.scheduled_at != at
            assert said in {"post.on_its_way", "post.not_scheduled"}
        else:
            assert (publication.status, publication.scheduled_at) == ("pending", at)
            assert await author.claim(publication.id) is None


async def test_edit_against_a_worker(author: Author) -> None:
    """An edit that was accepted came before the claim; after it nothing changes any more."""
    for after in moments():
        said, left, post = await race(
            author, lambda post: edit(author.database, OWNER, post, {"title": "Edited"}), after
        )
        assert left
        title = (await author.show(post)).post.title
        assert title == ("Edited" if said == "done" else "A lighthouse at dusk")
        assert said in {"done", "post.on_its_way", "post.published"}
        if said == "done":
            claimed = "SELECT status_at FROM post WHERE id = $1"
            edited, at = (
                await author.read("SELECT edited_at FROM post WHERE id = $1", post),
                await author.read(claimed, post),
            )
            assert edited <= at


async def test_two_people_at_once(author: Author) -> None:
    """Schedule, cancel, move and delete the same posts from many sides: no deadlock, no second row, no lost rule."""
    accounts = [await author.account(str(n)) for n in range(3)]
    posts = [await author.draft() for _ in range(4)]
    acts: list[Callable[[UUID], Awaitable[object]]] = [
        lambda post: schedule(
            author.database, AT_ONCE, OWNER, post, ahead(), targets=[Target(account) for account in accounts]
        ),
        lambda post: reschedule(author.database, AT_ONCE, OWNER, post, ahead(3 * HOUR)),
        lambda post: publish_now(author.database, OWNER, post),
        lambda post: unschedule(author.database, OWNER, post),
        lambda post: cancel(author.database, OWNER, post),
        lambda post: edit(author.database, OWNER, post, {"title": str(uuid4())}),
    ]

    async def person() -> None:
        for _ in range(25):
            post, act = random.choice(posts), random.choice(acts)  # noqa: S311 - no secret
            try:
                await act(post)
            except Problem:
                continue

    async def worker() -> None:
        for _ in range(60):
            due = await author.read(
                "SELECT id FROM publication WHERE status = 'pending' AND due_at <= imprint_now() "
                "ORDER BY random() LIMIT 1"
            )
            lease = await author.claim(due) if due else None
            if lease and await author.intend(lease):
                await random.choice((author.succeed, author.fail))(lease)  # noqa: S311 - no secret

    await asyncio.gather(*(person() for _ in range(4)), *(worker() for _ in range(2)))
    twice = await author.read(
        "SELECT count(*) FROM (SELECT FROM publication WHERE status = 'success' "
        "GROUP BY post_id, account_id HAVING count(*) > 1) t"
    )
    assert twice == 0


async def test_an_account_with_other_limits_of_time(author: Author) -> None:
    """The lead is the caller's: a person who may publish at short notice can."""
    await author.account(default=True)
    post = await author.draft()
    short = Bounds(lead=timedelta(minutes=1))
    await schedule(author.database, short, OWNER, post, ahead(timedelta(minutes=2)))
    assert await author.status(post) == "scheduled"


async def test_files_of_an_article_are_welcome(author: Author) -> None:
    """An article with a picture is one publication in single mode."""
    await author.account(default=True)
    post = await create(author.database, OWNER, {"title": "A tale", "kind": "article", "body": "Once"})
    await attach(author.database, OWNER, post, await author.content())
    await ready(author.database, OWNER, post)
    await planned(author, post)
    assert len((await author.show(post)).publications) == 1
