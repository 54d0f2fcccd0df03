"""Lightening: originals of what is published go where that is wanted, after a grace; nothing else does."""

from datetime import timedelta

from imprint.engine.queue import Job
from imprint.work.mismatch import states
from imprint.work.tend import tend
from tests.work.stage import FOLDER, Stage


async def tended(play: Stage, originals: str) -> int:
    """Let the chore run with a setting, and say how many originals it let go."""
    settings = play.at.settings.model_copy(update={"published_originals": originals})
    return (await tend(play.database, play.at.stores, settings)).originals_removed


async def made(play: Stage) -> None:
    """Make every variant that is wanted."""
    for content in await play.at.jobs():
        await play.at.deriver.derive(Job("derive", content))


async def test_originals_of_what_is_out_go_when_that_is_wanted(play: Stage) -> None:
    """Kept by default; removed after the grace when set so; another post that is not out keeps its file."""
    out, waits = await play.due(on=FOLDER), await play.post()
    await made(play)
    await play.publish(out)
    assert await tended(play, "keep") == 0
    assert await tended(play, "remove") == 1
    assert await tended(play, "remove") == 0
    assert await play.read("SELECT count(*) FROM content WHERE status = 'archived'") == 1
    before = len(play.at.files())
    await play.pass_time(timedelta(days=31))
    await tended(play, "remove")
    assert len(play.at.files()) == before - 1
    assert await play.read("SELECT status FROM post WHERE id = $1", waits) == "draft"
    assert await play.read("SELECT count(*) FROM object WHERE variant IS NULL AND deleted_at IS NULL") == 1
    async with play.database.connection() as connection:
        assert await states(connection) == []
