"""The six cases of seed 001, which had locks and a version where Imprint has leases and a fence; and its load test."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest
import pytest_asyncio

from imprint.sandbox.faults import Fault
from imprint.work.claim import claim
from tests.waiting import until
from tests.work.mortal import Mortal
from tests.work.stage import PUBLISH, UPLOAD, Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLAIMERS, ACCOUNTS, EACH = 50, 100, 10


@pytest_asyncio.fixture(loop_scope="module")
async def play(long_play: Stage) -> Stage:
    """Give the stage, without the faults and the circuits of the test before."""
    long_play.box.faults.clear()
    await long_play.read("DELETE FROM circuit")
    return long_play


async def test_single_worker_acquires_lock_successfully(play: Stage) -> None:
    """One who claims what is due has the lease, until a moment of the database's clock."""
    publication = await play.due()
    taken = await claim(play.desk, publication)
    assert taken is not None
    assert (await play.state(publication), await play.column("phase", publication)) == ("running", "uploading")
    assert await play.column("lease_until - imprint_now() BETWEEN interval '50 s' AND interval '60 s'", publication)


async def test_second_worker_skips_locked_publication(play: Stage) -> None:
    """While one is at it the others find nothing to do, and not a call is made for them."""
    publication = await play.due()
    play.fault(Fault.LATENCY, UPLOAD, seconds=0.3)
    first = asyncio.create_task(play.publish(publication))

    async def running() -> bool:
        return await play.state(publication) == "running"

    await until(running)
    assert await claim(play.desk, publication) is None
    await asyncio.gather(*[play.publish(publication) for _ in range(10)])
    await first
    assert (await play.seen(publication), await play.column("fence", publication)) == ([1], 1)
    assert await play.read("SELECT count(*) FROM attempt WHERE publication_id = $1", publication) == 1


async def test_lock_released_after_successful_publish(play: Stage) -> None:
    """It has no lease any more, and its account is free for the next one."""
    account = await play.account()
    first, second = await play.due(account), await play.due(account)
    for publication in (first, second):
        await play.out(publication)
        assert (await play.state(publication), await play.column("lease_until", publication)) == ("success", None)
    assert await play.seen(first, second) == [1, 1]


async def test_lock_released_after_failed_publish(play: Stage) -> None:
    """Refused, or not to be reached for the moment: no lease is left, and its account is free for the next one."""
    account = await play.account()
    first, second, third = [await play.due(account) for _ in range(3)]
    play.fault(Fault.REFUSE, PUBLISH, code=6)
    play.fault(Fault.RESET_BEFORE, UPLOAD, skip=1)
    for publication, state in ((first, "failed"), (second, "pending"), (third, "success")):
        await play.wait_for("SELECT next_at FROM pace WHERE key = 'account:' || $1::uuid", account)
        await play.publish(publication)
        assert (await play.state(publication), await play.column("lease_until", publication)) == (state, None)


async def test_stale_locks_cleaned_up(play: Stage, long_worker: Mortal) -> None:
    """The lease of a dead worker is taken back when it ends, not before, together with the status."""
    publication = await play.due()
    await long_worker.do("publish", publication, "after its time has come")
    await play.expire()
    assert await play.state(publication) == "running"
    await play.wait_for("SELECT lease_until FROM publication WHERE id = $1", publication)
    await play.expire()
    assert (await play.state(publication), await play.column("lease_until", publication)) == ("pending", None)
    await play.out(publication)
    assert await play.seen(publication) == [1]


async def test_execution_version_increments_correctly(play: Stage, long_worker: Mortal) -> None:
    """The fence grows with each lease and each time one is taken back; the word of an older one changes nothing."""
    publication = await play.due()
    fences = [await play.column("fence", publication)]
    for _ in range(2):
        async with long_worker.asleep("publish", publication, "before publish_intend"):
            fences.append(await play.column("fence", publication))
            await play.wait_for("SELECT lease_until FROM publication WHERE id = $1", publication)
            await play.expire()
            fences.append(await play.column("fence", publication))
        assert (await play.state(publication), await play.column("fence", publication)) == ("pending", fences[-1])
    assert fences == [0, 1, 2, 3, 4]
    await play.out(publication)
    assert (await play.column("fence", publication), await play.seen(publication)) == (5, [1])


@pytest.mark.usefixtures("_unhurried")
async def test_load_of_fifty_claimers_and_a_thousand_publications(play: Stage) -> None:
    """Every job is handed out three times, to whoever is free: each publication is out once, all of them are."""
    publications = await play.crowd(ACCOUNTS, EACH)
    rounds = 0
    while waiting := await play.read(
        "SELECT array_agg(id) FROM publication WHERE status = 'pending' AND id = ANY ($1)", publications
    ):
        rounds += 1
        assert rounds <= 4 * EACH
        # Another turn for those whose account was busy; each job goes to three at about the same time.
        deck = random.sample(waiting, len(waiting))
        deck = [each for chunk in range(0, len(deck), 20) for each in 3 * deck[chunk : chunk + 20]]
        jobs = iter(deck)

        async def claimer(jobs: Iterator[UUID] = jobs) -> None:
            for publication in jobs:
                await play.publish(publication)

        await asyncio.gather(*[claimer() for _ in range(CLAIMERS)])
    keys = Counter(each.data["key"] for each in play.box.log.effects("webhook"))
    assert keys == {str(each): 1 for each in publications}
    assert not [each for each in play.box.log.entries("again") if each.data["key"] in keys]
    states = "SELECT array_agg(DISTINCT status || ' ' || fence) FROM publication WHERE id = ANY ($1)"
    assert await play.read(states, publications) == ["success 1"]
    assert rounds > 1  # accounts were fought for
