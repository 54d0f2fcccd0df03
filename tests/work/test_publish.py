"""Publishing, step by step, against a real sandbox: what goes out, what waits, what fails and what nobody can tell."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest
import pytest_asyncio

from imprint.platforms.deviantart import PUBLISH_CODES
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.sandbox.faults import Fault
from imprint.work.attach import attach
from imprint.work.post import create, ready
from imprint.work.record import replay
from imprint.work.resolve import not_published, published
from imprint.work.schedule import publish_now
from tests.images.pictures import noise
from tests.waiting import until
from tests.work.mortal import Mortal
from tests.work.posts import OWNER
from tests.work.stage import DEVIANTART, FOLDER, GALLERY, PUBLISH, UPLOAD, WEBHOOK, Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")


SAID = "before the platform said so"


@pytest_asyncio.fixture(loop_scope="module")
async def play(long_play: Stage) -> Stage:
    """Give the stage, without the faults and the circuits of the test before."""
    long_play.box.faults.clear()
    await long_play.read("DELETE FROM circuit")
    return long_play


async def ends(play: Stage, publication: UUID, state: str = "success", seen: int = 1) -> None:
    """Let workers do what is due; then it is in this state, and out so often."""
    await play.out(publication)
    assert (await play.state(publication), await play.seen(publication)) == (state, [seen])


async def login_of(play: Stage, account: UUID) -> DeviantArtLogin:
    """Open what an account signs in with."""
    async with play.database.connection() as connection:
        login = (await play.desk.vault.get(connection, account)).login
    assert isinstance(login, DeviantArtLogin)
    return login


async def sign_in(play: Stage, account: UUID, login: DeviantArtLogin) -> None:
    """Connect an account anew."""
    async with play.database.transaction(OWNER, "connected") as connection:
        await play.desk.vault.put(connection, account, login)
        await connection.execute(
            "UPDATE account SET status = 'connected', trouble = NULL, trouble_code = NULL WHERE id = $1", account
        )


# It goes out


@pytest.mark.parametrize("on", [DEVIANTART, WEBHOOK, FOLDER])
async def test_what_is_due_goes_out(play: Stage, on: str) -> None:
    """The publication is out with its id, its post is published, and doing the job again does nothing."""
    publication = await play.due(on=on)
    await play.publish(publication)
    await play.publish(publication)
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert await play.column("remote_id", publication)
    of = "SELECT p.status FROM post p JOIN publication u ON u.post_id = p.id WHERE u.id = $1"
    assert await play.read(of, publication) == "published"
    assert await play.read("SELECT outcome FROM attempt WHERE publication_id = $1", publication) == "published"
    moved = """SELECT array_agg(a.actor || coalesce(a.reason, '') ORDER BY a.id) FROM audit a JOIN publication u
        ON a.row_id = u.post_id WHERE u.id = $1 AND a.target IN ('uploading', 'publishing', 'published')"""
    said = await play.read(moved, publication)
    assert len(said) == 3
    assert not [each for each in said if each.startswith("database user")]


async def test_a_lost_answer_is_found(play: Stage) -> None:
    """The answer is cut off after it was published: unknown, then a look finds it; it is out once."""
    publication = await play.due()
    play.fault(Fault.RESET_AFTER)
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    await ends(play, publication)
    assert await play.lines(publication) == ["uploaded", "unknown", "found"]


@pytest.mark.parametrize("files", [1, 2])
async def test_what_is_uploaded_is_not_uploaded_again(play: Stage, files: int) -> None:
    """The second try goes on where the first one stopped, with one file or with two."""
    on = DEVIANTART if files == 1 else WEBHOOK
    publication, before = await play.due(on=on, files=files), play.uploads()
    play.fault(Fault.RATE_LIMIT, PUBLISH if on == DEVIANTART else "*")
    await play.publish(publication)
    assert await play.state(publication) == "pending"
    await ends(play, publication)
    assert (await play.lines(publication)).count("uploaded") == files
    assert play.uploads() - before == (1 if on == DEVIANTART else 0)


async def test_what_is_too_large_goes_out_as_a_rendition(play: Stage) -> None:
    """A file that the account may not upload is made to fit, uploaded once, and published once."""
    account = await play.account()
    await sign_in(play, account, (await login_of(play, account)).model_copy(update={"most_bytes": 60_000}))
    post = await create(play.database, OWNER, {"title": "Larger than allowed"})
    await attach(play.database, OWNER, post, await play.at.uploaded(noise(400, 300).pngsave_buffer()))
    await ready(play.database, OWNER, post)
    publication = (await publish_now(play.database, OWNER, post, accounts=[account]))[0].id
    before = play.uploads()
    play.fault(Fault.RATE_LIMIT)
    await play.publish(publication)
    await ends(play, publication)
    (taken,) = play.box.log.entries("upload")[before:]
    assert isinstance(taken.data["size"], int)
    assert 0 < taken.data["size"] <= 60_000


# It is refused


@pytest.mark.parametrize("code", [*PUBLISH_CODES, 9, 99])
async def test_every_code_of_deviantart(play: Stage, code: int) -> None:
    """Each known code is a failure of that name; 9 says that it is out; one nobody knows is a refusal all the same."""
    publication = await play.due()
    play.fault(Fault.REFUSE, code=code)
    await play.publish(publication)
    if code == 9:
        assert await play.state(publication) == "success"
        return
    name = PUBLISH_CODES[code][0] if code in PUBLISH_CODES else "invalid_request"
    assert await play.state(publication) == "failed"
    assert await play.column("error_code", publication) == f"deviantart.{name}"
    assert (await play.lines(publication))[-1] == "failed"
    assert await play.seen(publication) == [0]


async def test_a_second_publish_is_refused_there_and_counts_as_out(play: Stage) -> None:
    """Sent again after a person was wrong: DeviantArt says already published (9), and that is a success."""
    publication = await play.due()
    play.fault(Fault.RESET_AFTER)
    play.fault(Fault.LAG, GALLERY, times=None, seconds=86_400)
    await play.publish(publication)
    await ends(play, publication, "unknown")
    await not_published(play.database, OWNER, publication)
    await ends(play, publication)
    assert (await play.column("remote_id", publication)).startswith("item:")


async def test_what_the_platform_would_not_take_is_not_sent(play: Stage) -> None:
    """A mature work without its level and one that lost its bytes fail at home; nothing is published."""
    mature, lost, account = await play.due(isMature=True), await play.due(), await play.account()
    await sign_in(play, account, (await login_of(play, account)).model_copy(update={"most_bytes": 10}))
    large = await play.due(account)
    for each in play.at.files():
        each.unlink()
    before = len(play.effects())
    for publication, code in ((mature, "fit.mature_level"), (lost, "file.missing"), (large, "file.missing")):
        await play.publish(publication)
        assert (await play.state(publication), await play.column("error_code", publication)) == ("failed", code)
    assert len(play.effects()) == before


# It waits


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        (None, 0, 3600),
        ("-5", 0, 3600),
        ("0", 0, 3600),
        ("junk; DROP TABLE", 0, 3600),
        ("1e9", 0, 3600),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 0, 3600),
        ("120", 120, 3600),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_000, 86_400),
        ("99999999999999999999999999", 86_000, 86_400),
    ],
)
async def test_a_hostile_retry_after(play: Stage, said: str | None, least: int, most: int) -> None:
    """It waits as long as it is asked to, a day at most; not a call is made before, no attempt is used."""
    publication = await play.due()
    play.fault(Fault.RATE_LIMIT, retry_after=said)
    await play.publish(publication)
    waits = await play.column("extract(epoch FROM due_at - imprint_now())::float8", publication)
    assert least - 5 <= waits <= most
    calls = len(play.box.log.entries("request"))
    for moment in (timedelta(0), timedelta(seconds=max(waits - 2, 0))):
        await play.pass_time(moment)
        await play.publish(publication)
        assert len(play.box.log.entries("request")) == calls
    await ends(play, publication)
    assert await play.column("attempts", publication) == 0


async def test_a_storm_of_rate_limits(play: Stage) -> None:
    """Refusal after refusal with hostile wishes: everything is delivered, once, and no attempt is used."""
    publications = [await play.due(on=on) for on in [DEVIANTART, WEBHOOK] * 2]
    for said in ("-1", "junk", None, "3600", "99999999999", "Mon, 01 Jan 1990 00:00:00 GMT") * 3:
        play.fault(Fault.RATE_LIMIT, path="*", retry_after=said, chance=0.7)
    await play.all_out(publications, steps=400)
    assert {await play.state(each) for each in publications} == {"success"}
    assert set(await play.seen(*publications)) == {1}
    assert {await play.column("attempts", each) for each in publications} == {0}


async def test_the_load_balancer_s_403_is_a_rate_limit(play: Stage) -> None:
    """An empty page with 403 means fewer calls, not a lost sign-in."""
    publication = await play.due()
    play.fault(Fault.FORBIDDEN)
    await play.publish(publication)
    assert (await play.state(publication), await play.column("attempts", publication)) == ("pending", 0)
    await ends(play, publication)


async def test_a_burnt_refresh_token_holds_the_account(play: Stage) -> None:
    """The account wants its person, what waits for it keeps its time, and goes out when it is connected again."""
    account = await play.account(label="burnt")
    first, second = await play.due(account), await play.due(account)
    due = [await play.column("due_at", each) for each in (first, second)]
    for token in ("access", "refresh"):
        play.box.sites[DEVIANTART].spoil("burnt", token)
    await play.publish(first)
    await play.publish(second)
    assert await play.read("SELECT status FROM account WHERE id = $1", account) == "reconnect"
    assert [await play.column("due_at", each) for each in (first, second)] == due
    assert {await play.state(first), await play.state(second)} == {"pending"}
    assert any("deviantart wants a new sign-in" in line for line in await said(play, first))
    assert await play.column("held_until = 'infinity'", first)
    await sign_in(play, account, DeviantArtLogin.model_validate_json(play.box.login(DEVIANTART, "burnt")))
    assert await play.column("held_until", first) is None
    await ends(play, first)
    await ends(play, second)


async def said(play: Stage, publication: UUID) -> list[str]:
    """Give the lines of a publication's log."""
    async with play.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT line FROM publication_log WHERE publication_id = $1 ORDER BY id", publication
        )
    return [row[0] for row in rows]


async def test_seven_attempts_and_no_more(play: Stage) -> None:
    """What never works is given up after the seventh attempt, and says so; the waits of a circuit use none."""
    account = await play.account()
    await sign_in(play, account, (await login_of(play, account)).model_copy(update={"base_url": "http://127.0.0.1:9"}))
    publication = await play.due(account)
    await ends(play, publication, "failed", 0)
    assert await play.column("error_code", publication) == "exhausted"
    assert "All 7 attempts are used up." in (await said(play, publication))[-1]
    outcomes = "SELECT array_agg(DISTINCT outcome) FROM attempt WHERE publication_id = $1"
    assert await play.read(outcomes, publication) == ["not_yet"]
    assert await play.read("SELECT count(*) FROM attempt WHERE publication_id = $1", publication) == 7


@pytest.mark.parametrize(("fault", "times"), [(Fault.RATE_LIMIT, 3), (Fault.ERROR_BEFORE, 5)])
async def test_a_circuit_opens_and_a_probe_closes_it(play: Stage, fault: Fault, times: int) -> None:
    """After so many in a row nobody calls for five minutes; then one does, and when it works all may again."""
    publications = [await play.due() for _ in range(times + 2)]
    play.fault(fault, UPLOAD, times=times)
    for publication in publications[:times]:
        assert not await play.read("SELECT count(*) FROM circuit WHERE open_until > imprint_now() + interval '4 min'")
        await play.publish(publication)
    calls, last = len(play.box.log.entries("request")), publications[-2:]
    for publication in last:
        await play.publish(publication)
        assert await play.column("held_why", publication) == "circuit"
    assert len(play.box.log.entries("request")) == calls
    await play.wait_for("SELECT wake_at FROM publication WHERE id = $1", last[0])
    play.fault(Fault.LATENCY, UPLOAD, seconds=0.2)
    await asyncio.gather(*map(play.publish, last))
    assert sorted([await play.state(each) for each in last]) == ["pending", "success"]  # one had the probe
    assert not await play.read("SELECT count(*) FROM circuit WHERE key LIKE 'host:%'")
    await play.all_out(publications)
    assert set(await play.seen(*publications)) == {1}


# It looks like another one


async def twins(play: Stage, *faults: Fault) -> list[UUID]:
    """Publish posts of one title on one account, each with an answer that says nothing."""
    account = await play.account()
    publications = [await play.due(account, title="Untitled") for _ in faults]
    for publication, fault in zip(publications, faults, strict=True):
        play.fault(fault)
        await play.wait_for("SELECT next_at FROM pace WHERE key = 'account:' || $1::uuid", account)
        await play.publish(publication)
        assert await play.state(publication) == "unknown"
    return publications


async def test_two_of_one_title_and_one_of_them_is_out(play: Stage) -> None:
    """What is found may be either: neither is called out by guessing, or the other would be lost; a person is asked."""
    publications = await twins(play, Fault.ERROR_BEFORE, Fault.ERROR_AFTER)
    await play.all_out(publications)
    assert [await play.state(each) for each in publications] == ["unknown", "unknown"]
    lost, out = publications
    url = str(play.box.log.effects()[-1].data["url"])
    await published(play.database, OWNER, out, url)
    await not_published(play.database, OWNER, lost)
    before = len(play.effects())
    await play.out(lost)
    assert [await play.state(each) for each in publications] == ["success", "success"]
    assert len(play.effects()) == before + 1


async def test_two_of_one_title_and_both_are_out(play: Stage) -> None:
    """As many are found as there can be: all are out, each is itself, and nobody has to be asked."""
    publications = await twins(play, Fault.ERROR_AFTER, Fault.ERROR_AFTER)
    for publication in publications:
        await play.out(publication)
    assert [await play.state(each) for each in publications] == ["success", "success"]
    assert len({await play.column("remote_id", each) for each in publications}) == 2


# It is stopped


async def stopped(play: Stage, publication: UUID, path: str) -> None:
    """Tell a worker to stop while it waits for the answer to a call."""
    play.fault(Fault.LATENCY, path, seconds=5)
    calls = len(play.box.log)
    working = asyncio.create_task(play.publish(publication))

    async def called() -> bool:
        return any(path.strip("*") in str(each.data["path"]) for each in play.box.log.entries("request", after=calls))

    await until(called)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert working.cancelled()


async def test_stopped_before_the_intent(play: Stage) -> None:
    """What has not left is given back at once and uses no attempt; the next worker goes on."""
    publication = await play.due()
    await stopped(play, publication, UPLOAD)
    assert (await play.state(publication), await play.column("attempts", publication)) == ("pending", 0)
    await ends(play, publication)


async def test_stopped_after_the_intent(play: Stage) -> None:
    """Of what may have left only the platform knows: unknown at once, then found or asked about."""
    publication = await play.due()
    await stopped(play, publication, PUBLISH)
    assert (await play.state(publication), await play.seen(publication)) == ("unknown", [0])
    await ends(play, publication, "unknown", 0)
    assert (await play.lines(publication))[-1] == "asks"


async def test_stopped_while_it_records(play: Stage) -> None:
    """An answer that was read is not lost: it is in the journal, and whoever starts next records it."""
    publication = await play.due()
    async with play.database.transaction("somebody", "holds it") as connection:
        play.fault(Fault.LATENCY, PUBLISH, seconds=0.2)
        working = asyncio.create_task(play.publish(publication))
        await until(lambda: intended(play, publication))
        await connection.execute("SELECT FROM publication WHERE id = $1 FOR UPDATE", publication)
        await until(lambda: waits(play))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert await play.state(publication) == "running"
    assert await replay(play.desk) == 1
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])


async def intended(play: Stage, publication: UUID) -> bool:
    """Say whether an intent stands."""
    return bool(await play.column("intent_at IS NOT NULL", publication))


async def waits(play: Stage) -> bool:
    """Say whether somebody waits for a lock to record something."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    return bool(await play.read(waiting))


# Evidence


async def test_evidence_for_what_is_to_be_sent_again(play: Stage, long_worker: Mortal) -> None:
    """A person said too early that it is not out; the answer comes before the second send: there is none."""
    publication = await play.due()
    play.fault(Fault.LAG, GALLERY, times=3, seconds=86_400)
    async with long_worker.asleep("publish", publication, SAID):
        await ends(play, publication, "unknown")
        await not_published(play.database, OWNER, publication)
    assert (await play.state(publication), (await play.lines(publication))[-1]) == ("pending", "late")
    calls = len(play.box.log.entries("request"))
    await ends(play, publication)
    assert len(play.box.log.entries("request")) == calls


async def test_evidence_for_what_was_dropped(play: Stage, long_worker: Mortal) -> None:
    """A person dropped it as not out; the answer comes late: it is out, and says so."""
    publication = await play.due()
    play.fault(Fault.LAG, GALLERY, times=3, seconds=86_400)
    async with long_worker.asleep("publish", publication, SAID):
        await ends(play, publication, "unknown")
        await not_published(play.database, OWNER, publication, drop=True)
        assert await play.state(publication) == "failed"
    await ends(play, publication)


async def test_a_second_success_raises_an_alarm(play: Stage, long_worker: Mortal) -> None:
    """A person was wrong, and the platform took it twice: when the first answer comes, it says so loudly."""
    publication = await play.due()
    play.fault(Fault.LAG, GALLERY, times=3, seconds=86_400)
    play.box.sites[DEVIANTART].on["refuses_second_publish"] = False
    try:
        async with long_worker.asleep("publish", publication, SAID):
            await ends(play, publication, "unknown")
            await not_published(play.database, OWNER, publication)
            await ends(play, publication, seen=2)
    finally:
        play.box.sites[DEVIANTART].on["refuses_second_publish"] = True
    assert (await play.lines(publication))[-1] == "duplicate"
