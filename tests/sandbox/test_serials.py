"""The simulated sources: they grow, remember, refuse and fail as the real ones do, and write down what they did."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from imprint.sandbox.serial_faults import Fault, Kind
from imprint.sandbox.serial_world import World
from imprint.sandbox.serials import serials, serving

START = datetime(2026, 3, 1, tzinfo=UTC)


class Scene:
    """A world, its clock, and a client at its door."""

    def __init__(self) -> None:
        self.time = START
        self.world = World(now=lambda: self.time)
        self.series = self.world.add("A & B <c>", 3)
        self.http: httpx2.AsyncClient

    async def feed(self, **params: Any) -> httpx2.Response:
        """Ask as MangaDex is asked."""
        return await self.http.get(f"/mangadex/manga/{self.series.id}/feed", params=params)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """Serve a world of one series."""
    one = Scene()
    async with (
        serving(serials(one.world)) as base,
        httpx2.AsyncClient(base_url=base, headers={"User-Agent": "t/1"}, trust_env=False) as http,
    ):
        one.http = http
        yield one


async def test_a_series_grows_with_time(scene: Scene) -> None:
    """A new chapter is there whenever its interval is over, numbered on from the last, also after a long sleep."""
    scene.series.every = timedelta(hours=1)
    assert (await scene.feed()).json()["total"] == 3
    scene.time += timedelta(hours=1)
    assert (await scene.feed()).json()["total"] == 4
    scene.time += timedelta(hours=24)
    found = (await scene.feed(limit=500)).json()["data"]
    assert [item["attributes"]["chapter"] for item in found] == [str(at) for at in range(1, 29)]


async def test_all_doors_show_the_same_series(scene: Scene) -> None:
    """MangaDex, MangaPark and the three feeds tell of the same uploads, special letters and all."""
    scene.world.publish(scene.series, None, title="Extra: \"1 < 2\" & 'more'")
    graphql = {"query": "query { get_comicChapterList }", "variables": {"comicId": scene.series.serial}}
    park = (await scene.http.post("/mangapark/apo/", json=graphql)).json()["data"]["get_comicChapterList"]
    assert len(park) == (await scene.feed()).json()["total"] == 4
    for kind in ("rss", "atom", "json"):
        answer = await scene.http.get(f"/feeds/{scene.series.serial}.{kind}")
        assert answer.status_code == 200
        assert answer.text.count("sandbox.test/read/") == 4


@pytest.mark.parametrize(
    "params",
    [{"limit": 0}, {"limit": 501}, {"limit": "x"}, {"limit": 500, "offset": 9501},
     {"updatedAtSince": "2026-01-01T00:00:00Z"},
     {"updatedAtSince": "2026-01-01T00:00:00+00:00"}, {"createdAtSince": "yesterday"}],
)  # fmt: skip
async def test_what_mangadex_refuses_is_refused(scene: Scene, params: dict[str, Any]) -> None:
    """Page sizes, the cap and times with zones are a 400 with MangaDex's own shape of errors."""
    answer = await scene.feed(**params)
    assert answer.status_code == 400
    assert answer.json()["result"] == "error"
    assert answer.json()["errors"][0]["status"] == 400


async def test_a_client_without_a_name_or_through_a_proxy_is_refused(scene: Scene) -> None:
    """As the real gate does it."""
    path = f"/mangadex/manga/{scene.series.id}/feed"
    assert (await scene.http.get(path, headers={"User-Agent": ""})).status_code == 400
    assert (await scene.http.get(path, headers={"Via": "1.1 proxy"})).status_code == 400


async def test_conditional_requests_are_honoured(scene: Scene) -> None:
    """Unchanged is a 304 without a body; each change makes another tag."""
    path = f"/feeds/{scene.series.serial}.rss"
    first = await scene.http.get(path)
    again = await scene.http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    scene.world.publish(scene.series, "4")
    after = await scene.http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert after.status_code == 200
    assert after.headers["etag"] != first.headers["etag"]


async def test_those_who_ask_too_fast_are_limited_then_shut_out(scene: Scene) -> None:
    """Five a second pass, the sixth is a 429 that says until when, and who goes on gets a bare 403."""
    scene.world.rate = 5
    answers = [await scene.feed() for _ in range(10)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3 + [403] * 2
    assert int(answers[5].headers["x-ratelimit-retry-after"]) == int(START.timestamp()) + 1
    scene.time += timedelta(seconds=1)
    assert (await scene.feed()).status_code == 200


async def test_faults_happen_where_and_as_often_as_told(scene: Scene) -> None:
    """A rule counts down on its own paths and leaves the others alone."""
    scene.world.faults.add(Fault(Kind.STATUS, on="/feeds/", times=2, status=503, retry_after="9"))
    assert (await scene.feed()).status_code == 200
    answers = [await scene.http.get(f"/feeds/{scene.series.serial}.rss") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[0].headers["retry-after"] == "9"


async def test_chance_is_the_seeds(scene: Scene) -> None:
    """Half of many requests fail, and the same seed fails the same ones."""
    runs = []
    for _ in range(2):
        world = World(seed=7, now=lambda: scene.time)
        series = world.add("x", 1)
        world.faults.add(Fault(Kind.STATUS, chance=0.5))
        async with serving(serials(world)) as base, httpx2.AsyncClient(base_url=base, trust_env=False) as http:
            runs.append([(await http.get(f"/feeds/{series.serial}.json")).status_code for _ in range(40)])
    assert runs[0] == runs[1]
    assert 8 < runs[0].count(500) < 32


@pytest.mark.parametrize("kind", [Kind.RESET, Kind.CUT])
async def test_a_broken_connection_is_really_broken(scene: Scene, kind: Kind) -> None:
    """The client sees no answer, or the end of it before its length, and the server lives on."""
    scene.world.faults.add(Fault(kind, times=1))
    with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
        await scene.feed()
    assert (await scene.feed()).status_code == 200


async def test_latency_is_felt(scene: Scene) -> None:
    """A client that waits less than the delay gets nothing."""
    scene.world.faults.add(Fault(Kind.LATENCY, times=1, seconds=5))
    with pytest.raises(httpx2.ReadTimeout):
        await scene.http.get(f"/feeds/{scene.series.serial}.rss", timeout=0.05)


async def test_bodies_are_spoiled(scene: Scene) -> None:
    """Cut in the middle, in another encoding than said, empty, or a web page: each is a complete HTTP answer."""
    scene.world.publish(scene.series, "4", title="Начало")
    path = f"/feeds/{scene.series.serial}.rss"
    whole = (await scene.http.get(path)).content
    spoiled = {}
    for kind in (Kind.BROKEN, Kind.ENCODING, Kind.EMPTY, Kind.PAGE):
        scene.world.faults.add(Fault(kind, times=1))
        spoiled[kind] = (await scene.http.get(path)).content
    assert whole.startswith(spoiled[Kind.BROKEN])
    assert len(spoiled[Kind.BROKEN]) < len(whole)
    assert spoiled[Kind.ENCODING] == whole.decode().encode("cp1251")
    assert spoiled[Kind.EMPTY] == b""
    assert b"<html>" in spoiled[Kind.PAGE]


async def test_the_log_says_what_was_asked_and_answered(scene: Scene, tmp_path: Path) -> None:
    """Every request is one line, in memory and on disk, answered or not, and lines are only added."""
    file = tmp_path / "log.jsonl"
    world = World(now=lambda: scene.time, log=file)
    series = world.add("x", 2)
    async with serving(serials(world)) as base, httpx2.AsyncClient(base_url=base, trust_env=False) as http:
        await http.get(f"/feeds/{series.serial}.rss?a=b")
        world.faults.add(Fault(Kind.RESET, times=1))
        with pytest.raises(httpx2.HTTPError):
            await http.get("/feeds/9.rss")
        await http.get("/feeds/9.rss")
        shown = (await http.get("/sandbox/log")).json()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines == shown
    assert [(line["status"], line["items"], line["faults"]) for line in lines] == [
        (200, 2, []),
        (0, 0, ["reset"]),
        (404, 0, []),
    ]
    assert lines[0]["query"] == "a=b"


async def test_another_process_can_direct_it(scene: Scene) -> None:
    """Series, chapters and faults can be made over HTTP, as the demo does."""
    made = (await scene.http.post("/sandbox/series", json={"title": "New", "chapters": 1, "every": 60})).json()
    await scene.http.post(f"/sandbox/series/{made['number']}", json={"number": "2", "title": "Two"})
    assert "Chapter 2: Two" in (await scene.http.get(f"/feeds/{made['number']}.rss")).text
    next_one = await scene.http.post(f"/sandbox/series/{made['number']}", content="{}")  # as `curl -d '{}'` does
    assert next_one.json()["number"] == "3"
    assert (await scene.http.post(f"/sandbox/series/{made['number']}", json={"number": None})).json()["number"] is None
    await scene.http.post("/sandbox/faults", json={"kind": "status", "status": 502, "times": 1})
    assert (await scene.http.get(f"/feeds/{made['number']}.rss")).status_code == 502
    assert (await scene.http.post("/sandbox/series/999", json={})).status_code == 404


async def test_many_clients_are_served_at_once(scene: Scene) -> None:
    """A delay for one does not hold up the others."""
    scene.world.faults.add(Fault(Kind.LATENCY, seconds=0.2))
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(scene.feed() for _ in range(20)))
    assert loop.time() - began < 2
