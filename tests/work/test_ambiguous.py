"""Six hundred answers that say nothing, at a platform where only a look can tell: everything is out once."""

import pytest

from imprint.sandbox.faults import Fault
from tests.work.stage import DEVIANTART, GALLERY, PUBLISH, Stage

MANY = 200


@pytest.mark.usefixtures("_unhurried")
async def test_answers_that_say_nothing(play: Stage) -> None:
    """200 errors although it is out, 200 blank answers, 200 look-ups that lag: found, never sent again."""
    ways = {}
    for fault in (Fault.ERROR_AFTER, Fault.BLANK, Fault.RESET_AFTER):
        ways[fault] = await play.crowd(20, MANY // 20, DEVIANTART)
        play.fault(fault, PUBLISH, times=MANY)
        await play.together(ways[fault])
    publications = [each for some in ways.values() for each in some]
    counted = "SELECT count(*) FROM publication WHERE status = $1"
    assert await play.read(counted, "unknown") == 3 * MANY
    play.fault(Fault.LAG, GALLERY, times=2 * MANY, seconds=86_400)
    await play.all_out(ways[Fault.RESET_AFTER])
    await play.all_out(publications)
    assert await play.read(counted, "success") == 3 * MANY
    assert set(await play.seen(*publications)) == {1}
    assert len(play.effects()) == 3 * MANY
    late = "SELECT count(*) FROM publication WHERE looks = 2 AND id = ANY ($1)"
    assert await play.read(late, ways[Fault.RESET_AFTER]) == MANY
    assert not any(each.data["again"] for each in play.box.log.effects())
