"""Figures: what publishing has done, counted from its rows."""

from imprint.sandbox.faults import Fault
from imprint.work.figures import figures
from tests.work.stage import Stage


async def test_every_way_to_end_is_counted(play: Stage) -> None:
    """One that goes out, one that is told to wait first, one that is lost: the counts and the drift say so."""
    await play.publish(await play.due())
    play.fault(Fault.RATE_LIMIT)
    slow = await play.due()
    await play.publish(slow)
    await play.out(slow)
    play.fault(Fault.RESET_AFTER)
    await play.publish(await play.due())
    async with play.database.connection() as connection:
        found = await figures(connection)
    assert found.as_data()["attempts"] == {"no_answer": 1, "published": 2, "rate_limited": 1}
    assert (found.of("published"), found.of("died"), found.duplicates) == (2, 0, 0)
    assert found.as_data()["open"] == {"unknown": 1}
    assert found.drift.attempts == 4
    assert 0 <= found.drift.p50 <= found.drift.p99 < 60
