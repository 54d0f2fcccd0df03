"""Every point at which a publication can break, by its number in the reliability page, each by a fault that is real.

Whether something is out, and how often, is never asked of our own database: the sandbox's log and the folders tell.
"""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio

from imprint.engine.queue import Job
from imprint.sandbox.faults import Fault
from imprint.work.attach import attach
from imprint.work.post import create, ready
from imprint.work.publish import Publisher
from imprint.work.schedule import publish_now
from imprint.work.sign_in import signed_in
from tests.images.pictures import noise
from tests.waiting import until
from tests.work.mortal import Mortal
from tests.work.points import (
    CLAIM,
    POSTING,
    SENDING,
    asks,
    behind,
    ends,
    signs_in,
)
from tests.work.posts import OWNER
from tests.work.stage import DEVIANTART, FOLDER, PUBLISH, UPLOAD, WEBHOOK, Stage

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


def taken(play: Stage, sha256: str | None = None) -> int:
    """Count the files that the sandbox has taken, or how often one of them."""
    return sum(sha256 in (None, each.data["sha256"]) for each in play.box.log.entries("upload"))


# Before anything has left


async def test_01_crash_before_the_claim(play: Stage, worker: Mortal) -> None:
    """It is still due, as if nobody had looked at it; the next one takes it."""
    publication = await play.due()
    for step in (f"before {CLAIM}", f"commit {CLAIM}"):
        await worker.do("publish", publication, step)
        assert (await play.state(publication), await play.column("fence", publication)) == ("pending", 0)
    await play.publish(publication)
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])


async def test_02_crash_after_the_claim(play: Stage, worker: Mortal) -> None:
    """Nobody else can take it until the lease ends; then the fence is the next one."""
    publication = await play.due()
    await worker.do("publish", publication, f"after {CLAIM}")
    await play.expire()
    await play.publish(publication)
    assert (await play.state(publication), await play.column("fence", publication)) == ("running", 1)
    await ends(play, publication)
    assert await play.column("fence", publication) > 1
    assert (await play.lines(publication))[0] == "recovered"


async def test_03_crash_in_the_middle_of_an_upload(play: Stage, worker: Mortal) -> None:
    """Half a file is no file: it is uploaded whole by the next one, and published once."""
    post = await create(play.database, OWNER, {"title": "A large one"})
    await attach(play.database, OWNER, post, await play.at.uploaded(noise(400, 300).pngsave_buffer()))
    await ready(play.database, OWNER, post)
    publication = (await publish_now(play.database, OWNER, post, accounts=[await play.account()]))[0].id
    before = taken(play)
    await worker.do("publish", publication, "left")
    assert taken(play) == before
    await ends(play, publication)
    assert taken(play) == before + 1


async def test_04_uploaded_but_the_id_not_stored(play: Stage, worker: Mortal) -> None:
    """The platform has it twice, where nobody sees it; it is published once."""
    publication, before = await play.due(), taken(play)
    await worker.do("publish", publication, "before publish_uploaded")
    await ends(play, publication)
    assert taken(play) == before + 2


async def test_04_uploaded_and_the_id_stored(play: Stage, worker: Mortal) -> None:
    """Nothing is uploaded again: of one file, or of the first of two."""
    one, before = await play.due(), taken(play)
    two = await play.due(on=FOLDER, files=2)
    await worker.do("publish", one, "after publish_uploaded")
    await worker.do("publish", two, "after publish_uploaded")
    await ends(play, one)
    await ends(play, two)
    assert taken(play) == before + 1
    assert (await play.lines(two)).count("uploaded") == 2


async def test_05_the_upload_s_answer_cannot_be_read(play: Stage) -> None:
    """A 200 with nothing in it says nothing: it is uploaded again, and published once."""
    publication, before = await play.due(), taken(play)
    play.fault(Fault.BLANK, UPLOAD)
    await play.publish(publication)
    assert await play.state(publication) == "pending"
    await ends(play, publication)
    assert taken(play) == before + 2


async def test_06_crash_before_the_intent(play: Stage, worker: Mortal) -> None:
    """It is safe to take it up again, and nobody has to look."""
    publication, before = await play.due(), taken(play)
    await worker.do("publish", publication, "before publish_intend")
    await ends(play, publication)
    assert (taken(play), await play.column("left_at", publication)) == (before + 1, None)


# The intent


async def test_07_the_answer_to_the_intent_is_lost(play: Stage, home: Path) -> None:
    """It is read back, and since it stands the request leaves, once."""
    publication = await play.due()
    async with behind(play, home) as (way, desk):
        way.lose_answer_to("SET phase = 'publishing'")
        await Publisher(desk).publish(Job("publish", str(publication)))
        assert way.lost == 1
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert await play.column("fence", publication) == 1


async def test_07_an_intent_that_cannot_be_read_back(play: Stage, home: Path) -> None:
    """Unconfirmed, nothing is sent; but the intent stands, so it is looked for and then a person is asked."""
    publication = await play.due()
    async with behind(play, home) as (way, desk):
        short = desk.settings.model_copy(update={"lease_seconds": 1})
        way.lose_answer_to("SET phase = 'publishing'", for_good=True)
        publisher = Publisher(replace(desk, settings=short))
        await asyncio.wait_for(publisher.publish(Job("publish", str(publication))), 20)
    assert (await play.state(publication), await play.seen(publication)) == ("running", [0])
    await asks(play, publication)


async def test_08_crash_after_the_intent_before_the_send(play: Stage, worker: Mortal) -> None:
    """Nobody can tell this from 9. With our key it is sent again; without, three looks and a person decide."""
    looked, keyed = await play.due(), await play.due(on=WEBHOOK)
    await worker.do("publish", looked, f"before {SENDING}")
    await worker.do("publish", keyed, f"before {POSTING}")
    await ends(play, keyed)
    await asks(play, looked)


async def test_09_sent_and_no_answer(play: Stage, worker: Mortal) -> None:
    """Killed when the bytes had left: a look finds it, or it is sent again with the same key. It is out once."""
    looked, keyed = await play.due(), await play.due(on=WEBHOOK)
    await worker.do("publish", looked, "left #2")
    await worker.do("publish", keyed, "left")
    await until(lambda: _all_seen(play, looked, keyed))
    await ends(play, looked)
    await ends(play, keyed)
    assert (await play.lines(looked))[-2:] == ["unknown", "found"]
    assert "resent" in await play.lines(keyed)


async def _all_seen(play: Stage, *publications: UUID) -> bool:
    return all(await play.seen(*publications))


# The send


async def test_10_nobody_answers_the_call(play: Stage) -> None:
    """A refused connection and a broken handshake prove that nothing was sent: tried again, never unknown."""
    account = await play.account()
    publication = await play.due(account)
    good = (await signed_in(play.database, play.desk.vault, play.desk.wire, account)).login
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/deviantart"
        for tries, base_url in enumerate((nowhere, play.box.base_url(DEVIANTART).replace("http:", "https:")), 1):
            await signs_in(play, account, good.model_copy(update={"base_url": base_url}))
            await play.wait_for("SELECT wake_at FROM publication WHERE id = $1", publication)
            await play.publish(publication)
            assert (await play.state(publication), await play.column("attempts", publication)) == ("pending", tries)
    await signs_in(play, account, good)
    await ends(play, publication)
    assert "unknown" not in await play.lines(publication)


async def test_11_a_connection_that_is_closed_after_one_answer(play: Stage) -> None:
    """Each request has a connection of its own, so none is ever sent on one that the other side has reset."""
    account = await play.account()
    publication = await play.due(account)
    port, opened = int(play.box.url.rpartition(":")[2]), 0

    async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        far_writer.write(await reader.read(2**20))
        writer.write(await far_reader.read(2**20))
        await writer.drain()
        if await reader.read(1):  # a second request on the same connection is met with a reset
            writer.transport.abort()
        far_writer.close()
        writer.close()

    server = await asyncio.start_server(through, "127.0.0.1", 0)
    login = (await signed_in(play.database, play.desk.vault, play.desk.wire, account)).login
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/deviantart"
    await signs_in(play, account, login.model_copy(update={"base_url": url}))
    await play.publish(publication)
    server.close()
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert (opened, await play.column("attempts", publication)) == (2, 0)


@pytest.mark.parametrize("applied", [True, False])
async def test_12_an_error_of_the_server(play: Stage, applied: bool) -> None:  # noqa: FBT001
    """A 500 says nothing: unknown. A look finds what is out; what is not to be seen is asked about, never resent."""
    publication = await play.due()
    play.fault(Fault.ERROR_AFTER if applied else Fault.ERROR_BEFORE, PUBLISH)
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    await (ends(play, publication) if applied else asks(play, publication))


async def test_13_too_many_requests(play: Stage) -> None:
    """It waits as long as it is asked to, uses no attempt, and goes out."""
    publication = await play.due()
    play.fault(Fault.RATE_LIMIT, PUBLISH, retry_after="90")
    await play.publish(publication)
    assert (await play.state(publication), await play.column("attempts", publication)) == ("pending", 0)
    assert await play.column("due_at - imprint_now() > interval '85 s'", publication)
    before = len(play.box.log)
    await play.publish(publication)
    assert len(play.box.log) == before
    await ends(play, publication)


async def test_14_the_token_is_refused_before_the_effect(play: Stage) -> None:
    """It is renewed once and sent once, in the same attempt."""
    publication, before = await play.due(), play.box.log.entries("token")
    play.fault(Fault.EXPIRED, PUBLISH)
    await play.publish(publication)
    assert (await play.state(publication), await play.seen(publication)) == ("success", [1])
    assert len(play.box.log.entries("token")) == len(before) + 1
    assert await play.column("fence", publication) == 1
