"""Explaining: the whole story of a publication in the order it happened, and what comes next, for every way to wait."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from imprint.lifecycles.publication import PublicationStatus
from imprint.problem import Problem
from imprint.sandbox.faults import Fault
from imprint.work import batch
from imprint.work.explain import Explained, Told, explain
from imprint.work.outlook import Standing, outlook, span
from imprint.work.resolve import not_published
from imprint.work.schedule import Target, cancel, schedule
from imprint.work.story import Happened, told
from tests.work.posts import AT_ONCE, OWNER, Author
from tests.work.stage import UPLOAD, Stage

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


async def explained(play: Stage, publication: UUID) -> Told:
    """Explain one publication."""
    async with play.database.connection() as connection:
        (only,) = (await explain(connection, OWNER, str(publication))).publications
    return only


async def explained_post(author: Author, post: UUID) -> Explained:
    """Explain a post."""
    async with author.database.connection() as connection:
        return await explain(connection, OWNER, str(post))


async def test_the_story_of_one_that_went_through_everything(play: Stage) -> None:
    """A rate limit, a lost answer, a person and the end: every step once, in order, with its evidence."""
    publication = await play.due()
    play.fault(Fault.RATE_LIMIT, UPLOAD, retry_after="7")
    await play.publish(publication)
    seen = await explained(play, publication)
    assert (seen.standing.status, seen.standing.held_why) == ("pending", "pace")
    assert "wants fewer calls: it is tried again in 7 s" in seen.next.sentence
    await play.wait_for("SELECT due_at FROM publication WHERE id = $1", publication)
    play.fault(Fault.RESET_BEFORE)
    await play.publish(publication)
    seen = await explained(play, publication)
    assert "somebody looks in 1 min" in seen.next.sentence
    await play.wait_for("SELECT deadline FROM publication WHERE id = $1", publication)
    await not_published(play.database, OWNER, publication)
    await play.publish(publication)
    seen = await explained(play, publication)
    whats = [step.what for step in seen.steps]
    assert whats == [
        "create", "claim", "waits", "claim", "uploaded", "intend", "unknown", "said_not_out", "claim", "intend",
        "published",
    ]  # fmt: skip
    assert [step.at for step in seen.steps] == sorted(step.at for step in seen.steps)
    waits, unknown, last = seen.steps[2], seen.steps[6], seen.steps[-1]
    assert (waits.outcome, waits.code, waits.target, waits.attempt) == (
        "rate_limited",
        "deviantart.user_api_threshold",
        "pending",
        1,
    )
    assert (unknown.outcome, unknown.stage, unknown.target, unknown.attempt) == ("no_answer", "waiting", "unknown", 2)
    assert (seen.steps[7].who, seen.steps[7].sentence) == (
        OWNER,
        f"A person ({OWNER}) says that it is not out; it is sent again now.",
    )
    assert last.sentence.startswith("It is out: http")
    assert seen.next.sentence == f"Nothing: it is out: {seen.standing.url}"
    assert seen.next.over
    data = seen.as_data()
    assert data["story"][2]["from"] == "running"
    assert data["next"]["needsPerson"] is False
    assert "requestSha256" in data["story"][5]


async def test_a_refusal_says_what_the_platform_said(play: Stage) -> None:
    """One step has the sentence, the code and where it stopped; next is a person's."""
    publication = await play.due()
    play.fault(Fault.REFUSE, code=5)
    await play.publish(publication)
    seen = await explained(play, publication)
    last = seen.steps[-1]
    assert (last.outcome, last.target, last.source) == ("refused", "failed", "running")
    assert last.code
    assert last.code in last.evidence
    assert last.sentence
    assert seen.next.person
    assert f"imprint post retry {seen.standing.post_id}" in seen.next.do


async def test_an_account_that_must_be_connected_again(play: Stage) -> None:
    """The publication keeps its time, and says which account, why, and what to run."""
    account = await play.account(label="painter")
    publication = await play.due(account)
    play.fault(Fault.EXPIRED, "*", times=None)
    await play.publish(publication)
    seen = await explained(play, publication)
    assert seen.standing.account_status == "reconnect"
    assert "must be connected again" in seen.next.sentence
    assert seen.next.do == ("imprint account reconnect painter",)
    assert "it is not published unasked" in seen.next.sentence


async def test_an_open_circuit_says_until_when_and_why(play: Stage) -> None:
    """Of the account or of the host: its time and its last error."""
    account = await play.account()
    first = await play.due(account)
    play.fault(Fault.RATE_LIMIT, UPLOAD, retry_after="600")
    await play.publish(first)
    second = await play.due(account)
    await play.publish(second)
    seen = await explained(play, second)
    assert seen.standing.held_why == "circuit"
    assert "The circuit of the account is open" in seen.next.sentence
    assert "The last error: " in seen.next.sentence
    assert "in 10 min" in seen.next.sentence
    assert seen.as_data()["circuit"]["why"]


async def test_the_circuit_of_a_host_is_told_apart(play: Stage) -> None:
    """Every account at a host waits when it fails, and is told that it is the platform."""
    publication = await play.due()
    async with play.database.connection() as connection:
        until = await connection.fetchval("SELECT imprint_now() + interval '5 min'")
        await connection.execute(
            "INSERT INTO circuit (key, errors, openings, open_until, last_error) VALUES "
            "('host:gallery.example', 5, 1, $1, 'It is ill: postgresql://me:hidden@x/y')",
            until,
        )
        await connection.execute(
            "UPDATE publication SET held_until = $2, held_why = 'circuit' WHERE id = $1", publication, until
        )
    seen = await explained(play, publication)
    assert "The circuit of the platform is open" in seen.next.sentence
    assert "It is ill" in seen.next.sentence
    assert "hidden" not in str(seen.as_data())


async def test_nothing_is_planned(author: Author) -> None:
    """A post in review, a draft and a deleted one say so."""
    post = await author.review()
    assert "in review" in (await explained_post(author, post)).next
    draft = await author.draft()
    seen = await explained_post(author, draft)
    assert "planned nowhere" in seen.next
    assert [step.what for step in seen.steps] == ["create", "approve"]
    await author.database.pool.execute("UPDATE post SET deleted_at = imprint_now() WHERE id = $1", post)
    assert (await explained_post(author, post)).next == "Nothing: the post is deleted."


async def test_scheduled_cancelled_and_planned_again(author: Author) -> None:
    """The wait for its time, the hand that cancelled it, and that nothing follows."""
    post, account = await author.draft(), await author.account()
    await schedule(
        author.database, AT_ONCE, OWNER, post, datetime.now(UTC) + 3 * HOUR + 20 * MINUTE, targets=[Target(account)]
    )
    (seen,) = (await explained_post(author, post)).publications
    assert "It waits for its time: in 3 h " in seen.next.sentence
    assert "no worker is alive" in seen.next.sentence
    await cancel(author.database, OWNER, post)
    (seen,) = (await explained_post(author, post)).publications
    assert [step.sentence for step in seen.steps] == [
        "It was planned: scheduled.",
        "It was cancelled: cancelled by hand.",
    ]
    assert seen.next.sentence == "Nothing: it was cancelled by hand."


async def test_the_turns_of_a_batch(author: Author) -> None:
    """The first goes, the others wait for their turn; a pause says how it ends."""
    account, posts = await author.account(), [await author.draft() for _ in range(3)]
    made = await batch.create(author.database, AT_ONCE, OWNER, posts, every=HOUR, accounts=[account])
    sentences = [(await explained_post(author, post)).publications[0].next.sentence for post in posts]
    assert "the next of its batch" in sentences[0]
    assert "1 publication of its batch before it" in sentences[1]
    assert "2 publications of its batch before it" in sentences[2]
    await batch.pause(author.database, OWNER, made.batch.id)
    (paused,) = (await explained_post(author, posts[1])).publications
    assert paused.next.do == (f"imprint batch resume {made.batch.id}",)


async def test_only_ones_own(author: Author) -> None:
    """Somebody else's post, too few letters and nonsense are no posts."""
    post = await author.draft()
    async with author.database.connection() as connection:
        for owner, text in (("eve", str(post)), (OWNER, str(post)[:3]), (OWNER, "lighthouse"), (OWNER, str(uuid4()))):
            with pytest.raises(Problem) as refused:
                await explain(connection, owner, text)
            assert refused.value.code == "post.missing"
        assert (await explain(connection, OWNER, str(post)[:8])).found.post == post


STANDING = Standing(
    id=uuid4(), post_id=uuid4(), platform="deviantart", account="painter", account_status="connected", trouble=None,
    file=None, status="pending", status_at=NOW, phase=None, scheduled_at=NOW, due_at=NOW, now=NOW, held_until=None,
    held_why=None, look_at=None, looks=0, lease_until=None, deadline=None, attempts=0, crashes=0, left=False,
    error_code=None, remote_id=None, url=None, published_at=None, dismissed=False, late_policy="publish",
    late_hours=None, circuit=None, circuit_until=None, circuit_why=None, busy_with=None, sends_held=None,
    worker_alive=True, uploading=None, sent=None, size=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sentence", "person"),
    [
        ({}, "It is due: a worker takes it in a moment.", False),
        ({"worker_alive": False}, "It is due: a worker takes it in a moment. But no worker is alive.", True),
        ({"due_at": NOW + 2 * HOUR}, "It waits for its time: in 2 h.", False),
        ({"due_at": NOW + MINUTE, "attempts": 2}, "It is tried again in 1 min; 2 attempts did not work.", False),
        ({"due_at": NOW + MINUTE, "held_why": "pace"}, "The platform wants fewer calls: it is tried again in", False),
        ({"sends_held": "it was restored"}, "Every send is held: it was restored.", True),
        ({"account_status": "disabled"}, "The account painter is disabled;", True),
        ({"account_status": "reconnect", "trouble": "It expired."}, "must be connected again; it keeps its", True),
        ({"account_status": "reconnect"}, "If that takes more than 1 d, it is not published unasked.", True),
        ({"account_status": "reconnect", "late_policy": "skip"}, "more than 15 min, it is skipped.", True),
        ({"account_status": "reconnect", "late_policy": "ask", "due_at": NOW - HOUR}, "By now it is so late", True),
        ({"held_until": NOW + MINUTE, "held_why": "busy", "busy_with": "Fog"}, "“Fog” is on its way on this", False),
        ({"held_until": NOW + MINUTE, "held_why": "queue"}, "It is due: a worker takes it in a moment.", False),
        ({"held_until": NOW + MINUTE, "held_why": "pace"}, "The platform wants fewer calls; it is looked at", False),
        ({"held_until": NOW + MINUTE, "held_why": "batch"}, "It is not its turn in the batch yet; it is looked", False),
        ({"held_until": NOW + MINUTE, "held_why": "sign-in"}, "Signing in to deviantart did not work; it is", False),
        ({"held_until": NOW + MINUTE, "held_why": "new word"}, "New word; it is looked at again in 1 min.", False),
        ({"batch": uuid4(), "paused": True}, "Its batch is paused.", True),
        ({"batch": uuid4(), "before_it": 2, "due_at": NOW + HOUR}, "2 publications of its batch before it.", False),
        ({"batch": uuid4(), "before_it": 0, "turn_at": NOW + HOUR}, "It is the next of its batch: in 1 h.", False),
        ({"batch": uuid4(), "before_it": 0}, "It is the next of its batch: in a moment.", False),
        ({"status": "running", "phase": "uploading", "lease_until": NOW + MINUTE}, "A worker is at it.", False),
        ({"status": "running", "lease_until": NOW + MINUTE, "uploading": "a.png", "sent": 1, "size": 4}, "25%", False),
        ({"status": "running", "phase": "publishing", "lease_until": NOW + MINUTE, "deadline": NOW + 30 * MINUTE / 60},
         "the answer is waited for, 30 s at most.", False),
        ({"status": "running", "lease_until": NOW - MINUTE}, "Its worker gives no sign of life;", False),
        ({"status": "unknown"}, "A person must decide: look whether it is on deviantart, then say so.", True),
        ({"status": "unknown", "look_at": NOW + 12 * MINUTE, "looks": 1}, "somebody looks again in 12 min.", False),
        ({"status": "unknown", "look_at": NOW - MINUTE}, "somebody looks in a moment.", False),
        ({"status": "unknown", "look_at": NOW, "held_why": "look", "held_until": NOW + MINUTE}, "right now", False),
        ({"status": "unknown", "look_at": NOW, "account_status": "reconnect"}, "somebody looks for it then.", True),
        ({"status": "success", "url": "https://a.example/1"}, "Nothing: it is out: https://a.example/1", False),
        ({"status": "success"}, "Nothing: it is out.", False),
        ({"status": "failed", "error_code": "late.ask"}, "Its time was missed by too much", True),
        ({"status": "failed", "error_code": "x.y"}, "It failed: x.y.", True),
        ({"status": "failed", "error_code": "x.y", "dismissed": True}, "nobody wants it any more", False),
        ({"status": "cancelled"}, "Nothing: it was cancelled by hand.", False),
    ],
)  # fmt: skip
def test_what_happens_next(changes: dict[str, object], sentence: str, person: bool) -> None:  # noqa: FBT001
    """Every way to stand has a sentence, and says whether it needs a person."""
    ahead = outlook(replace(STANDING, **changes), 24)  # type: ignore[arg-type] # made-up rows
    assert sentence in ahead.sentence
    assert ahead.person is person
    assert bool(ahead.do) >= person


def test_every_state_has_an_outlook() -> None:
    """Whatever a publication is, something is said."""
    for status in PublicationStatus:
        assert outlook(replace(STANDING, status=str(status)), 24).sentence.endswith((".", "/1"))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "a moment"), (1, "1 s"), (59, "59 s"), (60, "1 min"), (90, "1 min 30 s"), (620, "10 min"), (3600, "1 h"),
     (12000, "3 h 20 min"), (86400, "1 d"), (97200, "1 d 3 h")],
)  # fmt: skip
def test_a_length_of_time_as_people_say_it(seconds: float, words: str) -> None:
    """Its two largest units."""
    assert span(timedelta(seconds=seconds)) == words


def test_what_lies_apart_is_not_joined() -> None:
    """A line that was written later is a step of its own, and so is what belongs to another publication."""
    one, other = uuid4(), uuid4()
    line = Happened(one, NOW, "ended", "not_yet", None, None, "w", "Later.", "x", None, 503, None)
    later = replace(line, kind="log", name="waits", text="It waits.")
    assert len(told([line, replace(later, at=NOW + timedelta(milliseconds=5))])) == 1
    assert len(told([line, replace(later, at=NOW + MINUTE)])) == 2
    assert len(told([line, replace(later, of=other)])) == 2
    (joined,) = told([line, later])
    assert (joined.sentence, joined.code, joined.http_status) == ("It waits.", "x", 503)
    assert joined.evidence == "x, HTTP 503"
