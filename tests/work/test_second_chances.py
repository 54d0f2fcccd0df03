"""Ways by which something could go out twice, or wait for ever, that a hostile reader thought of."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from imprint.engine.clock import Due
from imprint.engine.queue import Job
from imprint.problem import Problem
from imprint.sandbox.faults import Fault
from imprint.store import incarnation
from imprint.store.query import query
from imprint.work import resolve
from imprint.work import rule as rules
from imprint.work.account import REVIVE
from imprint.work.announce import announce
from imprint.work.attach import detach
from imprint.work.holds import free_held
from imprint.work.outcome import Ended, Outcome
from imprint.work.post import edit
from imprint.work.record import replay
from imprint.work.schedule import bounds, cancel, publish_now, reschedule
from tests.work import serials
from tests.work.posts import OWNER
from tests.work.stage import DEVIANTART, PUBLISH, WEBHOOK, Stage

TWO_MINUTES = timedelta(minutes=2)


async def of(play: Stage, publication: UUID, column: str) -> Any:
    """Read a column of a publication."""
    return await play.read(f"SELECT {column} FROM publication WHERE id = $1", publication)


async def late_answer(play: Stage, publication: UUID) -> None:
    """Let the answer of the first attempt come from a journal."""
    account = await of(play, publication, "account_id")
    outcome = Outcome("published", remote_id="D-1", url="https://example.org/art/1")
    play.desk.journal.write(Ended(publication, 1, outcome, (), account, 1))
    assert await replay(play.desk) == 1


async def partly_out(play: Stage) -> tuple[UUID, UUID, list[UUID]]:
    """Publish the first of two files, one by one, and let the second fail; give post, account and publications."""
    account, post = await play.account(DEVIANTART), await play.post(2, uploadMode="multiple")
    planned = [each.id for each in await publish_now(play.database, OWNER, post, accounts=[account])]
    await play.out(planned[0])
    await play.read("UPDATE publication SET status = 'failed', error_code = 'x' WHERE id = $1", planned[1])
    return post, account, planned


async def test_a_clock_and_a_person_who_miss_each_other(play: Stage) -> None:
    """The clock holds a row for an account that is being connected at that moment; a chore lets it go."""
    account = await play.account()
    publication = await play.due(account)
    await play.read("UPDATE account SET status = 'reconnect' WHERE id = $1", account)
    fire = query("clock_publication_due", Due)
    async with play.database.transaction("clock", "due") as clock:
        await fire.all(clock, 500)
        await play.read("UPDATE account SET status = 'connected' WHERE id = $1", account)
    assert await of(play, publication, "held_until = 'infinity'")
    assert await free_held(play.database) == 1
    await play.out(publication)
    assert await play.state(publication) == "success"


async def test_a_file_that_is_out_stays_with_its_post(play: Stage) -> None:
    """It cannot be taken off and put on again, nor sent another way: the same file would go out twice."""
    post, _, planned = await partly_out(play)
    first = await of(play, planned[0], "file_id")
    for change in (
        detach(play.database, OWNER, post, first),
        edit(play.database, OWNER, post, {"uploadMode": "single"}),
    ):
        with pytest.raises(Problem):
            await change


async def test_a_login_that_comes_back_is_the_same_account(play: Stage) -> None:
    """Removed and added again, it remembers what is out there."""
    publication = await play.due(await play.account(DEVIANTART, "same"))
    await play.publish(publication)
    account = await of(play, publication, "account_id")
    await play.read("UPDATE account SET deleted_at = imprint_now() WHERE id = $1", account)
    async with play.database.connection() as connection:
        revived = await REVIVE.one(connection, DEVIANTART, "same", OWNER, "anew")
    assert revived.id == account


async def test_a_suspect_that_cannot_be_sent_is_asked_about(play: Stage) -> None:
    """It may be out, and a file of its post is gone: it is looked for, and then a person decides."""
    publication = await play.due()
    async with play.database.connection() as connection:
        await incarnation.SUSPECT.one(connection)
        await connection.execute("UPDATE content SET deleted_at = imprint_now(), purge_at = imprint_now()")
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    await play.out(publication)
    assert (await play.state(publication), await of(play, publication, "held_why")) == ("unknown", "person")


async def test_what_was_cancelled_and_is_out_is_not_published_again(play: Stage) -> None:
    """A person said that it is not out, took it back, and then the answer came: nothing is planned there any more."""
    publication = await play.due()
    account, post = await of(play, publication, "account_id"), await of(play, publication, "post_id")
    play.fault(Fault.RESET_AFTER, PUBLISH)
    await play.publish(publication)
    await play.pass_time(TWO_MINUTES)
    await resolve.not_published(play.database, OWNER, publication)
    await cancel(play.database, OWNER, post)
    await late_answer(play, publication)
    with pytest.raises(Problem, match="out on"):
        await publish_now(play.database, OWNER, post, accounts=[account])
    assert len(play.effects()) == 1


async def test_a_persons_word_is_no_second_copy(play: Stage) -> None:
    """The platform's own answer comes after a person has said where it is: that is no alarm."""
    publication = await play.due()
    play.fault(Fault.RESET_AFTER, PUBLISH)
    await play.publish(publication)
    await resolve.published(play.database, OWNER, publication, "https://example.org/art/1")
    await late_answer(play, publication)
    assert "duplicate" not in await play.lines(publication)


async def test_a_new_time_is_a_new_moment(play: Stage) -> None:
    """One that was begun and is rescheduled is dated when it goes, not when it was first tried."""
    publication = await play.due(on=WEBHOOK)
    play.fault(Fault.RATE_LIMIT, "*", retry_after="60")
    await play.publish(publication)
    later = await play.read("SELECT imprint_now() + interval '14 days'")
    await reschedule(play.database, bounds(play.at.settings), OWNER, await of(play, publication, "post_id"), later)
    assert await of(play, publication, "made_at") is None


async def test_an_account_that_is_gone_does_not_silence_a_rule(play: Stage) -> None:
    """The post goes to the others; after a restored database was accepted rules are off until a person says so."""
    one, two = await play.account(WEBHOOK), await play.account(WEBHOOK)
    async with play.database.connection() as connection:
        series = await serials.add_series(connection, "Sea")
        await connection.execute("UPDATE series SET owner = $1", OWNER)
        source = await serials.add_source(connection, series)
    await serials.take_in(play.database, series, source, [serials.chapter("Chapter 1")], first=True)
    await rules.add(play.database, OWNER, series, [one, two], title="{series} {number}", body="{title}: {url}")
    await play.read("UPDATE account SET deleted_at = imprint_now() WHERE id = $1", one)
    await serials.take_in(play.database, series, source, [serials.chapter("Chapter 2")])
    await announce(play.database, Job("announce", str(series)))
    assert await play.read("SELECT array_agg(account_id) FROM publication") == [two]
    async with play.database.connection() as connection:
        await incarnation.SUSPECT.one(connection)
    await serials.take_in(play.database, series, source, [serials.chapter("Chapter 3")])
    await announce(play.database, Job("announce", str(series)))
    assert await play.read("SELECT count(*) FROM post") == 1
