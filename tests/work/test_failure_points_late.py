"""The later points at which a publication can break, 15 to 27; see test_failure_points."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
import pytest_asyncio

from imprint.engine.queue import Job
from imprint.platforms.contract import token_for
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.webhook import Webhook
from imprint.problem import Problem
from imprint.sandbox.faults import Fault
from imprint.store import incarnation
from imprint.store.backup import back_up, restore_into
from imprint.store.db import open_database
from imprint.store.migrate import migrate
from imprint.work.claim import claim
from imprint.work.post import edit
from imprint.work.publish import Publisher
from imprint.work.record import replay
from imprint.work.resolve import not_published
from imprint.work.schedule import cancel, delete, publish_now, retry
from imprint.work.sign_in import signed_in
from tests.store.cluster import cluster
from tests.waiting import until
from tests.work.mortal import Mortal, mortal_worker
from tests.work.points import (
    HOUR,
    MINUTE,
    POSTING,
    SAID,
    SENDING,
    SUBMITTING,
    behind,
    ends,
    phase,
    signs_in,
    true,
)
from tests.work.posts import OWNER
from tests.work.stage import DEVIANTART, GALLERY, PUBLISH, WEBHOOK, Stage, stage

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def play(long_play: Stage) -> Stage:
    """Give the stage, without the faults and the circuits of the test before."""
    long_play.box.faults.clear()
    await long_play.read("DELETE FROM circuit")
    return long_play


@pytest.fixture
def worker(long_worker: Mortal) -> Mortal:
    """Give a worker that can be killed."""
    return long_worker


# The record


async def test_15_crash_between_the_answer_and_the_commit(play: Stage, worker: Mortal) -> None:
    """The answer died with its reader: a look finds it, or it is sent again with the same key."""
    looked, keyed = await play.due(), await play.due(on=WEBHOOK)
    await worker.do("publish", looked, f"after {SENDING}")
    await worker.do("publish", keyed, f"commit {SAID}")
    await ends(play, looked)
    await ends(play, keyed)


async def test_16_the_answer_to_the_record_s_commit_is_lost(play: Stage, home: Path) -> None:
    """It is recorded again, which changes nothing, and nothing is left in the journal."""
    publication = await play.due()
    async with behind(play, home) as (way, desk):
        play.fault(Fault.LATENCY, PUBLISH, seconds=0.2)
        working = asyncio.create_task(Publisher(desk).publish(Job("publish", str(publication))))
        await until(lambda: phase(play, publication, "publishing"))
        way.lose_answer_to("COMMIT")
        await working
        assert way.lost == 1
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert await play.lines(publication) == ["uploaded", "published"]
    assert not list(play.desk.journal.entries())


async def test_16_the_database_is_away(play: Stage, home: Path) -> None:
    """The result is on the disk before it is tried again; when the database is back it is recorded, without a look."""
    publication = await play.due()
    async with behind(play, home) as (way, desk):
        play.fault(Fault.LATENCY, PUBLISH, seconds=0.2)
        working = asyncio.create_task(Publisher(desk).publish(Job("publish", str(publication))))
        await until(lambda: phase(play, publication, "publishing"))
        way.go_away()
        await until(lambda: true(list(desk.journal.entries())))
        way.come_back()
        await working
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert not list(play.desk.journal.entries())


async def test_16_killed_with_a_result_that_the_database_could_not_take(play: Stage, home: Path) -> None:
    """Whoever starts next reads the journal: it is out, and nobody has to look, though the lease has ended."""
    publication = await play.due()
    async with behind(play, home) as (way, desk):
        play.fault(Fault.LATENCY, PUBLISH, seconds=0.2)
        working = asyncio.create_task(Publisher(desk).publish(Job("publish", str(publication))))
        await until(lambda: phase(play, publication, "publishing"))
        way.go_away()
        await until(lambda: true(list(desk.journal.entries())))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    await play.wait_for("SELECT lease_until FROM publication WHERE id = $1", publication)
    await play.expire()
    assert await play.state(publication) == "unknown"
    assert await replay(play.desk) == 1
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert await replay(play.desk) == 0


@pytest.mark.parametrize("state", ["53100", "40P01", "25006", "57014"])
async def test_16_the_database_cannot_take_it_now(play: Stage, state: str) -> None:
    """A full disk, a deadlock, a standby, a statement that is cancelled: kept on our disk until it can be recorded."""
    publication = await play.due()
    await play.read(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN IF NEW.outcome IS NOT NULL THEN RAISE EXCEPTION 'cannot' USING ERRCODE = '{state}'; END IF; "
        "RETURN NEW; END $$"
    )
    await play.read("CREATE TRIGGER refuse BEFORE UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION refuse()")
    working = asyncio.create_task(play.publish(publication))
    try:
        await until(lambda: true(working.done() or list(play.desk.journal.entries())))
    finally:
        await play.read("DROP TRIGGER refuse ON attempt")
    await working
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert not list(play.desk.journal.entries())


async def test_16_the_database_server_is_stopped_hard(home: Path) -> None:
    """PostgreSQL dies while the answer is on its way, and is started again: recorded from the journal, out once."""
    async with cluster() as server:
        await migrate(server.url())
        async with stage(server.url(), home) as play:
            publication = await play.due()
            play.fault(Fault.LATENCY, PUBLISH, seconds=0.3)
            working = asyncio.create_task(play.publish(publication))
            await until(lambda: phase(play, publication, "publishing"))
            await server.stop()
            await until(lambda: true(list(play.desk.journal.entries())))
            await server.start()
            await working
            assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
            assert not list(play.desk.journal.entries())


# Those who were thought dead


async def test_17_asleep_before_the_intent_while_another_is_at_it(play: Stage, worker: Mortal) -> None:
    """The lease is another's when it wakes: it makes no intent and sends nothing, though the row is running."""
    publication = await play.due()
    async with worker.asleep("publish", publication, "before publish_intend"):
        await play.wait_for("SELECT lease_until FROM publication WHERE id = $1", publication)
        await play.expire()
        assert await claim(play.desk, publication) is not None
    assert (await play.state(publication), await play.seen(publication)) == ("running", [0])
    assert await play.column("intent_at", publication) is None
    await ends(play, publication)


async def test_17_asleep_before_the_intent(play: Stage, worker: Mortal) -> None:
    """Its fence is old when it wakes: it sends nothing, and what others did stands."""
    publication = await play.due()
    async with worker.asleep("publish", publication, "before publish_intend"):
        await ends(play, publication)
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])


async def test_18_asleep_between_the_intent_and_the_send(play: Stage, worker: Mortal) -> None:
    """Its own clock says that its time is over: it sends nothing, whatever others have done meanwhile."""
    looked, keyed = await play.due(), await play.due(on=WEBHOOK)
    async with worker.asleep("publish", looked, f"before {SENDING}", seconds=0.2):
        await ends(play, looked, "unknown", 0)
        await asyncio.sleep(0.2)
    assert (await play.state(looked), await play.seen(looked)) == ("unknown", [0])
    async with worker.asleep("publish", keyed, f"before {POSTING}", seconds=0.2):
        await ends(play, keyed)
        await asyncio.sleep(0.2)
    assert (await play.state(keyed), await play.seen(keyed)) == ("success", [1])


@pytest.mark.parametrize("found_first", [True, False])
async def test_19_success_after_others_have_taken_over(play: Stage, worker: Mortal, found_first: bool) -> None:  # noqa: FBT001
    """The evidence settles it, before or after a look has found the same; nobody is alarmed."""
    publication = await play.due()
    async with worker.asleep("publish", publication, f"before {SAID}"):
        await play.wait_for("SELECT lease_until FROM publication WHERE id = $1", publication)
        await play.expire()
        assert await play.state(publication) == "unknown"
        if found_first:
            await ends(play, publication)
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert "duplicate" not in await play.lines(publication)
    assert await play.read("SELECT outcome FROM attempt WHERE publication_id = $1", publication) == "published"


# Looking, people, sign-ins, clocks, copies


@pytest.mark.parametrize("looks", [2, None])
async def test_20_the_look_up_lags(play: Stage, looks: int | None) -> None:
    """Not to be seen is no proof: looked for again, found in the end or asked about; when sent again, refused there."""
    publication = await play.due()
    play.fault(Fault.RESET_AFTER, PUBLISH)
    play.fault(Fault.LAG, GALLERY, times=looks, seconds=86_400)
    await play.publish(publication)
    await play.out(publication)
    assert await play.seen(publication) == [1]
    assert await play.state(publication) == ("success" if looks else "unknown")
    if not looks:
        await not_published(play.database, OWNER, publication)  # a person who is wrong
        await ends(play, publication)


async def test_21_cancel_edit_and_delete_during_the_send(play: Stage) -> None:
    """All are refused once the intent is made, and what goes out is what was frozen then."""
    publication = await play.due()
    post = await play.column("post_id", publication)
    play.fault(Fault.LATENCY, PUBLISH, seconds=0.3)
    working = asyncio.create_task(play.publish(publication))
    await until(lambda: phase(play, publication, "publishing"))
    for act in (
        cancel(play.database, OWNER, post),
        delete(play.database, OWNER, post),
        edit(play.database, OWNER, post, {"title": "Another"}),
    ):
        with pytest.raises(Problem, match=r"on its way|has left|just leaving"):
            await act
    await working
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    same = "SELECT request_sha256 = snapshot_sha256 FROM attempt JOIN publication ON id = publication_id WHERE id = $1"
    assert await play.read(same, publication)


@pytest_asyncio.fixture(loop_scope="module")
async def today(database_url: str, home: Path) -> AsyncIterator[Stage]:
    """Give a stage at which no time has passed yet: tokens end by the clock of the platform."""
    async with stage(database_url, home) as made:
        yield made


async def test_22_two_refreshes_of_a_token_that_works_once(today: Stage) -> None:
    """A publication and twenty others want a fresh token at the same time: one asks for it, all get it."""
    play = today
    account = await play.account(label="refreshing")
    publication = await play.due(account)
    before = len(play.box.log.entries("token"))
    play.box.sites[DEVIANTART].spoil("refreshing", "access")
    calls = [signed_in(play.database, play.desk.vault, play.desk.wire, account, refused=1) for _ in range(20)]
    await asyncio.gather(play.publish(publication), *calls)
    assert len(play.box.log.entries("token")) == before + 1
    await ends(play, publication)


async def test_22_crash_after_the_rotation(today: Stage) -> None:
    """The new token died with its reader: the account says so, the publication keeps its time and goes out later."""
    play = today
    account = await play.account(label="burning")
    publication = await play.due(account)
    due = await play.column("due_at", publication)
    play.box.sites[DEVIANTART].spoil("burning", "access")
    async with mortal_worker(play) as worker:
        await worker.do("publish", publication, "after refresh the access token")
    await play.pass_time(2 * MINUTE)
    await play.expire()
    await play.publish(publication)
    status, trouble = await play.read("SELECT ARRAY[status, trouble] FROM account WHERE id = $1", account)
    assert status == "reconnect"
    assert "connect the account anew" in trouble
    assert (await play.state(publication), await play.column("due_at", publication)) == ("pending", due)
    await play.publish(publication)
    fresh = DeviantArtLogin.model_validate_json(play.box.login(DEVIANTART, "burning"))
    await signs_in(play, account, fresh)
    await ends(play, publication)


async def test_23_the_key_has_expired(play: Stage) -> None:
    """A platform that remembers a key for a minute is one without after that: not sent again, a person is asked."""
    publication = await play.due(on=WEBHOOK)
    with patch.object(Webhook, "once", token_for(MINUTE)):
        play.fault(Fault.RESET_BEFORE, "*")
        await play.publish(publication)
        await ends(play, publication, "unknown", 0)
        assert (await play.lines(publication))[-1] == "asks"
    with patch.object(Webhook, "once", token_for(HOUR)):
        publication = await play.due(on=WEBHOOK)
        play.fault(Fault.RESET_AFTER, "*")
        await play.publish(publication)
        await ends(play, publication)


async def test_24_the_wall_clock_jumps(play: Stage) -> None:
    """A day ahead while a request is on its way, then back: taken back too early, yet out once and never early."""
    keyed, looked = await play.due(on=WEBHOOK), await play.due()
    for publication, path in ((keyed, "*"), (looked, PUBLISH)):
        play.fault(Fault.LATENCY, path, seconds=0.4)
        working = asyncio.create_task(play.publish(publication))
        await until(partial(phase, play, publication, "publishing"))
        await play.pass_time(24 * HOUR)
        await play.expire()
        assert await play.state(publication) == "unknown"
        await play.pass_time(-24 * HOUR)
        await working
        assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    post = await play.post()
    at = await play.read("SELECT imprint_now() + interval '2 hours'")
    early = (await publish_now(play.database, OWNER, post, accounts=[await play.account()]))[0].id
    await play.read("UPDATE publication SET scheduled_at = $2, due_at = $2 WHERE id = $1", early, at)
    await play.pass_time(-24 * HOUR)
    await play.publish(early)
    assert (await play.state(early), await play.seen(early)) == ("pending", [0])
    await play.pass_time(24 * HOUR)
    await ends(play, early)


async def test_25_a_backup_is_restored(play: Stage, empty_url: str, home: Path) -> None:
    """What the copy has forgotten is not sent again: all is held until a person has looked, then it is found out."""
    marked = play.at.settings.home
    async with play.database.connection() as connection:
        await incarnation.check(connection, marked, embedded=False)
    out, keyed, never = await play.due(), await play.due(on=WEBHOOK), await play.due()
    await back_up(play.database.url, home / "backup")
    await play.publish(out)
    await play.publish(keyed)
    await restore_into(empty_url, home / "backup")
    async with open_database(empty_url) as database:
        copy = Stage(replace(play.at, database=database), play.box, replace(play.desk, database=database))
        copy.offset = play.offset
        await copy.pass_time(timedelta(0))
        async with database.connection() as connection:
            assert (await incarnation.check(connection, marked, embedded=False)).held_why
        before = len(play.box.log)
        for publication in (out, keyed, never):
            await copy.publish(publication)
        assert len(play.box.log) == before
        async with database.connection() as connection:
            await incarnation.accept(connection, marked)
        await ends(copy, out)
        await ends(copy, keyed)
        await ends(copy, never, "unknown", 0)


async def test_26_a_post_that_kills_its_workers(play: Stage, worker: Mortal) -> None:
    """The third time it is set aside, and says so; nothing is out. A person can try it again."""
    publication = await play.due()
    for crashes in (1, 2, 3):
        await worker.do("publish", publication, f"before {SUBMITTING}")
        await play.wait_for("SELECT lease_until FROM publication WHERE id = $1", publication)
        await play.expire()
        assert await play.column("crashes", publication) == crashes
    assert (await play.state(publication), await play.column("error_code", publication)) == ("failed", "quarantined")
    assert await play.lines(publication) == ["recovered", "recovered", "failed"]
    await retry(play.database, OWNER, await play.column("post_id", publication))
    await ends(play, publication)


@pytest.mark.parametrize(
    ("policy", "late", "code"),
    [
        ("publish", 2 * HOUR, None),
        ("publish", 25 * HOUR, "late.ask"),
        ("skip", 2 * HOUR, "late.skipped"),
        ("ask", 2 * HOUR, "late.ask"),
        ("skip", 10 * MINUTE, None),
    ],
)
async def test_27_a_long_time_of_nobody_there(play: Stage, policy: str, late: timedelta, code: str | None) -> None:
    """What was due meanwhile goes out, is skipped or is asked about, as its post says; a little late is on time."""
    publication = await play.due(latePolicy=policy)
    await play.pass_time(late)
    await play.publish(publication)
    assert await play.column("error_code", publication) == code
    assert (await play.state(publication), await play.seen(publication)) == (
        ("failed", [0]) if code else ("success", [1])
    )
