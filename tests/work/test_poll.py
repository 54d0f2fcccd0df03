"""Polls: through real HTTP, one at a time, at the source's own rhythm; failures are counted, shown and got over."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import asyncpg
import httpx2
import pytest

from imprint.engine import circuit
from imprint.engine.clock import timers
from imprint.engine.lease import SOURCES
from imprint.engine.queue import Job, enqueue
from imprint.problem import Busy
from imprint.sandbox.serial_faults import Fault, Kind
from imprint.sandbox.serial_world import Series, World
from imprint.sources.contract import NO_STATE, Fetched, NotYet, Place, State, Unreadable, Wish
from imprint.sources.memory import MemorySource
from imprint.store.db import Database
from imprint.work import dead_letter
from imprint.work.poll import Poller
from tests.sources.canned import canned
from tests.sources.conftest import FIXTURES
from tests.work.serials import Serials, a_world, add_series, add_source, chapter, fetched, follow, settings_for

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def serial(database: Database, home: Path) -> AsyncIterator[Serials]:
    """Set a world up."""
    async with a_world(database, home) as made:
        yield made


def near(at: datetime, ahead: timedelta, by: float = 0.15) -> bool:
    """Say whether a time is about so far ahead of now."""
    return abs(at - datetime.now(UTC) - ahead) <= ahead * by + timedelta(seconds=5)


async def test_every_kind_of_source_is_read_and_brings_news(serial: Serials) -> None:
    """The first reading is silent; a chapter that appears later is told of, once, whoever brings it first."""
    grown = serial.world.add("A long tale", 12)
    async with serial.database.connection() as connection:
        series = await add_series(connection, "A long tale")
        await follow(connection, series, "reader")
    kinds = ("mangadex", "mangapark", "rss", "atom", "json")
    sources = {kind: await serial.add(grown, kind, to=series) for kind in kinds}
    for source in sources.values():
        await serial.poll(source)
    assert await serial.value("SELECT count(*) FROM chapter WHERE silent") == 12
    assert await serial.value("SELECT count(*) FROM release") == 12 * 5
    assert await serial.value("SELECT count(*) FROM notice") == 0
    assert await serial.value("SELECT count(*) FROM source WHERE caught_up_at IS NULL OR error IS NOT NULL") == 0
    serial.world.publish(grown, "13")
    for source in sources.values():
        done = await serial.now(source)
        assert (done.error, done.releases, done.changed) == (None, 1, True)
    assert await serial.value("SELECT count(*) FROM chapter WHERE NOT silent AND number = 13") == 1
    assert await serial.value("SELECT count(*) FROM notice") == 1
    assert await serial.value("SELECT latest_chapter FROM series") == 13
    assert await serial.jobs("notify") == [str(series)]
    again = await serial.now(sources["rss"])
    assert (again.changed, again.releases) == (False, 0)
    assert serial.world.log.lines[-1].status == 304


async def test_a_series_takes_the_title_its_source_gives(serial: Serials) -> None:
    """Unless a person has chosen one."""
    grown = serial.world.add("As the feed says", 1)
    source = await serial.add(grown)
    async with serial.database.connection() as connection:
        await connection.execute("UPDATE series SET title = 'example.org/feed', title_given = false")
    await serial.poll(source)
    assert (await serial.one("SELECT title, title_given FROM series")) == {
        "title": "As the feed says",
        "title_given": True,
    }


async def test_only_a_source_that_is_due_is_asked(serial: Serials) -> None:
    """A job that comes twice, or late, finds nothing to do; a person may ask at any time."""
    source = await serial.add(serial.world.add("A", 1))
    for _ in range(3):
        await serial.poll(source)
    assert len(serial.world.log.lines) == 1
    assert (await serial.now(source)).error is None
    assert len(serial.world.log.lines) == 2


async def test_never_two_open_polls_of_a_source_or_a_host(serial: Serials) -> None:
    """Twenty jobs at once for four sources of one host: no request begins before the one before has ended."""
    grown = serial.world.add("A", 3)
    sources = [await serial.add(grown, kind) for kind in ("rss", "atom", "json", "mangapark")]
    serial.world.faults.add(Fault(Kind.LATENCY, seconds=0.05))
    open_now, most = 0, 0
    fetch = serial.poller.fetcher.fetch

    async def counted(
        kind: str, place: Place, state: State, since: datetime | None, *, trusted: bool = True
    ) -> Fetched:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        try:
            return await fetch(kind, place, state, since, trusted=trusted)
        finally:
            open_now -= 1

    serial.poller.fetcher.fetch = counted  # type: ignore[method-assign] # to look on
    await asyncio.gather(*(serial.poll(source) for source in sources for _ in range(5)))
    assert most == 1
    async with serial.database.connection() as connection:
        await connection.execute("UPDATE source SET next_check_at = imprint_now()")
        lease = await SOURCES.claim(connection, sources[0], DAY)
        assert lease is not None
        assert await SOURCES.claim(connection, sources[1], DAY) is None
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(
                "UPDATE source SET lease_until = imprint_now() + interval '1 min' WHERE id = $1", sources[1]
            )
    with pytest.raises(Busy):
        await serial.now(sources[1])


async def test_five_failures_let_a_source_rest_and_a_probe_brings_it_back(serial: Serials) -> None:
    """Each shows its error and its next try, ever later; it rests cold for a day, and gets back what it was."""
    source = await serial.add(serial.world.add("A", 2))
    await serial.poll(source)
    serial.world.faults.add(Fault(Kind.STATUS, status=503))
    waits = []
    for failures in range(1, 6):
        await serial.now(source)
        row = await serial.row(source)
        assert (row["failures"], row["error_code"]) == (failures, "source.server_error")
        assert "503" in row["error"]
        waits.append(row["next_check_at"] - datetime.now(UTC))
    assert (row["status"], row["priority"], row["priority_before"]) == ("resting", "COLD", "HOT")
    assert all(later > sooner for sooner, later in pairwise(waits))
    assert near(row["next_check_at"], DAY)
    await serial.poll(source)  # not due: nothing is asked
    asked = len(serial.world.log.lines)
    await serial.pass_time(DAY + MINUTE)
    await asyncio.gather(*(serial.poll(source) for _ in range(5)))  # the probe
    assert len(serial.world.log.lines) == asked + 1
    row = await serial.row(source)
    assert (row["status"], row["failures"]) == ("resting", 6)
    assert near(row["next_check_at"], 2 * DAY)
    serial.world.faults.clear()
    await serial.pass_time(2 * DAY + 3 * MINUTE)
    await serial.poll(source)
    row = await serial.row(source)
    assert (row["status"], row["priority"], row["priority_before"], row["failures"]) == ("active", "HOT", None, 0)
    assert (row["error"], row["error_code"]) == (None, None)
    assert await serial.value("SELECT count(*) FROM circuit") == 0
    moves = await serial.value("SELECT array_agg(move ORDER BY id) FROM audit WHERE row_id = $1", source)
    assert moves == ["create", "rest", "recover"]


async def test_a_person_can_ask_a_source_that_rests(serial: Serials) -> None:
    """When it works, it is back at once."""
    source = await serial.add(serial.world.add("A", 2))
    serial.world.faults.add(Fault(Kind.STATUS, status=500, times=5))
    for _ in range(5):
        assert (await serial.now(source)).code == "source.server_error"
    assert (await serial.row(source))["status"] == "resting"
    assert (await serial.now(source)).error is None
    assert (await serial.row(source))["status"] == "active"
    assert await serial.value("SELECT count(*) FROM circuit") == 0


@pytest.mark.parametrize(
    ("asked", "waits"),
    [("7200", timedelta(hours=2)), ("99999999", DAY), ("-5", timedelta(minutes=5)), ("1", 5 * MINUTE)],
)
async def test_retry_after_is_honoured_with_a_cap(serial: Serials, asked: str, waits: timedelta) -> None:
    """A source that wants to be left alone is, for a day at most; its host's other sources wait as well."""
    grown = serial.world.add("A", 2)
    source, other = await serial.add(grown), await serial.add(grown, "atom")
    serial.world.faults.add(Fault(Kind.STATUS, status=429, retry_after=asked, times=1))
    done = await serial.now(source)
    assert done.code == "source.rate_limited"
    assert done.next_check_at
    assert near(done.next_check_at, waits, 0.01)
    if waits > 10 * MINUTE:
        (due,) = [each for each in timers(3) if each.name == "source_due"]
        async with serial.database.connection() as connection:
            assert [each.go for each in await due.fire(connection)] == [False]
        assert near((await serial.row(other))["held_until"], waits, 0.01)
        await serial.poll(other)  # should a job be on its way already, it is put off
        assert len(serial.world.log.lines) == 1
        assert (await serial.row(other))["failures"] == 0


class Told(MemorySource):
    """A source that says what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.says: list[Fetched | Exception] = []
        self.asked: list[tuple[State, datetime | None]] = []

    async def fetch(
        self,
        http: httpx2.AsyncClient,
        place: Place,
        state: State = NO_STATE,
        since: datetime | None = None,
    ) -> Fetched:
        """Say the next."""
        del http, place
        self.asked.append((state, since))
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, Exception):
            raise said
        return said


async def told(serial: Serials, *says: Fetched | Exception) -> tuple[UUID, Told]:
    """Add a source that says this, the last for ever."""
    async with serial.database.connection() as connection:
        series = await add_series(connection)
        await follow(connection, series, "reader")
        source = await add_source(connection, series)
    made = Told()
    made.says = [*says]
    serial.poller.fetcher.sources["feed"] = made
    return source, made


async def test_the_wait_follows_the_servers_wish_up_to_a_day(serial: Serials) -> None:
    """Longer than our own wait it counts, shorter it does not, and a year is a day."""
    source, said = await told(serial, fetched("1"))
    for wish, waits in ((timedelta(hours=3), timedelta(hours=3)), (timedelta(days=365), DAY), (MINUTE, 30 * MINUTE)):
        said.says = [fetched("1", wish=Wish(wish))]
        done = await serial.now(source)
        assert done.next_check_at
        assert near(done.next_check_at, waits)


async def test_a_quiet_source_is_asked_less_and_never_not_at_all(serial: Serials) -> None:
    """From hot to warm to cold, down to once a week in a long hiatus; news make it hot at once."""
    source, said = await told(serial, fetched("1"))
    seen = []
    for days in (0, 10, 30, 100, 300, 3000):
        await serial.pass_time(days * DAY)
        done = await serial.now(source)
        row = await serial.row(source)
        assert done.next_check_at
        seen.append((row["priority"], round((row["next_check_at"] - row["last_polled_at"]) / DAY, 1)))
    assert [priority for priority, _ in seen] == ["HOT", "HOT", "WARM", "COLD", "COLD", "COLD"]
    assert [every for _, every in seen[:4]] == sorted(every for _, every in seen[:4])
    assert all(6 <= every <= 8 for _, every in seen[4:])
    said.says = [fetched("1", "2")]
    await serial.now(source)
    row = await serial.row(source)
    assert row["priority"] == "HOT"
    assert await serial.value("SELECT count(*) FROM notice") == 1


async def test_a_gap_is_asked_for_once_more(serial: Serials) -> None:
    """Soon, for everything and not only for what is new; what is still missing then is shown, not asked for again."""
    source, said = await told(serial, fetched("1", "2", state=State("a")))
    await serial.now(source)
    said.says = [fetched("1", "2", "5", state=State("b"))]
    done = await serial.now(source)
    assert done.next_check_at
    assert near(done.next_check_at, 2 * MINUTE)
    row = await serial.row(source)
    assert (row["gap_from"], row["gap_to"], row["etag"]) == (Decimal(3), Decimal(4), None)
    said.says = [fetched("1", "2", "4", "5", state=State("c"))]
    done = await serial.now(source)
    assert said.asked[-1] == (State(), None)
    assert done.next_check_at
    assert not near(done.next_check_at, 2 * MINUTE)
    assert (await serial.row(source))["gap_to"] == Decimal(4)
    said.says = [fetched("3", state=State("c"))]
    await serial.now(source)
    assert (await serial.row(source))["gap_to"] is None


async def test_a_list_that_is_too_long_for_one_poll_goes_on(serial: Serials) -> None:
    """At once, from where it was left; nothing of it is news before its end was reached."""
    source, said = await told(serial, fetched("1", "2", state=State(cursor="2"), complete=False))
    await serial.now(source)
    row = await serial.row(source)
    assert (row["cursor"], row["caught_up_at"]) == ("2", None)
    assert near(row["next_check_at"], timedelta(seconds=5))
    said.says = [fetched("3", "4")]
    await serial.now(source)
    assert said.asked[-1][0] == State(cursor="2")
    assert (await serial.row(source))["caught_up_at"] is not None
    assert await serial.value("SELECT count(*) FROM notice") == 0
    await serial.now(source)
    state, since = said.asked[-1]
    assert state == State()
    assert since is not None  # from now on what is new is enough
    await serial.pass_time(DAY + MINUTE)
    await serial.now(source)
    assert said.asked[-1][1] is None  # but once a day everything is read


async def test_a_place_that_has_moved_is_asked_there(serial: Serials) -> None:
    """A permanent redirect is remembered, with its host; one to another source of the series is not."""
    source, said = await told(serial, fetched("1", moved_to="https://new.example/feed"))
    series = (await serial.row(source))["series_id"]
    async with serial.database.connection() as connection:
        await add_source(connection, series, ref="https://there.example/feed", host="there")
    await serial.now(source)
    row = await serial.row(source)
    assert (row["ref"], row["host"]) == ("https://new.example/feed", "new.example")
    said.says = [fetched("1", moved_to="https://there.example/feed")]
    await serial.now(source)
    assert (await serial.row(source))["ref"] == "https://new.example/feed"


class Overtaken(Told):
    """A source that answers after something has happened to its row."""

    def __init__(self, serial: Serials, change: str) -> None:
        super().__init__()
        self.serial = serial
        self.change = change

    async def fetch(
        self,
        http: httpx2.AsyncClient,
        place: Place,
        state: State = NO_STATE,
        since: datetime | None = None,
    ) -> Fetched:
        """Let it happen, then answer."""
        async with self.serial.database.connection() as connection:
            await connection.execute(f"UPDATE source SET {self.change}")
        return await super().fetch(http, place, state, since)


async def test_a_lease_that_was_lost_changes_nothing(serial: Serials) -> None:
    """A poll that comes back after another has begun, or after the source was removed, is thrown away whole."""
    source, _ = await told(serial, fetched("1"))
    for change in ("fence = fence + 1", "deleted_at = imprint_now(), lease_until = NULL"):
        for answer in (fetched("1"), NotYet("source.timeout", "It took too long.")):
            late = Overtaken(serial, change)
            late.says = [answer]
            serial.poller.fetcher.sources["feed"] = late
            await serial.poll(source)
            assert len(late.asked) == 1
            assert await serial.value("SELECT count(*) FROM chapter") == 0
            async with serial.database.connection() as connection:
                await connection.execute("UPDATE source SET lease_until = NULL, deleted_at = NULL")
            assert (await serial.row(source))["failures"] == 0


async def test_a_mistake_of_ours_is_retried_then_held_and_the_row_goes_on(serial: Serials) -> None:
    """Two attempts leave the source due; the third counts as a failure, so that it is not tried for ever."""
    source, _ = await told(serial, RuntimeError("a bug"))
    for failures in (0, 1):
        with pytest.raises(RuntimeError, match="a bug"):
            await serial.poll(source, failures)
        row = await serial.row(source)
        assert (row["lease_until"], row["failures"]) == (None, 0)
        assert row["next_check_at"] <= datetime.now(UTC)
    with pytest.raises(RuntimeError, match="a bug"):
        await serial.poll(source, 2)
    row = await serial.row(source)
    assert (row["failures"], row["error_code"]) == (1, "poll.bug")
    assert near(row["next_check_at"], 5 * MINUTE)


async def test_a_dead_letter_of_a_poll_is_a_poll_when_it_is_requeued(serial: Serials) -> None:
    """Its source is due again, though the failure had put it off."""
    source, said = await told(serial, RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        await serial.poll(source, 2)
    async with serial.database.connection() as connection:
        await enqueue(connection, [Job("poll", str(source))])
        await connection.execute("UPDATE pgqueuer SET status = 'failed'")
        (letter,) = await dead_letter.listed(connection)
    await dead_letter.requeue(serial.database, "a person", letter.id)
    said.says = [fetched("1")]
    await serial.poll(source)
    assert (await serial.row(source))["error"] is None
    assert await serial.value("SELECT count(*) FROM chapter") == 1


async def test_the_clock_hands_over_by_priority_and_one_of_a_host(serial: Serials) -> None:
    """Hot before warm before cold; the others of a host wait, and wait no longer when the one before has ended."""
    async with serial.database.connection() as connection:
        series = await add_series(connection)
        made = {}
        for host, priority in (("a", "COLD"), ("a", "HOT"), ("b", "WARM"), ("b", "COLD")):
            made[host, priority] = await add_source(
                connection, series, ref=f"https://{host}.example/{priority}", host=host
            )
            await connection.execute("UPDATE source SET priority = $2 WHERE id = $1", made[host, priority], priority)
        (due,) = [each for each in timers(3) if each.name == "source_due"]
        handed = {UUID(each.key): (each.go, each.priority) for each in await due.fire(connection)}
        assert handed == {
            made["a", "HOT"]: (True, 2),
            made["b", "WARM"]: (True, 1),
            made["a", "COLD"]: (False, 0),
            made["b", "COLD"]: (False, 0),
        }
        assert await due.fire(connection) == []
        lease = await SOURCES.claim(connection, made["a", "HOT"], DAY)
        assert lease
        await connection.execute(
            "UPDATE source SET next_check_at = next_check_at + interval '1 hour' WHERE id = $1", lease.id
        )
        await SOURCES.release(connection, lease)
        again = await due.fire(connection)
        assert [(UUID(each.key), each.go) for each in again] == [(made["a", "COLD"], True)]


async def test_a_low_priority_waits_for_a_while_not_for_ever(serial: Serials) -> None:
    """What has been due for long goes before what is more urgent."""
    async with serial.database.connection() as connection:
        series = await add_series(connection)
        cold = await add_source(connection, series, ref="https://a.example/1", host="a")
        await connection.execute(
            "UPDATE source SET priority = 'COLD', next_check_at = imprint_now() - interval '7 hours'"
        )
        await add_source(connection, series, ref="https://a.example/2", host="a")
        (due,) = [each for each in timers(3) if each.name == "source_due"]
        assert [UUID(each.key) for each in await due.fire(connection) if each.go] == [cold]


def disturb(world: World) -> None:
    """Let a world do everything wrong, now and then."""
    for kind in (Kind.SHUFFLE, Kind.REPEAT):
        world.faults.add(Fault(kind, chance=0.5))
    for kind in (Kind.RESET, Kind.CUT, Kind.BROKEN, Kind.ENCODING, Kind.PAGE, Kind.EMPTY):
        world.faults.add(Fault(kind, chance=0.04))
    for status, retry in ((500, None), (404, None), (403, None), (410, None), (503, "soon")):
        world.faults.add(Fault(Kind.STATUS, chance=0.02, status=status, retry_after=retry))


def change(world: World, series: Series, dice: random.Random) -> None:
    """Let something happen to a series: a chapter, an extra, an edit, a deletion."""
    match dice.randrange(4):
        case 0:
            world.publish(series, str(int(max(Decimal(each.number or 0) for each in series.items.values())) + 1))
        case 1:
            world.publish(series, None, title=f"Extra: {dice.random()}")
        case 2:
            world.edit(series, dice.choice(list(series.items)), title=f"Edited {dice.random()}", volume="2")
        case _:
            world.delete(series, dice.choice(list(series.items)[1:])) if len(series.items) > 3 else None


async def test_a_hostile_world(serial: Serials) -> None:
    """Three hundred polls of sources that do everything wrong: each item once, no notice twice, no crash."""
    dice = random.Random(11)  # noqa: S311 - no secret
    grown = serial.world.add("A", 5)
    async with serial.database.connection() as connection:
        series = await add_series(connection)
        await follow(connection, series, "one", "two")
    sources = [await serial.add(grown, kind, to=series) for kind in ("mangadex", "mangapark", "rss", "atom", "json")]
    for source in sources:
        await serial.poll(source)
    disturb(serial.world)
    latest = Decimal(0)
    for _ in range(60):
        change(serial.world, grown, dice)
        for source in dice.sample(sources, 5):
            await serial.now(source)
        now = await serial.value("SELECT latest_chapter FROM series")
        assert now >= latest
        latest = now
    serial.world.faults.clear()
    for source in sources:
        assert (await serial.now(source)).error is None
    for at, source in enumerate(sources):
        carried = await serial.value(
            "SELECT array_agg(own_id) FROM release WHERE source_id = $1 AND gone_at IS NULL", source
        )
        own = {
            str(item.serial) if at == 1 else f"urn:uuid:{item.id}" if at == 3 else item.id
            for item in grown.items.values()
        }
        assert own <= set(carried)
        assert at != 1 or own == set(carried)  # who lists everything lists what is gone by leaving it out
    assert not await serial.one("SELECT person, chapter_id FROM notice GROUP BY 1, 2 HAVING count(*) > 1")
    announced = await serial.value("SELECT count(*) FROM chapter WHERE NOT silent")
    assert await serial.value("SELECT count(*) FROM notice") == 2 * announced
    assert announced <= grown.made


async def test_real_items_are_taken_in(database: Database, home: Path) -> None:
    """A hundred recorded chapters of MangaDex: each a release, each number a chapter; the same again is nothing new."""
    if not FIXTURES.is_dir():
        pytest.skip("there are no recorded answers here")
    body = json.loads((FIXTURES / "mangadex" / "hondana__chapter_feed.json").read_text(encoding="utf-8"))
    body["total"] = len(body["data"])
    async with canned() as server:
        server.say(json.dumps(body))
        settings = settings_for(server.base, home, IMPRINT_MANGADEX_BASE=server.base)
        poller = Poller.of(database, settings)
        async with database.connection() as connection:
            series = await add_series(connection)
            ref = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
            source = await add_source(connection, series, "mangadex", ref, "127.0.0.1")
        try:
            first, again = await poller.now(source), await poller.now(source)
        finally:
            await poller.fetcher.close()
        assert (first.releases, first.set_aside, first.error) == (100, 0, None)
        assert (again.releases, again.chapters) == (0, 0)
        numbers = {each["attributes"]["chapter"] for each in body["data"]}
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT count(*) FROM chapter") == len(numbers)
            dates = [datetime.fromisoformat(each["attributes"]["readableAt"]) for each in body["data"]]
            assert await connection.fetchval("SELECT last_news_at FROM source") == max(dates)
            assert await connection.fetchval("SELECT priority FROM source") == "COLD"  # that was years ago


async def test_an_unreadable_answer_is_a_failure_with_its_reason(serial: Serials) -> None:
    """And the state of the last good one is kept."""
    source, said = await told(serial, fetched("1", state=State("a")), Unreadable("feed.empty", "The feed is empty."))
    await serial.now(source)
    done = await serial.now(source)
    assert (done.code, done.error) == ("feed.empty", "The feed is empty.")
    row = await serial.row(source)
    assert (row["etag"], row["error"], row["status"]) == ("a", "The feed is empty.", "active")
    said.says = [fetched("1", chapter("2"))]
    await serial.now(source)
    row = await serial.row(source)
    assert (row["error"], row["failures"]) == (None, 0)
    async with serial.database.connection() as connection:
        assert (await circuit.ask(connection, f"source:{source}", circuit.POLLING)).state == "closed"
