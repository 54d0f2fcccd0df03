"""The properties of seed 002 that are about a publication and its worker: 1-3, 8, 9 and 15-19, by their numbers.

Where the seed was wrong, the property is what it meant: a retry is found when its pause is over and not before, and
counts once; what is written about a success is written with it, in one transaction.
"""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from imprint.engine.clock import timers
from imprint.platforms.deviantart import PUBLISH_CODES
from imprint.platforms.webhook import WebhookLogin
from imprint.sandbox.faults import Fault
from imprint.work.resolve import published
from tests.waiting import until
from tests.work.posts import OWNER, Author
from tests.work.stage import DEVIANTART, FOLDER, GALLERY, UPLOAD, WEBHOOK, Stage

shared = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Every way in which an upload can fail so that it is tried again.
PASSING = st.sampled_from(
    [Fault.ERROR_BEFORE, Fault.RESET_BEFORE, Fault.RESET_DURING, Fault.RESET_AFTER, Fault.BLANK, Fault.HALF_ANSWER]
)
DUE = next(timer for timer in timers(3) if timer.name == "publication_due")
# An account, how long until it is due in seconds (never so near that the test itself decides), and tries before.
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-600, 600).filter(lambda n: abs(n) > 60), st.integers(0, 6)),
    min_size=1,
    max_size=8,
)
Row = tuple[int, int, int]


async def planned(author: Author, rows: list[Row]) -> list[tuple[UUID, Row]]:
    """Plan publications that are due at these times, on these accounts, after so many tries."""
    await author.read("UPDATE publication SET status = 'cancelled' WHERE status = 'pending'")
    accounts = [await author.account(uuid4().hex) for _ in range(4)]
    found = []
    for account, due, tries in rows:
        post = await author.read("INSERT INTO post (title, owner) VALUES ('One of many', $1) RETURNING id", OWNER)
        await author.read("UPDATE post SET status = 'draft' WHERE id = $1", post)
        # Scheduled long ago: a retry is due after its pause, whatever was scheduled.
        row = await author.read(
            "INSERT INTO publication (post_id, account_id, scheduled_at, zone, due_at, attempts) "
            "VALUES ($1, $2, imprint_now() - interval '1 day', 'UTC', imprint_now() + $3, $4) RETURNING id",
            post,
            accounts[account],
            timedelta(seconds=due),
            tries,
        )
        found.append((row, (account, due, tries)))
    return found


async def handed(author: Author) -> list[UUID]:
    """Let the clock look, and give what it hands over, in order."""
    async with author.database.transaction("clock", "due") as connection:
        return [UUID(each.key) for each in await DUE.fire(connection) if each.go]


@shared
@given(rows=ROWS)
async def test_property_1_retries_are_detected(author: Author, rows: list[Row]) -> None:
    """What waits after a failure is found as soon as its pause is over, and not a moment before."""
    apart = [(n % 4, due, max(tries, 1)) for n, (_, due, tries) in enumerate(rows[:4])]
    there = await planned(author, apart)
    assert set(await handed(author)) == {row for row, (_, due, _) in there if due <= 0}


async def tried(play: Stage, fault: Fault, before: int) -> UUID:
    """Let one fail that has failed so often before."""
    publication = await play.due()
    await play.read("UPDATE publication SET attempts = $2 WHERE id = $1", publication, before)
    play.box.faults.clear()
    play.fault(fault, UPLOAD)
    await play.publish(publication)
    return publication


@shared
@given(fault=PASSING | st.just(Fault.RATE_LIMIT), before=st.integers(0, 5))
async def test_property_2_each_failure_counts_once(play: Stage, fault: Fault, before: int) -> None:
    """It waits again, has one attempt less, and is due after a pause; being asked to wait uses no attempt."""
    publication = await tried(play, fault, before)
    counts = 0 if fault is Fault.RATE_LIMIT else 1
    assert (await play.state(publication), await play.column("attempts", publication)) == ("pending", before + counts)
    assert await play.column("due_at > status_at", publication)


@shared
@given(fault=PASSING)
async def test_property_3_the_last_attempt_is_the_last(play: Stage, fault: Fault) -> None:
    """After the seventh it has failed, and no clock hands it over again."""
    publication = await tried(play, fault, 6)
    assert await play.state(publication) == "failed"
    await play.pass_time(timedelta(hours=1))
    assert publication not in await handed(Author(play.database))


@shared
@given(on=st.sampled_from([DEVIANTART, WEBHOOK, FOLDER]), delay=st.sampled_from([0, 0.01, 0.05]))
async def test_property_8_status_and_record_appear_together(play: Stage, on: str, delay: float) -> None:
    """Whoever looks at any moment sees the success with its time, its record and its line, or none of them."""
    publication = await play.due(on=on)
    play.box.faults.clear()
    if delay:
        play.fault(Fault.LATENCY, "*", seconds=delay)
    seen = set()

    async def look() -> bool:
        found = await play.read(
            "SELECT ARRAY[u.status = 'success', u.published_at IS NOT NULL, p.status = 'published', "
            "EXISTS (SELECT FROM attempt a WHERE a.publication_id = u.id AND a.outcome = 'published'), "
            "EXISTS (SELECT FROM publication_log l WHERE l.publication_id = u.id AND l.kind = 'published')] "
            "FROM publication u JOIN post p ON p.id = u.post_id WHERE u.id = $1",
            publication,
        )
        seen.add(tuple(found))
        return any(found)

    await asyncio.gather(until(look), play.publish(publication))
    assert await look()
    assert seen <= {(False,) * 5, (True,) * 5}


@shared
@given(on=st.sampled_from([DEVIANTART, WEBHOOK, FOLDER]), way=st.sampled_from(["answer", "look", "person"]))
async def test_property_9_every_success_is_told(play: Stage, on: str, way: str) -> None:
    """However it became known that it is out, the log says so and names where, and so does the audit."""
    publication = await play.due(on=on if way == "answer" else DEVIANTART)
    play.box.faults.clear()
    if way != "answer":
        play.fault(Fault.RESET_AFTER)
    if way == "person":
        play.fault(Fault.LAG, GALLERY, times=None, seconds=86_400)
    await play.publish(publication)
    await play.out(publication)
    if way == "person":
        await published(play.database, OWNER, publication, "https://example.com/art/1")
    assert await play.state(publication) == "success"
    assert (await play.lines(publication))[-1] == {"answer": "published", "look": "found", "person": "said_out"}[way]
    of = "SELECT data->>'remoteId' FROM publication_log WHERE publication_id = $1 ORDER BY id DESC LIMIT 1"
    assert await play.read(of, publication) == await play.column("remote_id", publication)
    last = "SELECT target FROM audit WHERE row_id = $1 ORDER BY id DESC LIMIT 1"
    assert await play.read(last, publication) == "success"


@shared
@given(rows=ROWS)
async def test_property_15_in_the_order_of_their_times(author: Author, rows: list[Row]) -> None:
    """Of each account the one that has waited longest goes first, a retry as any other; the next when that is done."""
    there = await planned(author, rows)
    left = {row: (account, due) for row, (account, due, _) in there if due <= 0}
    while left:
        first: dict[int, int] = {}
        for account, due in left.values():
            first[account] = min(due, first.get(account, 0))
        gone = await handed(author)
        assert sorted(left[row] for row in gone) == sorted(first.items())
        for row in gone:
            del left[row]
            await author.read("UPDATE publication SET status = 'cancelled' WHERE id = $1", row)
        await author.read("UPDATE publication SET held_until = NULL WHERE status = 'pending'")
    assert not await handed(author)


@shared
@given(rows=ROWS, running=st.sets(st.integers(0, 7)))
async def test_property_16_what_runs_is_not_handed_over(author: Author, rows: list[Row], running: set[int]) -> None:
    """Neither what runs nor what waits for the same account is handed over or taken by anybody else."""
    there = await planned(author, rows)
    taken = set()
    for n, (row, (account, due, _)) in enumerate(there):
        if n in running and due <= 0 and account not in taken:
            assert await author.claim(row) is not None
            taken.add(account)
    accounts = {row: account for row, (account, _, _) in there}
    assert not {accounts[row] for row in await handed(author)} & taken
    for row, (account, due, _) in there:
        if account in taken and due <= 0:
            assert await author.claim(row) is None
    given_back = "UPDATE publication SET status = 'pending', phase = NULL, lease_until = NULL WHERE status = 'running'"
    await author.read(given_back)


@shared
@given(code=st.sampled_from(sorted(PUBLISH_CODES)))
async def test_property_17_every_failure_is_told(play: Stage, code: int) -> None:
    """A failed publication has a code, and its log has the sentence that goes with it; so has its attempt."""
    publication = await play.due()
    play.box.faults.clear()
    play.fault(Fault.REFUSE, code=code)
    await play.publish(publication)
    name, sentence = PUBLISH_CODES[code]
    assert (await play.state(publication), await play.column("error_code", publication)) == (
        "failed",
        f"deviantart.{name}",
    )
    line = "SELECT line FROM publication_log WHERE publication_id = $1 AND kind = 'failed'"
    assert await play.read(line, publication) == sentence
    assert await play.read("SELECT sentence FROM attempt WHERE publication_id = $1", publication) == sentence


@shared
@given(fault=PASSING)
async def test_property_18_exhaustion_says_so(play: Stage, fault: Fault) -> None:
    """When the attempts are used up, code and line say that, and what the last one met."""
    publication = await tried(play, fault, 6)
    assert await play.column("error_code", publication) == "exhausted"
    line = await play.read(
        "SELECT line FROM publication_log WHERE publication_id = $1 ORDER BY id DESC LIMIT 1", publication
    )
    met = await play.read("SELECT sentence FROM attempt WHERE publication_id = $1", publication)
    assert line == f"{met} All 7 attempts are used up."


@shared
@given(on=st.sampled_from([DEVIANTART, WEBHOOK]))
async def test_property_19_a_sign_in_error_names_the_platform(play: Stage, on: str) -> None:
    """Whoever must sign in again reads where: in the log, and at the account; the schedule is kept."""
    label = uuid4().hex
    account = await play.account(on, label)
    publication = await play.due(account)
    due = await play.column("due_at", publication)
    if on == DEVIANTART:
        for token in ("access", "refresh"):
            play.box.sites[on].spoil(label, token)
    else:
        wrong = WebhookLogin(
            name=label,
            url=SecretStr(f"{play.box.base_url(on)}/{label}"),
            secret=SecretStr("whsec_" + "A" * 43 + "="),
        )
        async with play.database.transaction(OWNER, "changed") as connection:
            await play.desk.vault.put(connection, account, wrong)
    await play.publish(publication)
    line = "SELECT line FROM publication_log WHERE publication_id = $1 ORDER BY id DESC LIMIT 1"
    assert f"{on} wants a new sign-in" in await play.read(line, publication)
    assert await play.read("SELECT status FROM account WHERE id = $1", account) == "reconnect"
    assert (await play.state(publication), await play.column("due_at", publication)) == ("pending", due)
