"""Simulating what is in a database: what really goes out, as time passes, is what was foretold."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from uuid import UUID

import pytest

from imprint.engine.clock import Due
from imprint.store.query import query
from imprint.work import batch as batches
from imprint.work.schedule import Target, schedule
from imprint.work.simulate import NO_WORKER, Simulation, simulate
from imprint.work.simulation import Why
from tests.work.posts import AT_ONCE, OWNER
from tests.work.stage import WEBHOOK, Stage, stage

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
# A call every half second, and what this machine needs for one.
WITHIN = timedelta(seconds=1.5)
DUE = query("clock_publication_due", Due)
TURNS = query("clock_turn_due", Due)
NEXT = """SELECT least((SELECT min(wake_at) FROM publication WHERE status = 'pending' AND wake_at < 'infinity'),
                       (SELECT min(wake_at) FROM batch_turn WHERE wake_at < 'infinity'))"""


@pytest.fixture
async def at(database_url: str, home: Path) -> AsyncIterator[Stage]:
    """Give a stage."""
    async with stage(database_url, home) as made:
        yield made


async def article(at: Stage, account: UUID, after: timedelta, **fields: str) -> UUID:
    """Plan an article on an account, so long from now; give its publication."""
    post = await at.post(0, kind="article", body="Once.", **fields)
    when = datetime.now(UTC) + at.offset + after
    return (await schedule(at.database, AT_ONCE, OWNER, post, when, targets=[Target(account)]))[0].id


async def play(at: Stage, steps: int = 120) -> None:
    """Do what the clock and a worker do, until nothing happens by itself any more."""
    for _ in range(steps):
        if await at.read(NEXT) is None:
            return
        await at.wait_for(NEXT)
        async with at.database.transaction("clock", "its time has come") as connection:
            await TURNS.all(connection, 500)
            due = await DUE.all(connection, 500)
        for each in due:
            if each.go:
                await at.publish(UUID(each.key))
    raise AssertionError("it does not come to an end")


async def begun(at: Stage, publications: Sequence[UUID]) -> dict[UUID, datetime]:
    """Read when each of them really went."""
    async with at.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT publication_id, began_at FROM attempt WHERE outcome = 'published' AND publication_id = ANY ($1)",
            publications,
        )
    return {row["publication_id"]: row["began_at"] for row in rows}


def times(told: Simulation) -> dict[UUID, datetime]:
    """Give when each goes that does."""
    return {each.of.id: each.at for each in told.going if each.at}


async def test_what_goes_out_is_what_was_foretold(at: Stage) -> None:
    """Own times, many at once, a batch over two accounts, an open circuit, an account that is away, late policies."""
    one, two, closed, away = [await at.account(WEBHOOK) for _ in range(4)]
    for account in (one, two, closed):  # how long an attempt takes here is known afterwards
        await article(at, account, timedelta(0))
    await play(at)
    await at.pass_time(MINUTE)
    for minutes in (90, 90, 90, 61, 120):
        await article(at, one, minutes * MINUTE)
        await article(at, two, (minutes + 1) * MINUTE)
    posts = [await at.post(0, kind="article", body="Once.") for _ in range(3)]
    start = datetime.now(UTC) + at.offset + HOUR
    planned = await batches.create(
        at.database, AT_ONCE, OWNER, posts, every=20 * MINUTE, accounts=[one, two], at=start, zone="UTC"
    )
    skipped = await article(at, closed, HOUR - MINUTE, latePolicy="skip")  # the next one does not wait for it
    waits = await article(at, closed, HOUR)
    held = await article(at, away, HOUR)
    async with at.database.transaction(OWNER, "trouble") as connection:
        await connection.execute("UPDATE account SET status = 'reconnect' WHERE id = $1", away)
        await connection.execute(
            "INSERT INTO circuit (key, errors, openings, open_until, last_error) "
            "VALUES ('account:' || $1::uuid, 5, 1, imprint_now() + interval '3 hours', 'HTTP 500')",
            closed,
        )
    told = await simulate(at.database, OWNER)
    expected = times(told)
    whys = {each.of.id: each.why for each in told.forecasts}
    assert (whys[skipped], whys[waits], whys[held]) == (Why.LATE, Why.CIRCUIT, Why.ACCOUNT)
    assert {whys[each.id] for each in planned.members} <= {Why.BATCH, Why.BUSY}
    assert len(expected) == 10 + 6 + 1

    began = perf_counter()
    await play(at)
    busy = timedelta(seconds=perf_counter() - began)  # time that a slow machine needs is time that really passes
    real = await begun(at, list(whys))
    assert set(real) == set(expected)
    apart = {each: abs(real[each] - expected[each]) for each in expected}
    assert max(apart.values()) < WITHIN + busy, apart
    for account in (one, two):
        mine = [each.of.id for each in told.going if each.of.account_id == account]
        assert mine == sorted(mine, key=real.__getitem__)
    assert await at.state(skipped) == "failed"
    assert await at.state(held) == "pending"
    assert len(at.effects()) == 3 + len(expected)  # the sandbox's own log: nothing twice, nothing else


async def test_nothing_is_written_and_only_ones_own_is_told(at: Stage) -> None:
    """A simulation of somebody else is empty; rows are as they were; without a worker it says so."""
    account = await at.account(WEBHOOK)
    await article(at, account, HOUR)
    before = await at.read("SELECT md5(string_agg(p::text, '')) FROM publication p")
    told = await simulate(at.database, OWNER)
    assert len(told.going) == 1
    assert NO_WORKER in told.notes
    assert (await simulate(at.database, "bob")).forecasts == []
    assert await at.read("SELECT md5(string_agg(p::text, '')) FROM publication p") == before
    assert told.on([]).forecasts == []
    assert told.until(told.world.now).forecasts == []
    (share,) = told.on([account]).as_data()["accounts"]
    assert (share["publications"], share["firstAt"]) == (1, told.going[0].at)


async def test_what_a_person_can_do_is_told_with_it(at: Stage) -> None:
    """Held sends, a disabled account, a paused batch and something unknown each come with their command."""
    account = await at.account(WEBHOOK, "hook")
    post = await at.post(0, kind="article", body="Once.")
    made = await batches.create(at.database, AT_ONCE, OWNER, [post], every=MINUTE, accounts=[account], zone="UTC")
    await batches.pause(at.database, OWNER, made.batch.id)
    assert [told async for told in _commands(at)] == [f"imprint batch resume {made.batch.id}"]
    await at.desk.database.pool.execute("UPDATE account SET status = 'disabled' WHERE id = $1", account)
    assert [told async for told in _commands(at)] == ["imprint account enable hook"]
    await at.desk.database.pool.execute(
        "INSERT INTO incarnation (place, held_since, held_why) VALUES ('x', imprint_now(), 'restored')"
    )
    assert [told async for told in _commands(at)] == ["imprint incarnation --accept"]
    told = await simulate(at.database, OWNER)
    assert told.notes == ["Every send is held: restored."]


async def _commands(at: Stage) -> AsyncIterator[str | None]:
    told = await simulate(at.database, OWNER)
    for each in told.forecasts:
        yield told.do(each)
