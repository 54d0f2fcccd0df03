"""The behaviour kit of sources: what every one of them promises, tried on each against the sandbox, and on the twin."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Protocol

import httpx2
import pytest

from imprint.decisions.chapter_number import from_fields
from imprint.engine.guard import Bounds, Hosts, guarded
from imprint.sandbox.serial_faults import Fault, Kind
from imprint.sandbox.serial_world import Series, World
from imprint.sandbox.serials import serials, serving
from imprint.sources.contract import (
    NO_STATE,
    Chapter,
    Failure,
    Fetched,
    Gone,
    NotYet,
    Place,
    RateLimited,
    Refused,
    Source,
    State,
    Unreadable,
)
from imprint.sources.memory import MemorySource, Shelf
from imprint.sources.registry import SOURCES, source

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NUMBERS = [Decimal(1), Decimal("1.5"), Decimal(2), Decimal(3)]


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        """Tell the time."""
        return self.time

    def pass_by(self, minutes: int = 1) -> None:
        """Let time pass."""
        self.time += timedelta(minutes=minutes)


class Carrier(Protocol):
    """A source under test, and a hand behind it that publishes, changes and breaks things."""

    @property
    def source(self) -> Source:
        """Give the source."""

    http: httpx2.AsyncClient
    place: Place
    clock: Clock

    def publish(self, number: str | None, title: str | None = None, *, group: str = "A", language: str = "en") -> str:
        """Add an upload; give its name behind the scenes."""

    def edit(self, own: str, title: str) -> None:
        """Change an upload's title."""

    def delete(self, own: str) -> None:
        """Take an upload away."""

    def fail(self, kind: Kind, status: int = 500, retry_after: str | None = None) -> None:
        """Let the next request go wrong."""

    def behave(self) -> None:
        """Let nothing go wrong any more."""


@dataclass
class Sandboxed:
    """A real source and a series in the sandbox."""

    source: Source
    http: httpx2.AsyncClient
    place: Place
    clock: Clock
    world: World
    series: Series

    def publish(self, number: str | None, title: str | None = None, *, group: str = "A", language: str = "en") -> str:
        """Upload."""
        return self.world.publish(self.series, number, title=title, group=group, language=language).id

    def edit(self, own: str, title: str) -> None:
        """Edit."""
        self.world.edit(self.series, own, title=title)

    def delete(self, own: str) -> None:
        """Delete."""
        self.world.delete(self.series, own)

    def fail(self, kind: Kind, status: int = 500, retry_after: str | None = None) -> None:
        """Put a fault in force, once."""
        self.world.faults.add(Fault(kind, times=1, status=status, retry_after=retry_after, seconds=5))

    def behave(self) -> None:
        """Clear the faults."""
        self.world.faults.clear()


@dataclass
class Twin:
    """The in-memory source; its faults are what they would be called in the end."""

    source: MemorySource
    http: httpx2.AsyncClient
    place: Place
    clock: Clock
    made: int = 0

    def publish(self, number: str | None, title: str | None = None, *, group: str = "A", language: str = "en") -> str:
        """Put it on the shelf."""
        self.made += 1
        own, now = f"m{self.made}", self.clock()
        self._shelf.put(
            Chapter(own, from_fields(number, name=title, fallback=own), title, None, language, group, now, now)
        )
        return own

    def edit(self, own: str, title: str) -> None:
        """Put another in its place."""
        before = self._shelf.chapters[own]
        self._shelf.put(replace(before, title=title, updated_at=self.clock()))

    def delete(self, own: str) -> None:
        """Take it off the shelf."""
        self._shelf.remove(own)

    def fail(self, kind: Kind, status: int = 500, retry_after: str | None = None) -> None:
        """Queue the failure that a real source makes of this."""
        after = timedelta(seconds=int(retry_after)) if retry_after and retry_after.isdecimal() else None
        failures: dict[Kind, Failure] = dict.fromkeys(
            (Kind.RESET, Kind.CUT, Kind.LATENCY), NotYet("source.unreachable", "nobody there")
        ) | dict.fromkeys((Kind.PAGE, Kind.EMPTY, Kind.BROKEN), Unreadable("source.not_json", "what is this"))
        told: dict[int, Failure] = {
            429: RateLimited("source.rate_limited", "slowly", after or None),
            410: Gone("source.gone", "over"),
        }
        failures[Kind.STATUS] = told.get(status, NotYet("source.server_error", f"{status}", after))
        if kind in failures:
            self.source.failures.append(failures[kind])

    def behave(self) -> None:
        """Forget the failures."""
        self.source.failures.clear()

    @property
    def _shelf(self) -> Shelf:
        return self.source.shelves.setdefault(self.place.ref, Shelf())


KINDS = ("memory", "mangadex", "mangapark", "rss", "atom", "json")


@pytest.fixture(params=KINDS)
async def carrier(request: pytest.FixtureRequest) -> AsyncIterator[Carrier]:
    """Give each source in turn, with the same four chapters, through the guarded client."""
    clock = Clock()
    one: Carrier
    if request.param == "memory":
        async with guarded("kit/1") as http:
            one = Twin(MemorySource(), http, Place("shelf"), clock)
            _fill(one)
            yield one
        return
    world = World(now=clock)
    series = world.add("100% Kit")
    bounds = Bounds(seconds=1.0)
    async with (
        serving(serials(world)) as base,
        guarded("kit/1", Hosts(frozenset({base.removeprefix("http://")})), bounds) as http,
    ):
        if request.param in SOURCES:
            ref = series.id if request.param == "mangadex" else str(series.serial)
            one = Sandboxed(
                source(request.param, f"{base}/{request.param}"), http, Place(ref, "100% Kit"), clock, world, series
            )
        else:
            place = Place(f"{base}/feeds/{series.serial}.{request.param}", "100% Kit")
            one = Sandboxed(source("feed"), http, place, clock, world, series)
        _fill(one)
        yield one


def _fill(carrier: Carrier) -> None:
    for number in ("1", "1.5", "2", "3"):
        carrier.publish(number)
        carrier.clock.pass_by()


async def fetch(carrier: Carrier, state: State = NO_STATE, since: datetime | None = None) -> Fetched:
    """Fetch the carrier's series."""
    return await carrier.source.fetch(carrier.http, carrier.place, state, since)


def numbers(fetched: Fetched) -> list[Decimal]:
    """List the numbers in order."""
    return sorted(chapter.number.number for chapter in fetched.chapters if chapter.number.number is not None)


def test_every_source_is_in_the_kit() -> None:
    """A new line in the registry fails here until it is tried like the others."""
    assert set(SOURCES) == {"mangadex", "mangapark", "feed"}


async def test_everything_published_is_found(carrier: Carrier) -> None:
    """Numbers are exact, ids are there and differ, times have zones, and there is nothing else."""
    fetched = await fetch(carrier)
    assert numbers(fetched) == NUMBERS
    assert len({chapter.id for chapter in fetched.chapters}) == 4
    assert all(chapter.id and chapter.published_at and chapter.published_at.tzinfo for chapter in fetched.chapters)
    assert all(chapter.group == "A" and chapter.language == "en" for chapter in fetched.chapters)
    assert fetched.set_aside == ()
    assert not fetched.not_modified
    assert fetched.complete


async def test_fetching_changes_nothing(carrier: Carrier) -> None:
    """Asked twice without a state, the same chapters come with the same ids."""
    first, second = await fetch(carrier), await fetch(carrier)
    assert set(first.chapters) == set(second.chapters)


async def test_what_is_new_comes_with_the_next_fetch(carrier: Carrier) -> None:
    """The state of one fetch and its time, given to the next, hide nothing that came since."""
    first = await fetch(carrier)
    asked = carrier.clock()
    carrier.clock.pass_by()
    carrier.publish("4")
    second = await fetch(carrier, first.state, asked)
    assert Decimal(4) in numbers(second)
    assert not second.not_modified


async def test_nothing_new_is_said_without_sending_it_all(carrier: Carrier) -> None:
    """Sources that can say «not modified» do, keep their state, and stop saying it when something changes."""
    first = await fetch(carrier)
    again = await fetch(carrier, first.state)
    assert again.not_modified == carrier.source.conditional
    if again.not_modified:
        assert again.chapters == ()
        assert again.state == first.state
        carrier.clock.pass_by()
        carrier.publish("4")
        assert Decimal(4) in numbers(await fetch(carrier, again.state))


async def test_since_hides_nothing_that_is_newer(carrier: Carrier) -> None:
    """A time to ask from may give more than asked for, never less, the very second included."""
    carrier.clock.pass_by()
    asked = carrier.clock()
    carrier.publish("4")
    carrier.clock.pass_by()
    carrier.publish("5")
    assert {Decimal(4), Decimal(5)} <= set(numbers(await fetch(carrier, since=asked)))


async def test_order_and_repetition_do_not_matter(carrier: Carrier) -> None:
    """Shuffled and repeated items are each given once."""
    expected = {chapter.id for chapter in (await fetch(carrier)).chapters}
    for _ in range(5):
        carrier.fail(Kind.SHUFFLE)
        carrier.fail(Kind.REPEAT)
        fetched = await fetch(carrier)
        assert {chapter.id for chapter in fetched.chapters} == expected
        assert len(fetched.chapters) == len(expected)


async def test_an_edit_keeps_the_id(carrier: Carrier) -> None:
    """A new title is the same release with another title, also when only changes are asked for."""
    own = carrier.publish("4", "Befor")
    before = {chapter.id: chapter for chapter in (await fetch(carrier)).chapters}
    carrier.clock.pass_by()
    asked = carrier.clock()
    carrier.edit(own, "Before")
    after = {chapter.id: chapter for chapter in (await fetch(carrier, since=asked)).chapters}
    changed = [own for own, chapter in after.items() if before[own].title != chapter.title]
    assert len(changed) == 1
    assert after[changed[0]].number.number == Decimal(4)
    assert "Before" in (after[changed[0]].title or "")


async def test_what_is_deleted_is_no_longer_given(carrier: Carrier) -> None:
    """A deletion takes one away and leaves the others as they were."""
    before = await fetch(carrier)
    own = carrier.publish("4")
    carrier.clock.pass_by()
    carrier.delete(own)
    assert set((await fetch(carrier)).chapters) == set(before.chapters)


async def test_two_uploads_of_a_chapter_are_one_chapter(carrier: Carrier) -> None:
    """Two groups' uploads have two ids and one slug."""
    carrier.publish("4", group="A")
    carrier.publish("4", group="B")
    found = [chapter for chapter in (await fetch(carrier)).chapters if chapter.number.number == Decimal(4)]
    assert len({chapter.id for chapter in found}) == 2
    assert len({chapter.number.slug for chapter in found}) == 1
    assert {chapter.group for chapter in found} == {"A", "B"}


async def test_specials_without_a_number_stay_apart(carrier: Carrier) -> None:
    """An omake, an extra and a notice are three, none of them is a chapter with a number."""
    for title in ("Omake", "Extra 2", "Extra: The Beach", "Notice. 2026 hiatus"):
        carrier.publish(None, title)
    fetched = await fetch(carrier)
    assert numbers(fetched) == NUMBERS
    special = [chapter.number.slug for chapter in fetched.chapters if chapter.number.number is None]
    assert sorted(special) == ["extra-2", "extra-the-beach", "notice-2026-hiatus", "omake"]


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [("7", 7), (None, None), ("0", None), ("soon", None), ("-1", None)]
)
async def test_a_rate_limit_is_told_with_its_wish(
    carrier: Carrier, retry_after: str | None, seconds: int | None
) -> None:
    """429 is RateLimited, with the time the server named, if it named one."""
    carrier.fail(Kind.STATUS, 429, retry_after)
    with pytest.raises(RateLimited) as caught:
        await fetch(carrier)
    assert (caught.value.after.total_seconds() if caught.value.after else None) == seconds
    assert numbers(await fetch(carrier)) == NUMBERS


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_fault_that_passes_is_told_as_such(carrier: Carrier, status: int) -> None:
    """5xx is NotYet, and the next fetch is as if nothing had been."""
    carrier.fail(Kind.STATUS, status)
    with pytest.raises(NotYet) as caught:
        await fetch(carrier)
    assert not isinstance(caught.value, RateLimited)
    assert numbers(await fetch(carrier)) == NUMBERS


@pytest.mark.parametrize("kind", [Kind.RESET, Kind.CUT, Kind.LATENCY])
async def test_a_torn_connection_is_a_fault_that_passes(carrier: Carrier, kind: Kind) -> None:
    """No answer, half an answer and an answer too late are NotYet, never half a list."""
    carrier.fail(kind)
    with pytest.raises(NotYet):
        await fetch(carrier)
    assert numbers(await fetch(carrier)) == NUMBERS


@pytest.mark.parametrize("kind", [Kind.PAGE, Kind.EMPTY])
async def test_something_else_is_unreadable(carrier: Carrier, kind: Kind) -> None:
    """A web page or nothing in place of the list is not an empty list."""
    carrier.fail(kind)
    with pytest.raises(Unreadable):
        await fetch(carrier)
    assert numbers(await fetch(carrier)) == NUMBERS


async def test_a_place_that_is_not_there_is_refused(carrier: Carrier) -> None:
    """Neither an empty list nor a passing fault: a person has to look."""
    other = {"feed": f"{carrier.place.ref}x", "mangadex": "00000000-0000-4000-8000-000000000000", "mangapark": "999"}
    place = Place(other.get(carrier.source.name, "nowhere"))
    with pytest.raises((Gone, Refused)):
        await carrier.source.fetch(carrier.http, place)


async def test_gone_for_good_is_told(carrier: Carrier) -> None:
    """410 is Gone."""
    carrier.fail(Kind.STATUS, 410)
    with pytest.raises(Gone):
        await fetch(carrier)


async def test_nothing_is_ever_made_up(carrier: Carrier) -> None:
    """Sixty fetches with every fault there is: a failure or true chapters, each once, and at the end all of them."""
    for number in range(4, 40):
        carrier.publish(str(number), f"Title {number}")
    truth = {chapter.id: chapter.number for chapter in (await fetch(carrier)).chapters}
    given = 0
    for at in range(60):
        kinds = [kind for kind in Kind if kind is not Kind.LATENCY]
        carrier.fail(kinds[at % len(kinds)], (429, 500, 503)[at % 3])
        carrier.fail(Kind.SHUFFLE)
        with suppress(Failure):
            fetched = await fetch(carrier)
            assert {chapter.id: chapter.number for chapter in fetched.chapters}.items() <= truth.items()
            assert len({chapter.id for chapter in fetched.chapters}) == len(fetched.chapters)
            given += 1
        carrier.behave()
    assert given
    assert {chapter.id: chapter.number for chapter in (await fetch(carrier)).chapters} == truth
