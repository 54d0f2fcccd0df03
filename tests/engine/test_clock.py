"""The clock hands over what is due and allowed: not before its time, once, and whatever happened meanwhile."""

import asyncio
from datetime import datetime, timedelta

import pytest

from imprint.engine.clock import PLAN, timers
from imprint.engine.lease import PUBLICATIONS, SOURCES
from imprint.engine.queue import Job, enqueue
from imprint.store import incarnation
from imprint.store.query import Connection
from tests.engine.scene import add_account, add_publication, clock_runs, handed
from tests.waiting import until

HOUR = timedelta(hours=1)
LEASE = timedelta(seconds=30)


async def test_the_plan_knows_every_timer(connection: Connection) -> None:
    """Each registered timer appears in the plan's statement, and the plan names no other."""
    names = [timer.name for timer in timers(3)]
    account = await add_account(connection)
    await add_publication(connection, account, HOUR)
    running = await add_publication(connection, account)
    await PUBLICATIONS.claim(connection, running, LEASE)
    lost = await add_publication(connection, await add_account(connection))
    await PUBLICATIONS.claim(connection, lost, LEASE)
    await connection.execute(
        "UPDATE publication SET status = 'unknown', phase = NULL, lease_until = NULL, intent_at = imprint_now(), "
        "look_at = imprint_now() WHERE id = $1",
        lost,
    )
    await connection.execute("INSERT INTO source (name) VALUES ('a'), ('b')")
    first = await connection.fetchval("SELECT id FROM source LIMIT 1")
    await SOURCES.claim(connection, first, LEASE)
    await connection.execute(
        "WITH t AS (INSERT INTO target (person, label, service, key_id, nonce, sealed) VALUES ('a', 'a', 'a', "
        "repeat('0', 16), decode(repeat('00', 12), 'hex'), decode(repeat('00', 16), 'hex')) RETURNING id) "
        "INSERT INTO delivery (target_id, next_at) SELECT id, imprint_now() FROM t"
    )
    await connection.execute(
        "WITH b AS (INSERT INTO batch (owner, every, starts_at, zone) VALUES ('a', '1 min', imprint_now(), 'UTC') "
        "RETURNING id) INSERT INTO batch_turn (batch_id, at) SELECT id, imprint_now() FROM b"
    )
    assert {planned.timer for planned in await PLAN.all(connection, names)} == set(names)
    assert await PLAN.all(connection, []) == []


async def test_a_row_is_handed_over_at_its_time_and_not_before(connection: Connection, database_url: str) -> None:
    """The job of a row that is due in 0.4 s appears after that time and within moments of it."""
    row = await add_publication(connection, await add_account(connection), timedelta(milliseconds=400))
    async with clock_runs(database_url):
        await until(lambda: handed(connection))
    created: datetime = await connection.fetchval("SELECT min(created) FROM pgqueuer_log WHERE status = 'queued'")
    due: datetime = await connection.fetchval("SELECT due_at FROM publication WHERE id = $1", row)
    assert created >= due
    assert await handed(connection) == [str(row)]


async def test_an_earlier_time_wakes_the_clock(connection: Connection, database_url: str) -> None:
    """A clock that sleeps until tomorrow hands a row over as soon as somebody brings it forward."""
    row = await add_publication(connection, await add_account(connection), timedelta(days=1))
    async with clock_runs(database_url):
        await asyncio.sleep(0)
        assert await handed(connection) == []
        await connection.execute("UPDATE publication SET due_at = imprint_now() WHERE id = $1", row)
        await until(lambda: handed(connection))


async def test_a_row_that_is_put_off_is_not_handed_over(connection: Connection, database_url: str) -> None:
    """Of two rows that were due together the one that was put off stays, the other goes."""
    late = await add_publication(connection, await add_account(connection), timedelta(milliseconds=300))
    soon = await add_publication(connection, await add_account(connection), timedelta(milliseconds=300))
    async with clock_runs(database_url):
        await connection.execute("UPDATE publication SET due_at = due_at + interval '1 day' WHERE id = $1", late)
        await until(lambda: handed(connection))
    assert await handed(connection) == [str(soon)]


async def test_what_became_due_while_nobody_was_there_is_found(connection: Connection, database_url: str) -> None:
    """Rows that are past due when a clock starts are handed over by the same query."""
    rows = {str(await add_publication(connection, await add_account(connection), -HOUR)) for _ in range(5)}
    async with clock_runs(database_url):
        await until(lambda: _all_handed(connection, 5))
    assert set(await handed(connection)) == rows


async def test_many_clocks_hand_each_row_over_once(connection: Connection, database_url: str) -> None:
    """With five clocks at once, 200 rows become 200 jobs."""
    await connection.execute("INSERT INTO account (platform, name) SELECT 'sandbox', 'a' FROM generate_series(1, 200)")
    await connection.execute("INSERT INTO post SELECT FROM generate_series(1, 200)")
    await connection.execute("UPDATE post SET status = 'draft'")
    await connection.execute("""
        INSERT INTO publication (post_id, account_id, due_at)
        SELECT p.id, a.id, imprint_now() + random() * interval '0.5 s'
        FROM (SELECT id, row_number() OVER () AS n FROM post) p
        JOIN (SELECT id, row_number() OVER () AS n FROM account) a USING (n)""")
    async with clock_runs(database_url, clocks=5):
        await until(lambda: _all_handed(connection, 200))
    queued = await connection.fetchval("SELECT count(*) FROM pgqueuer_log WHERE status = 'queued'")
    assert (queued, len(set(await handed(connection)))) == (200, 200)


async def test_an_account_gets_one_at_a_time(connection: Connection, database_url: str) -> None:
    """Of three due on one account the first is handed over; the next when that one has ended."""
    account = await add_account(connection)
    rows = [await add_publication(connection, account, timedelta(seconds=-9 + n)) for n in range(3)]
    async with clock_runs(database_url):
        await until(lambda: _all_handed(connection, 1))
        lease = await PUBLICATIONS.claim(connection, rows[0], LEASE)
        assert lease is not None
        assert await PUBLICATIONS.claim(connection, rows[1], LEASE) is None  # the database says so too
        await connection.execute(
            "UPDATE publication SET status = 'failed', error_code = 'x', lease_until = NULL, phase = NULL"
            " WHERE id = $1",
            rows[0],
        )
        await until(lambda: _all_handed(connection, 2))
    assert await handed(connection) == [str(rows[0]), str(rows[1])]


async def test_an_open_circuit_puts_a_row_off_until_it_closes(connection: Connection, database_url: str) -> None:
    """A due row of an account whose circuit is open is looked at again at the circuit's time, and goes then."""
    account = await add_account(connection)
    row = await add_publication(connection, account)
    await connection.execute(
        "INSERT INTO circuit (key, open_until) VALUES ($1, imprint_now() + interval '0.5 s')", f"account:{account}"
    )
    async with clock_runs(database_url):
        parked = await until(lambda: connection.fetchval("SELECT held_until FROM publication WHERE id = $1", row))
        assert parked == await connection.fetchval("SELECT open_until FROM circuit")
        assert await handed(connection) == []
        await until(lambda: handed(connection))


async def test_an_account_that_is_away_keeps_its_schedule(connection: Connection, database_url: str) -> None:
    """What is due on an account that must sign in again waits, and goes as soon as the account is back."""
    account = await add_account(connection)
    row = await add_publication(connection, account)
    due = await connection.fetchval("SELECT due_at FROM publication WHERE id = $1", row)
    await connection.execute("UPDATE account SET status = 'reconnect' WHERE id = $1", account)
    async with clock_runs(database_url):
        await until(lambda: connection.fetchval("SELECT held_until = 'infinity' FROM publication WHERE id = $1", row))
        assert await handed(connection) == []
        await connection.execute("UPDATE account SET status = 'connected' WHERE id = $1", account)
        await until(lambda: handed(connection))
    assert await connection.fetchval("SELECT due_at FROM publication WHERE id = $1", row) == due


async def test_a_held_database_hands_nothing_over(connection: Connection, database_url: str) -> None:
    """While sends are held no publication is handed over; the moment they are not, it goes."""
    await incarnation.BEGIN.run(connection)
    await incarnation.HOLD.run(connection, "restored")
    await add_publication(connection, await add_account(connection))
    async with clock_runs(database_url, ["publish", "chore"]):
        await until(lambda: _chore_done(connection))  # the clock is awake, and leaves the publication alone
        assert await handed(connection) == []
        await connection.execute("UPDATE incarnation SET held_since = NULL, held_why = NULL")
        await until(lambda: handed(connection))


async def test_a_job_that_got_lost_is_handed_over_again(connection: Connection, database_url: str) -> None:
    """A row whose job vanished from the queue is handed over again once its time in the queue is over."""
    row = await add_publication(connection, await add_account(connection))
    async with clock_runs(database_url):
        await until(lambda: handed(connection))
        await connection.execute("DELETE FROM pgqueuer")
        await connection.execute("UPDATE publication SET held_until = imprint_now() WHERE id = $1", row)
        await until(lambda: handed(connection))


async def test_a_dead_workers_row_comes_back(connection: Connection, database_url: str) -> None:
    """A lease that ends is taken back at its time: pending before the intent, unknown after it."""
    rows = [await add_publication(connection, await add_account(connection)) for _ in range(2)]
    for row in rows:
        assert await PUBLICATIONS.claim(connection, row, timedelta(milliseconds=300))
    await connection.execute(
        "UPDATE publication SET phase = 'publishing', intent_at = imprint_now() WHERE id = $1", rows[1]
    )
    async with clock_runs(database_url):
        await until(lambda: handed(connection))
        await until(lambda: connection.fetchval("SELECT status = 'unknown' FROM publication WHERE id = $1", rows[1]))
    assert await handed(connection) == [str(rows[0])]
    line = await connection.fetchrow("SELECT actor, reason FROM audit WHERE row_id = $1 AND move = 'lose'", rows[1])
    assert tuple(line or ()) == ("clock", "publication_lost")


async def test_a_timer_without_its_entrypoint_is_left_alone(connection: Connection, database_url: str) -> None:
    """A program that cannot publish does not put publications into the queue."""
    await add_publication(connection, await add_account(connection))
    async with clock_runs(database_url, ["chore"]):
        await until(lambda: _chore_done(connection))
    assert await handed(connection) == []
    assert await connection.fetchval("SELECT held_until FROM publication") is None


async def test_the_clock_rides_out_lost_connections(connection: Connection, database_url: str) -> None:
    """After its connection was cut the clock comes back and hands over what is due."""
    async with clock_runs(database_url):
        await until(lambda: _cut(connection, "imprint clock"))
        await add_publication(connection, await add_account(connection))
        await until(lambda: handed(connection))


async def test_a_row_is_looked_at_again_when_its_last_job_is_just_ending(
    connection: Connection, database_url: str
) -> None:
    """A job that was done but is still in the queue lets no second one in; the row does not wait a minute for that."""
    row = await add_publication(connection, await add_account(connection))
    await enqueue(connection, [Job("publish", str(row))])
    await connection.execute("UPDATE pgqueuer SET status = 'picked'")
    async with clock_runs(database_url):
        await until(lambda: connection.fetchval("SELECT held_until IS NOT NULL FROM publication"))
        await connection.execute("DELETE FROM pgqueuer")
        await until(lambda: handed(connection), seconds=5)


@pytest.mark.parametrize("clocks", [1, 3])
async def test_a_clock_stops_when_told(database_url: str, clocks: int) -> None:
    """A sleeping clock ends at once; the TaskGroup of the scene would wait for ever otherwise."""
    async with asyncio.timeout(5), clock_runs(database_url, clocks=clocks):
        await asyncio.sleep(0)


async def _all_handed(connection: Connection, count: int) -> bool:
    return len(await handed(connection)) >= count


async def _chore_done(connection: Connection) -> bool:
    return bool(await connection.fetchval("SELECT count(*) FROM pgqueuer WHERE entrypoint = 'chore'"))


async def _cut(connection: Connection, application: str) -> bool:
    cut = await connection.fetch(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = $1 AND datname = current_database()",
        application,
    )
    return bool(cut)
