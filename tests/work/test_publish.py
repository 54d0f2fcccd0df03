"""Publishing, step by step, against a real sandbox: what goes out, what waits, what fails and what nobody can tell."""

import pytest

from imprint.sandbox.faults import Fault
from tests.work.stage import DEVIANTART, FOLDER, WEBHOOK, Stage


@pytest.mark.parametrize("on", [DEVIANTART, WEBHOOK, FOLDER])
async def test_what_is_due_goes_out(play: Stage, on: str) -> None:
    """The publication is out with its id, its post is published, and doing the job again does nothing."""
    publication = await play.due(on=on)
    await play.publish(publication)
    await play.publish(publication)
    assert await play.state(publication) == "success"
    assert await play.read("SELECT remote_id FROM publication WHERE id = $1", publication)
    of = "SELECT p.status FROM post p JOIN publication u ON u.post_id = p.id WHERE u.id = $1"
    assert await play.read(of, publication) == "published"
    assert len(play.effects()) == (0 if on == FOLDER else 1)
    assert await play.read("SELECT outcome FROM attempt WHERE publication_id = $1", publication) == "published"


async def test_a_lost_answer_is_found(play: Stage) -> None:
    """The answer is cut off after it was published: unknown, then a look finds it; it is out once."""
    publication = await play.due()
    play.fault(Fault.RESET_AFTER)
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    await play.out(publication)
    assert await play.state(publication) == "success"
    assert len(play.effects()) == 1
    assert await play.lines(publication) == ["uploaded", "unknown", "found"]
