"""kill -9 at each step of a publication and of a look: others finish it, and it is out once."""

from uuid import UUID

import pytest

from imprint.sandbox.faults import Fault
from imprint.work.resolve import not_published
from tests.work.mortal import Mortal
from tests.work.posts import OWNER
from tests.work.stage import DEVIANTART, FOLDER, PUBLISH, WEBHOOK, Stage

# Dead between the intent and the first byte: nothing is out, but nobody can tell.
AMBIGUOUS = {"after publish_intend", "before publish the uploaded file"}


@pytest.mark.parametrize("on", [DEVIANTART, WEBHOOK, FOLDER])
async def test_killed_at_each_step_of_a_publication(play: Stage, worker: Mortal, on: str) -> None:
    """It is out once; where only a look can tell and nothing is to be seen, a person is asked and nothing is sent."""
    steps = await worker.do("publish", await play.due(on=on), 0)
    assert len(steps) >= 17
    killed = {}
    for number, step in enumerate(steps, 1):
        publication = await play.due(on=on)
        await worker.do("publish", publication, number)
        killed[publication] = step
    await play.all_out(list(killed))
    for publication, step in killed.items():
        asked = on == DEVIANTART and step in AMBIGUOUS
        assert await play.state(publication) == ("unknown" if asked else "success"), step
        assert await play.seen(publication) == [0 if asked else 1], step
        if asked:
            await not_published(play.database, OWNER, publication)
            await play.out(publication)
            assert await play.seen(publication) == [1], step
    assert not await play.read("SELECT count(*) FROM attempt WHERE ended_at IS NULL")
    assert not await play.read("SELECT count(*) FROM publication_log WHERE kind = 'duplicate'")


@pytest.mark.parametrize("on", [DEVIANTART, WEBHOOK])
async def test_killed_at_each_step_of_a_look(play: Stage, worker: Mortal, on: str) -> None:
    """Another one looks when the time of the dead one is over; what was lost is found or sent with the same key."""

    async def lost() -> UUID:
        publication = await play.due(on=on)
        play.fault(Fault.RESET_AFTER, path=PUBLISH if on == DEVIANTART else "*")
        await play.publish(publication)
        await play.read("DELETE FROM circuit")  # else so many lost answers would make everybody wait
        assert await play.state(publication) == "unknown"
        return publication

    first = await lost()
    await play.wait_for("SELECT look_at FROM publication WHERE id = $1", first)
    steps = await worker.do("reconcile", first, 0)
    assert len(steps) >= (6 if on == WEBHOOK else 12)
    unknown = [await lost() for _ in steps]
    await play.wait_for("SELECT max(look_at) FROM publication WHERE id = ANY ($1)", unknown)
    for number, publication in enumerate(unknown, 1):
        await worker.do("reconcile", publication, number)
    await play.all_out([first, *unknown])
    assert set(await play.seen(first, *unknown)) == {1}
    assert {await play.state(each) for each in [first, *unknown]} == {"success"}
