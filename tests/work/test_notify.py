"""People are told once of each new chapter, where they want, however often it is tried and whoever dies on the way."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from imprint.engine.queue import Entrypoint, Job
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.work import series as serials
from imprint.work import target as targets
from imprint.work.dead_letter import discard, listed, requeue, show
from imprint.work.notice import listed as notices
from imprint.work.notice import read
from imprint.work.notify import ATTEMPTS, DIED, LEASE
from imprint.work.rotate import rotate
from tests.engine.scene import clock_runs, queue_runs
from tests.waiting import until
from tests.work.readers import ADA, SERIES, Readers, readers
from tests.work.serials import take_in

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@pytest.fixture
async def at(database: Database, home: Path) -> AsyncIterator[Readers]:
    """Set the scene up, without a window."""
    async with readers(database, home) as made:
        yield made


async def test_each_target_is_told_once(at: Readers) -> None:
    """One message for each target of a reader; the same again, or another delivery of the job, changes nothing."""
    await at.reader()
    await at.target()
    await at.reader("bob")
    for _ in range(2):
        await at.news("Chapter 7")
        await at.deliver()
    assert at.receiver.heard == [
        {"version": "1.0", "title": f"{SERIES} Ch.7", "message": "https://read.example/7", "attachments": [],
         "type": "info"}
    ] * 3  # fmt: skip
    assert await at.value("SELECT count(*) FROM delivery_notice") == 3
    assert await at.value("SELECT bool_and(outcome = 'sent') FROM delivery")


async def test_the_whole_way_by_the_clock(at: Readers, database_url: str) -> None:
    """A chapter is found; the queue gathers, the clock hands over when the window has passed, the message arrives."""
    await at.reader()
    minute = timedelta(minutes=1)
    both = (
        Entrypoint("notify", at.notifier.notify, 0, 5, minute),
        Entrypoint("deliver", at.notifier.deliver, 0, 3, minute),
    )
    async with queue_runs(database_url, *both), clock_runs(database_url, ("deliver",)):
        await take_in(at.database, at.series, at.source, ["Chapter 1", "Chapter 2"])
        await until(lambda: at.value("SELECT count(*) FROM delivery WHERE outcome = 'sent'"))
    assert [each["title"] for each in at.receiver.heard] == [f"{SERIES}: 2 new chapters"]


async def test_what_comes_in_a_window_is_one_message(database: Database, home: Path) -> None:
    """Chapters found while the window is open join the message; one that is found later begins another."""
    async with readers(database, home, IMPRINT_NOTICE_WINDOW_SECONDS="60") as at:
        await at.reader()
        await at.news("Chapter 1")
        await at.news("Chapter 2", "Chapter 3")
        assert await at.due() == []
        await at.pass_time(2 * MINUTE)
        await at.deliver()
        await at.news("Chapter 4")
        await at.pass_time(4 * MINUTE)
        await at.deliver()
    assert at.receiver.bodies == [
        "Ch.1 https://read.example/1\nCh.2 https://read.example/2\nCh.3 https://read.example/3",
        "https://read.example/4",
    ]


async def test_a_digest_waits_for_its_hour(at: Readers) -> None:
    """Hourly at the full hour, daily at the hour that is set, each with the news of all series."""
    hourly, daily = await at.reader(digest="hourly"), await at.target(digest="daily")
    other = await at.value("INSERT INTO series (title) VALUES ('Sea') RETURNING id")
    await at.value("INSERT INTO follow (person, series_id) VALUES ($1, $2) RETURNING 1", ADA, other)
    await at.news("Chapter 1")
    again = Readers(at.database, at.settings, at.receiver, at.courier, at.vault, other, at.source)
    await again.news("Chapter 9")
    now: datetime = await at.value("SELECT min(created_at) FROM delivery")
    full = now.replace(minute=0, second=0, microsecond=0) + HOUR
    eight = now.replace(hour=8, minute=0, second=0, microsecond=0)
    eight += timedelta(days=1) if eight <= now else timedelta(0)
    times = "SELECT next_at FROM delivery WHERE target_id = $1 AND series_id IS NULL"
    assert [await at.value(times, hourly), await at.value(times, daily)] == [full, eight]
    assert await at.due() == []
    await at.pass_time(timedelta(days=1))
    await at.deliver()
    assert [each["title"] for each in at.receiver.heard] == ["2 new chapters in 2 series"] * 2


async def test_who_does_not_want_to_hear_does_not(at: Readers) -> None:
    """Muted, unfollowed, read, removed, or there only since later: nothing is sent, and nothing is left waiting."""
    muted, gone = await at.reader("muted"), await at.reader("gone")
    for person in ("read", "quiet", "left", "later"):
        await at.reader(person)
    await at.value("UPDATE target SET created_at = created_at + interval '1 hour' WHERE person = 'later' RETURNING 1")
    await at.news("Chapter 1")
    await targets.mute(at.database, "muted", muted, muted=True)
    await targets.remove(at.database, "gone", gone)
    assert len(await read(at.database, "read", None)) == 1
    await serials.follow(at.database, "quiet", at.series, notify=False)
    await serials.unfollow(at.database, "left", at.series)
    await at.deliver()
    assert at.receiver.calls == 0
    assert await at.value("SELECT count(*) FROM delivery WHERE ended_at IS NULL") == 0
    assert await at.value("SELECT array_agg(DISTINCT outcome) FROM delivery") == ["moot"]
    await at.news("Chapter 2")
    assert await at.due() != []  # those who only read go on hearing
    await at.deliver()
    assert len(at.receiver.heard) == 1


async def test_five_attempts_then_a_dead_letter_then_a_requeue_that_works(at: Readers) -> None:
    """The third failure lets the target rest, which uses no attempt; the last makes a dead letter with its history."""
    target = await at.reader()
    at.receiver.status = 500
    await at.news("Chapter 1")
    await at.deliver()
    await at.deliver()
    await at.deliver()
    assert (at.receiver.calls, await at.value("SELECT attempts FROM delivery")) == (3, 3)
    await at.deliver()  # the circuit is open
    assert (at.receiver.calls, await at.value("SELECT attempts FROM delivery")) == (3, 3)
    async with at.database.connection() as connection:
        (shown,) = await targets.listed(connection, ADA)
        assert shown.resting_until
        assert "error=500" in (shown.last_error or "")
    await at.pass_time(3 * MINUTE)
    await at.deliver()
    await at.pass_time(20 * MINUTE)
    await at.deliver()
    assert at.receiver.calls == ATTEMPTS
    assert await at.due() == []
    async with at.database.connection() as connection:
        (letter,) = await listed(connection, "notify")
        history = (await show(connection, letter.id)).history
    assert (letter.attempts, letter.about) == (ATTEMPTS, "json")
    assert letter.as_data()["data"]["notices"][0]["chapter"] == await at.value("SELECT slug FROM chapter")
    assert len(history) == ATTEMPTS
    assert all("error=500" in (event.error or "") for event in history)
    assert "127.0.0.1" not in str(letter)  # not a word of the address
    at.receiver.status = 200
    await requeue(at.database, "ada", letter.id)
    with pytest.raises(Problem, match="no dead letter"):
        await requeue(at.database, "ada", letter.id)
    await at.deliver()
    assert len(at.receiver.heard) == 1
    async with at.database.connection() as connection:
        assert await listed(connection) == []
        assert (await targets.show(connection, ADA, target)).last_error is None
    assert await at.value("SELECT count(*) FROM delivery_attempt") == 0
    assert await at.value("SELECT count(*) FROM circuit") == 0
    assert await at.value("SELECT move FROM audit WHERE lifecycle = 'dead_letter'") == "requeue"


async def test_a_dead_letter_can_be_let_go(at: Readers) -> None:
    """It is discarded for good, and is not gathered again."""
    await at.reader()
    await at.news("Chapter 1")
    await at.value("UPDATE delivery SET closed_at = imprint_now(), failed_at = imprint_now(), error = 'x' RETURNING 1")
    async with at.database.connection() as connection:
        (letter,) = await listed(connection)
    await discard(at.database, "ada", letter.id)
    await at.gather()
    await at.deliver()
    assert at.receiver.calls == 0
    assert await at.value("SELECT outcome FROM delivery") == "discarded"


async def test_of_many_people_one_decides_about_a_message(at: Readers) -> None:
    """However many requeue and discard it at once, one move is made and one line written."""
    await at.reader()
    await at.news("Chapter 1")
    await at.value("UPDATE delivery SET closed_at = imprint_now(), failed_at = imprint_now(), error = 'x' RETURNING 1")
    async with at.database.connection() as connection:
        (letter,) = await listed(connection)
    moves = [move(at.database, "ada", letter.id) for _ in range(4) for move in (requeue, discard)]
    ends = await asyncio.gather(*moves, return_exceptions=True)
    assert sum(end == letter for end in ends) == 1
    assert {end.code for end in ends if isinstance(end, Problem)} == {"dead_letter.missing"}
    assert await at.value("SELECT count(*) FROM audit WHERE lifecycle = 'dead_letter'") == 1


async def test_one_target_that_fails_leaves_the_others_alone(at: Readers) -> None:
    """The circuit is the target's own."""
    broken = await at.reader(url=f"json://127.0.0.1:{at.receiver.port + 1}/nobody")
    await at.target()
    for number in range(5):
        await at.news(f"Chapter {number}")
        await at.deliver()
    assert len(at.receiver.heard) == 5
    assert await at.value("SELECT open_until > imprint_now() FROM circuit WHERE key = $1", targets.key(broken))
    assert await at.value("SELECT count(*) FROM circuit") == 1


async def test_many_at_once_send_one_message(at: Readers) -> None:
    """However often a message is handed over at the same moment, it goes out once."""
    await at.reader()
    await at.news("Chapter 1")
    (one,) = await at.due()
    await asyncio.gather(*(at.notifier.deliver(Job("deliver", str(one))) for _ in range(8)))
    assert len(at.receiver.heard) == 1


async def test_gathering_and_sending_at_once_loses_and_repeats_nothing(at: Readers) -> None:
    """While messages are closed and sent, new chapters come and are gathered by several: each is told of once."""
    await at.reader()
    await at.target(digest="hourly")
    found = [f"Chapter {number}" for number in range(1, 31)]

    async def find() -> None:
        for name in found:
            await take_in(at.database, at.series, at.source, [name])

    async def busily(act: str, until_done: asyncio.Task[None]) -> None:
        while not until_done.done():
            await getattr(at, act)()

    finding = asyncio.create_task(find())
    await asyncio.gather(finding, *(busily(act, finding) for act in ("gather", "gather", "deliver", "deliver")))
    await at.gather()
    await at.deliver()
    await at.pass_time(2 * HOUR)
    await at.deliver()
    assert await at.value("SELECT count(*) FROM delivery_notice") == 2 * len(found)
    assert await at.value("SELECT bool_and(outcome = 'sent') FROM delivery")
    assert await at.value("SELECT count(*) FROM delivery") == len(at.receiver.heard)


async def test_a_sender_that_died_is_followed_by_one_more_and_no_third(at: Readers) -> None:
    """After the lease it is sent once more; whose sender dies twice is set aside, unsent."""
    await at.reader()
    await at.news("Chapter 1", "Chapter 2")
    (one,) = await at.due()
    for deaths in (1, 2):
        assert await at.notifier._claim(one)  # and then it is gone
        assert await at.notifier._claim(one) is None  # its lease lasts
        await at.pass_time(deaths * 2 * LEASE)
        assert await at.due() == [one]
    await at.deliver()
    assert at.receiver.calls == 0
    async with at.database.connection() as connection:
        (letter,) = await listed(connection)
        assert [event.error for event in (await show(connection, letter.id)).history] == [DIED, DIED]
    await requeue(at.database, "ada", letter.id)
    await at.deliver()
    assert len(at.receiver.heard) == 1


async def test_nothing_is_sent_while_sends_are_held(at: Readers) -> None:
    """A database that was restored or copied tells nobody anything until a person has looked."""
    await at.reader()
    await at.news("Chapter 1")
    await at.value(
        "INSERT INTO incarnation (place, held_since, held_why) VALUES ('x', imprint_now(), 'restored') RETURNING 1"
    )
    await at.deliver()
    assert at.receiver.calls == 0
    await at.value("UPDATE incarnation SET held_since = NULL, held_why = NULL RETURNING 1")
    await at.deliver()
    assert len(at.receiver.heard) == 1


async def test_addresses_are_sealed_and_rotate_with_the_sign_ins(at: Readers) -> None:
    """Nothing of an address can be read in the database, its row is part of its seal, and old keys can be forgotten."""
    one, two = await at.reader(url=f"{at.receiver.url}/hush"), await at.target("bob")
    row = await at.value("SELECT t::text FROM target t WHERE id = $1", one)
    assert "hush" not in row
    assert (await rotate(at.database, at.vault, "ada", forget=True)).resealed == 2
    async with at.database.connection() as connection:
        address = await targets.opened(connection, at.vault, one)
        assert address
        assert address.get_secret_value().endswith("/hush")
        await connection.execute(
            "UPDATE target SET (key_id, nonce, sealed) = (SELECT key_id, nonce, sealed FROM target WHERE id = $1) "
            "WHERE id = $2",
            one,
            two,
        )
        with pytest.raises(Problem, match="not what was sealed"):
            await targets.opened(connection, at.vault, two)
        await targets.remove(at.database, ADA, one)
        assert await targets.opened(connection, at.vault, one) is None
    assert await at.value("SELECT sealed FROM target WHERE id = $1", one) is None


async def test_an_address_that_cannot_be_used_is_refused(at: Readers) -> None:
    """Before anything is kept."""
    for url in ("nonsense", " ", "json://a\nb", "syslog://", "file:///etc/passwd", "json://" + "x" * 5000):
        with pytest.raises(Problem) as caught:
            await at.target(url=url)
        assert caught.value.code == "notice.bad_target"
    assert await at.value("SELECT count(*) FROM target") == 0


async def test_names_of_targets(at: Readers) -> None:
    """One is made when none is given; two of a name are refused; they are found by name and by id."""
    first, second = await at.target(), await at.target()
    async with at.database.connection() as connection:
        assert [each.label for each in await targets.listed(connection, ADA)] == ["json", "json-2"]
        assert await targets.find(connection, ADA, "json-2") == second
        assert await targets.find(connection, ADA, str(first)[:8]) == first
        for text, person in (("other", ADA), ("json", "bob"), ("", ADA)):
            with pytest.raises(Problem, match="no such target"):
                await targets.find(connection, person, text)
    with pytest.raises(Problem, match="digest is off"):
        await targets.set_digest(at.database, ADA, first, "weekly")


async def test_notices_are_listed_and_read(at: Readers) -> None:
    """The newest first, a page at a time; what is read is no longer new, and nobody reads another's."""
    await at.reader()
    await at.news("Chapter 1", "Chapter 2.5", "Special: The sea")
    async with at.database.connection() as connection:
        page = await notices(connection, ADA, limit=2)
        rest = await notices(connection, ADA, before=page[-1].chapter_id)
        assert len(page + rest) == 3
        assert {each.label for each in page + rest} >= {"Ch.1", "Ch.2.5"}
    with pytest.raises(Problem, match="no notice"):
        await read(at.database, "bob", [rest[0].id])
    assert await read(at.database, ADA, [rest[0].id]) == [rest[0].id]
    assert await read(at.database, ADA, [rest[0].id]) == []
    async with at.database.connection() as connection:
        assert {each.id for each in await notices(connection, ADA, unread=True)} == {each.id for each in page}
