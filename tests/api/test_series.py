"""Series, sources, chapters and the library over HTTP: what the command line does, each for its own person."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from imprint.engine import circuit
from imprint.engine.queue import Job
from imprint.sandbox.serial_world import World
from imprint.sandbox.serials import serials, serving
from imprint.store.db import Database
from imprint.work.poll import Poller
from tests.api.visitor import Town, Visitor, town
from tests.work.serials import add_series, add_source, take_in

FEED = {"place": "https://serials.example/feed", "title": "A tale"}


@asynccontextmanager
async def serial_town(database: Database, url: str, home: Path, world: World) -> AsyncIterator[tuple[Town, str]]:
    """Run the server beside a world of serials, which only the operator's permission lets it reach."""
    async with (
        serving(serials(world)) as there,
        town(
            database,
            url,
            home,
            IMPRINT_ALLOWED_HOSTS="127.0.0.1",
            IMPRINT_MANGADEX_BASE=f"{there}/mangadex",
            IMPRINT_FETCH_GAP_MS="1",
            IMPRINT_FETCH_SECONDS="5",
        ) as at,
    ):
        yield at, there


async def asked(at: Town, who: Visitor, source: str) -> dict[str, Any]:
    """Let a source be asked now, be the worker who does it, and give the source as it is then."""
    due = await who.post(f"/api/sources/{source}/poll", code=202)
    assert datetime.fromisoformat(due["nextCheckAt"]) <= datetime.now(UTC) + timedelta(seconds=1)
    poller = Poller.of(at.database, at.settings)
    try:
        await poller.poll(Job("poll", source))
    finally:
        await poller.fetcher.close()
    found: dict[str, Any] = await who.get(f"/api/sources/{source}")
    return found


def names(one: dict[str, Any]) -> list[str]:
    """Name the moves that are open."""
    return [each["name"] for each in one["moves"]]


async def walked(who: Visitor, path: str, limit: int) -> list[dict[str, Any]]:
    """Go through every page of a list."""
    found: list[dict[str, Any]] = []
    following: str | None = None
    while True:
        joint = "&" if "?" in path else "?"
        page = await who.get(f"{path}{joint}limit={limit}" + (f"&cursor={following}" if following else ""))
        assert len(page["items"]) <= limit
        found += page["items"]
        following = page["next"]
        if following is None:
            return found


async def test_a_series_is_added_asked_and_read(database: Database, database_url: str, home: Path) -> None:
    """Added by its address, asked at once, its chapters listed with their releases, read, renamed, removed."""
    world = World()
    tale = world.add("A long tale", 5)
    async with serial_town(database, database_url, home, world) as (at, there):
        ada = await at.first()
        made = await ada.post("/api/series", {"place": f"{there}/feeds/{tale.serial}.rss", "languages": ["EN"]}, 201)
        assert (made["followed"], made["mine"], made["sources"], made["chapters"]) == (True, True, 1, 0)
        assert names(made) == ["unfollow", "quiet", "rename", "remove"]
        path = f"/api/series/{made['id']}"
        (source,) = (await ada.get(f"{path}/sources"))["items"]
        assert (source["status"], source["languages"], source["error"]) == ("active", ["en"], None)
        assert names(source) == ["disable", "poll", "remove"]
        polled = await asked(at, ada, source["id"])
        assert (polled["releases"], polled["error"], polled["lastWorkedAt"] is not None) == (5, None, True)
        now = await ada.get(path)
        assert (now["title"], now["latestChapter"], now["unread"]) == ("A long tale", "5", 5)
        (newest, *_) = (await ada.get(f"{path}/chapters"))["items"]
        assert (newest["number"], newest["readAt"], names(newest)) == ("5", None, ["read"])
        (release,) = newest["releases"]
        assert (release["sourceId"], release["kind"], release["url"]) == (source["id"], "feed", newest["url"])
        assert await ada.get(f"{path}/chapters/{newest['id']}") == newest
        other = await ada.post(f"{path}/sources", {"place": f"mangadex:{tale.id}", "priority": "COLD"}, 201)
        assert (other["kind"], other["priority"], other["priorityFixed"]) == ("mangadex", "COLD", True)
        assert (await asked(at, ada, other["id"]))["releases"] == 5
        assert len((await ada.get(f"{path}/chapters/{newest['id']}"))["releases"]) == 2
        assert (await ada.patch(path, {"title": "Mine"}))["title"] == "Mine"
        await ada.delete(path)
        assert await ada.refused("GET", path) == (404, "series.missing")
        assert await ada.refused("GET", f"/api/sources/{source['id']}") == (404, "source.missing")


async def test_a_source_is_looked_after(at: Town) -> None:
    """Disabled, enabled, given a priority, removed; what is wrong with it is told, with its next try."""
    ada = await at.first()
    series = (await ada.post("/api/series", FEED, 201))["id"]
    (source,) = (await ada.get(f"/api/series/{series}/sources"))["items"]
    path = f"/api/sources/{source['id']}"
    off = await ada.post(f"{path}/disable")
    assert (off["status"], names(off)) == ("disabled", ["enable", "remove"])
    assert await ada.refused("POST", f"{path}/disable") == (409, "source.disabled")
    assert await ada.refused("POST", f"{path}/poll") == (409, "source.disabled")
    assert (await ada.post(f"{path}/enable"))["status"] == "active"
    assert (await ada.patch(path, {"priority": "COLD"}))["priorityFixed"]
    assert not (await ada.patch(path, {"priority": "auto"}))["priorityFixed"]
    assert await ada.get("/api/sources?failing=true") == {"items": [], "next": None}
    async with at.database.connection() as connection:
        await connection.execute("UPDATE source SET error_code = 'source.away', error = 'It is away.', failures = 2")
    (failing,) = (await ada.get("/api/sources?failing=true"))["items"]
    assert (failing["error"], failing["failures"]) == ("It is away.", 2)
    assert failing["nextCheckAt"]
    assert (await ada.get(f"/api/series/{series}"))["failing"] == 1
    again = {"place": FEED["place"]}
    assert await ada.refused("POST", f"/api/series/{series}/sources", again) == (409, "source.already_there")
    await ada.delete(path)
    assert (await ada.get(f"/api/series/{series}/sources"))["items"] == []


async def test_a_source_that_rests_is_tried(database: Database, database_url: str, home: Path) -> None:
    """Its circuit is open for a day, but a person wants it asked now: the next poll is the probe, and it recovers."""
    world = World()
    tale = world.add("A long tale", 2)
    async with serial_town(database, database_url, home, world) as (at, there):
        ada = await at.first()
        series = (await ada.post("/api/series", {"place": f"{there}/feeds/{tale.serial}.rss"}, 201))["id"]
        (source,) = (await ada.get(f"/api/series/{series}/sources"))["items"]
        async with at.database.connection() as connection:
            for _ in range(5):
                await circuit.failed(connection, f"source:{source['id']}", circuit.POLLING, "error", "It was away.")
            await connection.execute("UPDATE source SET status = 'resting', next_check_at = imprint_now() + '1 day'")
        assert (await ada.get(f"/api/sources/{source['id']}"))["status"] == "resting"
        tried = await asked(at, ada, source["id"])
        assert (tried["status"], tried["releases"]) == ("active", 2)


async def test_a_member_does_not_reach_into_the_network_of_the_machine(
    database: Database, database_url: str, home: Path
) -> None:
    """What the operator allowed is not for an address that a member gives; a base that the operator set is."""
    world = World()
    tale = world.add("A long tale", 3)
    async with serial_town(database, database_url, home, world) as (at, there):
        bob = await at.invited(await at.first(), "bob")
        place = f"{there}/feeds/{tale.serial}.rss"
        series = (await bob.post("/api/series", {"place": place, "title": "Inside"}, 201))["id"]
        (source,) = (await bob.get(f"/api/series/{series}/sources"))["items"]
        polled = await asked(at, bob, source["id"])
        assert (polled["releases"], polled["failures"]) == (0, 1)
        assert polled["error"] is not None
        assert world.log.lines == ()  # nobody was asked
        given = await bob.post(f"/api/series/{series}/sources", {"place": f"mangadex:{tale.id}"}, 201)
        assert (await asked(at, bob, given["id"]))["releases"] == 3


async def test_what_cannot_be_a_series_is_refused_with_its_field(at: Town) -> None:
    """A place that is none, a title that is none, a cursor that is none; the same place twice."""
    ada = await at.first()
    for given, code, field in (
        ({"place": "nonsense"}, "source.bad_place", "place"),
        ({"place": "ftp://serials.example/feed"}, "source.bad_place", "place"),
        ({"place": "http://me:secret@serials.example/"}, "source.bad_place", "place"),
        ({"place": "mangadex:7"}, "source.bad_place", "place"),
        ({"place": "https://serials.example/", "title": " "}, "series.bad_title", "title"),
        ({"place": "https://serials.example/", "languages": [" "]}, "source.bad_language", "languages"),
        ({"place": "https://serials.example/", "colour": 1}, "request.invalid", "colour"),
    ):
        answer = await ada.call("POST", "/api/series", given)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field), answer.text
    await ada.post("/api/series", FEED, 201)
    assert await ada.refused("POST", "/api/series", FEED) == (409, "series.already_there")
    series = (await ada.get("/api/series"))["items"][0]["id"]
    for path in ("/api/series", "/api/sources", "/api/library", f"/api/series/{series}/chapters", "/api/notices"):
        assert await ada.refused("GET", f"{path}?cursor=nonsense") == (422, "cursor.bad")


async def test_lists_are_read_a_page_at_a_time(at: Town) -> None:
    """Each is there once, in order, however small the pages are; also where numbers are missing."""
    ada = await at.first()
    async with at.database.connection() as connection:
        added = [str(await add_series(connection, f"Tale {number}")) for number in range(5)]
        source = await add_source(connection, UUID(added[0]))
        for number in range(3):
            await add_source(connection, UUID(added[0]), ref=f"https://example.org/{number}")
    chapters = ["Chapter 1", "Chapter 2.5", "S2 Chapter 1", "Extra 1", "An interlude", "Chapter 10", "S2 Chapter 2"]
    await take_in(at.database, UUID(added[0]), source, chapters)
    assert [each["id"] for each in await walked(ada, "/api/series", 2)] == added[::-1]
    assert [each["title"] for each in await walked(ada, "/api/series?text=TALE+3", 2)] == ["Tale 3"]
    assert len({each["id"] for each in await walked(ada, "/api/sources", 1)}) == 4
    assert await walked(ada, "/api/library", 1) == []
    whole = (await ada.get(f"/api/series/{added[0]}/chapters"))["items"]
    assert len(whole) == len(chapters)
    for limit in (1, 2, 3):
        assert await walked(ada, f"/api/series/{added[0]}/chapters", limit) == whole


async def test_the_library(at: Town) -> None:
    """Followed, quietly, at a source one likes; read by name, up to a number, and not after all; left."""
    ada = await at.first()
    series = (await ada.post("/api/series", {**FEED, "follow": False}, 201))["id"]
    (source,) = (await ada.get(f"/api/series/{series}/sources"))["items"]
    other = (await ada.post("/api/series", {"place": "https://serials.example/other", "title": "B"}, 201))["id"]
    path = f"/api/library/{series}"
    assert [each["id"] for each in (await ada.get("/api/library"))["items"]] == [other]
    assert await ada.refused("DELETE", path) == (409, "series.not_followed")
    followed = await ada.put(path, {})
    assert (followed["followed"], followed["notify"], followed["preferredSource"]) == (True, True, None)
    quiet = await ada.put(path, {"notify": False, "preferredSource": source["id"]})
    assert (quiet["notify"], quiet["preferredSource"]) == (False, source["id"])
    assert "notify" in names(quiet)
    wrong = {"preferredSource": source["id"]}
    assert await ada.refused("PUT", f"/api/library/{other}", wrong) == (422, "series.other_source")
    await take_in(at.database, UUID(series), UUID(source["id"]), ["Chapter 1", "Chapter 2", "Chapter 3", "Extra 1"])
    assert await ada.post(f"{path}/read", {"chapters": ["1", "Extra 1"]}) == {"id": series, "marked": 2, "unread": 2}
    assert (await ada.post(f"{path}/read", {"upTo": "2"}))["marked"] == 1
    assert (await ada.post(f"{path}/unread", {"chapters": ["1"]}))["unread"] == 2
    assert (await ada.post(f"{path}/read"))["unread"] == 0
    assert (await ada.post(f"{path}/unread"))["unread"] == 4
    assert await ada.refused("POST", f"{path}/read", {"upTo": "NaN"}) == (422, "request.invalid")
    await ada.delete(path)
    assert not (await ada.get(f"/api/series/{series}"))["followed"]


async def test_nobody_else_has_them(at: Town) -> None:
    """A series of somebody else is not there: not to be seen, followed, read, added to or asked."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    series = (await ada.post("/api/series", FEED, 201))["id"]
    (source,) = (await ada.get(f"/api/series/{series}/sources"))["items"]
    await take_in(at.database, UUID(series), UUID(source["id"]), ["Chapter 1"])
    (chapter,) = (await ada.get(f"/api/series/{series}/chapters"))["items"]
    for method, path, data in (
        ("GET", f"/api/series/{series}", None),
        ("PATCH", f"/api/series/{series}", {"title": "x"}),
        ("DELETE", f"/api/series/{series}", None),
        ("GET", f"/api/series/{series}/sources", None),
        ("POST", f"/api/series/{series}/sources", {"place": FEED["place"]}),
        ("GET", f"/api/series/{series}/chapters", None),
        ("GET", f"/api/series/{series}/chapters/{chapter['id']}", None),
        ("PUT", f"/api/library/{series}", {}),
        ("DELETE", f"/api/library/{series}", None),
        ("POST", f"/api/library/{series}/read", {}),
        ("POST", f"/api/library/{series}/unread", {}),
    ):
        assert await bob.refused(method, path, data) == (404, "series.missing"), (method, path)
    for method, move in (("GET", ""), ("POST", "/poll"), ("POST", "/disable"), ("POST", "/enable"), ("DELETE", "")):
        assert await bob.refused(method, f"/api/sources/{source['id']}{move}") == (404, "source.missing")
    assert await ada.refused("GET", f"/api/series/{series}/chapters/{2**62}") == (404, "chapter.missing")
    for path in ("/api/series", "/api/sources", "/api/library"):
        assert (await bob.get(path))["items"] == []
    mine = (await bob.post("/api/series", FEED, 201))["id"]
    assert await bob.refused("GET", f"/api/series/{mine}/chapters/{chapter['id']}") == (404, "chapter.missing")
    assert await ada.refused("GET", f"/api/series/{uuid4()}") == (404, "series.missing")


async def test_scopes_and_the_same_again(at: Town) -> None:
    """A key that may read does not write; with the same key of idempotency a series is added once."""
    ada = await at.first()
    program = await at.program(ada, "series:read")
    assert await program.refused("POST", "/api/series", FEED) == (403, "scope.lacking")
    assert await program.refused("GET", "/api/notices") == (403, "scope.lacking")
    once = {"Idempotency-Key": "k"}
    first = await ada.post("/api/series", FEED, 201, **once)
    assert await ada.post("/api/series", FEED, 201, **once) == first
    assert len((await program.get("/api/series"))["items"]) == 1
    eve = await at.invited(ada, "eve", "reader")
    assert (await eve.get(f"/api/series/{first['id']}"))["title"] == "A tale"
    assert await eve.refused("DELETE", f"/api/series/{first['id']}") == (403, "scope.lacking")
