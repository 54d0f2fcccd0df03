"""The day: what charts show of it, read from the rows themselves."""

from datetime import timedelta
from itertools import pairwise

from imprint.sandbox.faults import Fault
from imprint.work.day import CIRCUITS, day
from tests.work.stage import Stage


async def test_the_last_day_is_told_in_parts(play: Stage) -> None:
    """Attempts stand in the part in which they ended, and what is due and not begun waits; no quarter is left out."""
    await play.publish(await play.due())
    play.fault(Fault.RATE_LIMIT)
    await play.publish(await play.due())
    waiting = await play.due()
    async with play.database.transaction("test") as connection:
        await connection.execute(
            "UPDATE publication SET scheduled_at = imprint_now() - interval '2 h', jitter_seconds = 0, "
            "due_at = imprint_now() - interval '2 h' WHERE id = $1",
            waiting,
        )
        await connection.execute(
            "INSERT INTO worker (id, name, version, concurrency, started_at) "
            "VALUES (gen_random_uuid(), 'one', '1', 4, imprint_now() - interval '3 h')"
        )
    async with play.database.connection() as connection:
        parts = await day(connection)
        assert await CIRCUITS.all(connection) is not None
    assert len(parts) == 96
    assert {later.at - earlier.at for earlier, later in pairwise(parts)} == {timedelta(minutes=15)}
    now = parts[-2:]  # the quarter may change while this runs
    assert (sum(each.published for each in now), sum(each.put_off for each in now)) == (1, 1)
    assert sum(each.published + each.failed + each.put_off for each in parts[:-2]) == 0
    drifts = [each.p99 for each in parts if each.p99 is not None]
    assert drifts
    assert 0 <= min(drifts) <= max(drifts) < 60
    assert parts[-1].waited >= 1
    assert parts[-5].waited == 1  # it has waited for two hours
    assert parts[-12].waited == 0
    assert parts[-5].workers == 1
    assert parts[0].workers == 0
