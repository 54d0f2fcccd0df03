"""Resolving: a person decides about what nobody else can tell, once, and only that."""

import asyncio
from uuid import UUID, uuid4

import pytest

from imprint.engine.queue import Job
from imprint.problem import Busy, Problem
from imprint.sandbox.faults import Fault
from imprint.work.reconcile import Reconciler
from imprint.work.resolve import Said, find, not_published, published
from tests.waiting import until
from tests.work.posts import OWNER
from tests.work.stage import GALLERY, Stage

URL = "https://gallery.example/art/1"


async def unknown(play: Stage, fault: Fault = Fault.RESET_BEFORE) -> UUID:
    """Let an answer get lost, and time pass until the sender must be done."""
    publication = await play.due()
    play.fault(fault)
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    await play.wait_for("SELECT deadline FROM publication WHERE id = $1", publication)
    return publication


async def last(play: Stage, publication: UUID) -> tuple[str, str, str]:
    """Give the last line of the audit: the move, who and why."""
    async with play.database.connection() as connection:
        found = await connection.fetchrow(
            "SELECT move, actor, reason FROM audit WHERE row_id = $1 ORDER BY id DESC LIMIT 1", publication
        )
    assert found
    return found[0], found[1], found[2]


async def test_said_to_be_out(play: Stage) -> None:
    """It is a success with that address, the person stands in the audit and in the log, and nothing is sent."""
    publication = await unknown(play)
    assert await published(play.database, OWNER, publication, f" {URL} ") is Said.OUT
    assert await play.state(publication) == "success"
    assert await play.read("SELECT url FROM publication WHERE id = $1", publication) == URL
    assert await play.read("SELECT remote_id FROM publication WHERE id = $1", publication) == URL
    assert await last(play, publication) == ("find", OWNER, f"said to be out: {URL}")
    assert (await play.lines(publication))[-1] == "said_out"
    await play.out(publication)
    assert play.effects() == []


async def test_said_not_to_be_out(play: Stage) -> None:
    """It is sent again at once, with all attempts before it, and is out once."""
    publication = await unknown(play)
    assert await not_published(play.database, OWNER, publication) is Said.SENT_AGAIN
    assert await play.state(publication) == "pending"
    assert await play.read("SELECT attempts FROM publication WHERE id = $1", publication) == 0
    assert await last(play, publication) == ("resend", OWNER, "said not to be out")
    await play.publish(publication)
    assert await play.state(publication) == "success"
    assert len(play.effects()) == 1


async def test_said_not_to_be_out_and_dropped(play: Stage) -> None:
    """It has failed, with a code that says who decided; the post can be changed again."""
    publication = await unknown(play)
    assert await not_published(play.database, OWNER, publication, drop=True) is Said.DROPPED
    assert await play.state(publication) == "failed"
    assert await play.read("SELECT error_code FROM publication WHERE id = $1", publication) == "said_not_out"
    assert await last(play, publication) == ("give_up", OWNER, "said not to be out, and not wanted")
    assert (await play.lines(publication))[-1] == "dropped"
    assert play.effects() == []


@pytest.mark.parametrize("state", ["pending", "success", "failed"])
async def test_only_what_is_unknown(play: Stage, state: str) -> None:
    """What is known is no matter of opinion; nothing changes."""
    publication = await play.due()
    if state == "failed":
        play.fault(Fault.REFUSE, code=4)
    if state != "pending":
        await play.publish(publication)
    assert await play.state(publication) == state
    for said in (published(play.database, OWNER, publication, URL), not_published(play.database, OWNER, publication)):
        with pytest.raises(Problem) as refused:
            await said
        assert refused.value.code == "publication.not_unknown"
    assert await play.state(publication) == state


async def test_only_its_owner(play: Stage) -> None:
    """For everybody else it is not there."""
    publication = await unknown(play)
    for said in (
        published(play.database, "eve", publication, URL),
        not_published(play.database, "eve", publication),
        published(play.database, OWNER, uuid4(), URL),
    ):
        with pytest.raises(Problem) as refused:
            await said
        assert refused.value.code == "publication.missing"
    assert await play.state(publication) == "unknown"


@pytest.mark.parametrize(
    "url",
    ["", "gallery", "gallery.example/1", "ftp://gallery.example/1", "javascript:alert(1)", "https://", "https:///art",
     "https://[::1/art", "https://a.example/one two", "https://a.example/\n", "https://me:secret@a.example/1",
     "https://a.example/" + "x" * 5000],
)  # fmt: skip
async def test_an_address_that_is_none(play: Stage, url: str) -> None:
    """Only what a browser could open is taken; before anything is looked at."""
    with pytest.raises(Problem) as refused:
        await published(play.database, OWNER, uuid4(), url + "\x01" if url.endswith("\n") else url)
    assert refused.value.code == "resolve.bad_url"


async def test_two_people_at_once(play: Stage) -> None:
    """One wins; the other is told that it is known now."""
    publication = await unknown(play)
    outcomes = await asyncio.gather(
        published(play.database, OWNER, publication, URL),
        not_published(play.database, OWNER, publication),
        published(play.database, OWNER, publication, URL + "0"),
        return_exceptions=True,
    )
    assert sorted(isinstance(each, Said) for each in outcomes) == [False, False, True]
    assert {each.code for each in outcomes if isinstance(each, Problem)} == {"publication.not_unknown"}
    assert await play.read("SELECT count(*) FROM audit WHERE row_id = $1 AND source = 'unknown'", publication) == 1


async def test_not_while_its_sender_may_be_at_it(play: Stage) -> None:
    """Before the deadline of the send nobody can know that it is not out; that it is out can be said."""
    publication = await play.due()
    play.fault(Fault.RESET_BEFORE)
    await play.publish(publication)
    with pytest.raises(Busy) as refused:
        await not_published(play.database, OWNER, publication)
    assert refused.value.code == "publication.leaving"
    await published(play.database, OWNER, publication, URL)
    assert await play.state(publication) == "success"


async def test_a_look_that_is_under_way_is_waited_for(play: Stage) -> None:
    """It is out, a look is about to find it, and a person says it is not: the look wins, and nothing goes out twice."""
    publication = await unknown(play, Fault.RESET_AFTER)
    await play.wait_for("SELECT look_at FROM publication WHERE id = $1", publication)
    play.fault(Fault.LATENCY, GALLERY, seconds=0.5)
    look = asyncio.create_task(Reconciler(play.desk).reconcile(Job("reconcile", str(publication))))
    await until(lambda: play.read("SELECT held_why = 'look' FROM publication WHERE id = $1", publication))
    with pytest.raises(Busy) as refused:
        await not_published(play.database, OWNER, publication)
    assert refused.value.code == "publication.looked_for"
    await look
    assert await play.state(publication) == "success"
    assert len(play.effects()) == 1


async def test_a_person_is_faster_than_a_look(play: Stage) -> None:
    """Said to be out while somebody looks: the look comes too late and changes nothing."""
    publication = await unknown(play, Fault.RESET_AFTER)
    await play.wait_for("SELECT look_at FROM publication WHERE id = $1", publication)
    play.fault(Fault.LATENCY, GALLERY, seconds=0.5)
    look = asyncio.create_task(Reconciler(play.desk).reconcile(Job("reconcile", str(publication))))
    await until(lambda: play.read("SELECT held_why = 'look' FROM publication WHERE id = $1", publication))
    await published(play.database, OWNER, publication, URL)
    await look
    assert await play.read("SELECT url FROM publication WHERE id = $1", publication) == URL
    assert (await play.lines(publication))[-1] == "said_out"


async def test_found_by_letters_or_by_its_post(play: Stage) -> None:
    """The id of the publication, its first letters, or its post's; nobody else's, and nothing that is none."""
    publication = await unknown(play)
    post: UUID = await play.read("SELECT post_id FROM publication WHERE id = $1", publication)
    async with play.database.connection() as connection:
        for text in (str(publication), str(publication)[:8].upper(), str(post)[:8]):
            assert await find(connection, OWNER, text) == publication
        for text in ("abc", "lighthouse", str(uuid4()), ""):
            with pytest.raises(Problem) as refused:
                await find(connection, OWNER, text)
            assert refused.value.code == "publication.missing"
        with pytest.raises(Problem):
            await find(connection, "eve", str(publication))
