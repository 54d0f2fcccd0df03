"""kill -9 at each step of each platform that people use: the sandbox's own log says how often it is out."""

import pytest

from imprint.platforms.registry import PLATFORMS
from tests.work.mortal import Mortal
from tests.work.stage import BLUESKY, MASTODON, WORDPRESS, Stage

# Dead between the intent and the first byte: nothing is out, but only a platform that knows our key can tell.
BEFORE_IT_LEFT = {
    "after publish_intend",
    "before create the post",
    "before publish the status",
    "before publish the post",
}


@pytest.mark.parametrize("on", [BLUESKY, MASTODON, WORDPRESS])
async def test_killed_at_each_step_of_each_platform(play: Stage, worker: Mortal, on: str) -> None:
    """It is out once without a person; where only a look can tell and nothing is to be seen, a person is asked."""
    steps = await worker.do("publish", await play.due(on=on), 0)
    killed = {}
    for number, step in enumerate(steps, 1):
        publication = await play.due(on=on)
        await worker.do("publish", publication, number)
        killed[publication] = step
    assert len(BEFORE_IT_LEFT & set(steps)) == 2
    await play.all_out(list(killed))
    out = await play.seen(*killed)
    for (publication, step), times in zip(killed.items(), out, strict=True):
        asked = not PLATFORMS[on].once.token and step in BEFORE_IT_LEFT
        assert await play.state(publication) == ("unknown" if asked else "success"), step
        assert times == (0 if asked else 1), step
    keys = [each.data["key"] for each in play.box.log.effects(on)]
    assert len(keys) == len(set(keys))
    assert not await play.read("SELECT count(*) FROM publication_log WHERE kind = 'duplicate'")
