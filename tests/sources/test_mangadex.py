"""MangaDex: real items parse, pages join, the cap is kept, and its refusals are told apart."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.decisions.chapter_number import Kind
from imprint.sandbox.serial_world import World
from imprint.sandbox.serials import serials, serving
from imprint.sources.contract import Gone, Place, RateLimited, Refused, State, Unreadable
from imprint.sources.mangadex import CAP, PAGE, MangaDex, _chapter
from imprint.sources.shape import Misshapen
from tests.sources.canned import Canned, canned

MANGA = Place("32d76d19-8a05-4db0-9fc2-e0b0648fe9d0")


@pytest.fixture
async def server() -> AsyncIterator[Canned]:
    """Give a server that answers as it is told."""
    async with canned() as one:
        yield one


def collection(*items: Any, total: int | None = None) -> str:
    """Write an answer of the API."""
    return json.dumps(
        {"result": "ok", "response": "collection", "data": items, "total": len(items) if total is None else total}
    )


def item(own: str = "a", **attributes: Any) -> dict[str, Any]:
    """Write an item of the API."""
    fields = {"chapter": "1", "volume": None, "title": "", "translatedLanguage": "en", "externalUrl": None}
    return {"id": own, "type": "chapter", "attributes": fields | attributes, "relationships": []}


async def test_real_items_parse(recorded: Path, server: Canned) -> None:
    """All hundred recorded items are read by the same code, none is set aside, and their numbers are exact."""
    body = json.loads((recorded / "mangadex" / "hondana__chapter_feed.json").read_text(encoding="utf-8"))
    body["total"] = len(body["data"])
    server.say(json.dumps(body))
    fetched = await MangaDex(server.base).fetch(server.http, MANGA)
    assert len(fetched.chapters) == 100
    assert fetched.set_aside == ()
    by_id = {chapter.id: chapter for chapter in fetched.chapters}
    for raw in body["data"]:
        chapter, fields = by_id[raw["id"]], raw["attributes"]
        if fields["chapter"] is None:
            assert (chapter.number.number, chapter.number.slug, chapter.number.kind) == (None, "oneshot", Kind.SPECIAL)
        else:
            assert chapter.number.number == Decimal(fields["chapter"])
        assert chapter.number.volume == (None if fields["volume"] is None else Decimal(fields["volume"]))
        assert chapter.title is None or chapter.title == "Oneshot"
        assert chapter.language == fields["translatedLanguage"]
        assert chapter.group
        assert chapter.published_at == datetime.fromisoformat(fields["readableAt"])
        assert chapter.updated_at == datetime.fromisoformat(fields["updatedAt"])
        assert chapter.url == f"https://mangadex.org/chapter/{chapter.id}"
        assert not chapter.external
    assert fetched.chapters[0].group == "Doki Fansubs"


async def test_a_real_chapter_of_two_groups_names_both(recorded: Path) -> None:
    """The recorded single chapter has its number, its title and its groups."""
    raw = json.loads((recorded / "mangadex" / "hondana__chapter.json").read_text(encoding="utf-8"))["data"]
    chapter = _chapter(raw, MANGA)
    assert (chapter.number.number, chapter.number.volume) == (Decimal(14), Decimal(4))
    assert chapter.title == "Nagatoro-San vs Senpai"
    assert chapter.group is not None
    assert chapter.group.startswith("S.T.A.L.K.E.R. & ")


async def test_an_external_chapter_leads_to_where_it_is_read(server: Canned) -> None:
    """A chapter that lives elsewhere has that address; one without groups is its uploader's."""
    uploader = {"type": "user", "attributes": {"username": "somebody"}}
    server.say(collection(item(externalUrl="https://elsewhere.example/1") | {"relationships": [uploader, None, {}]}))
    (chapter,) = (await MangaDex(server.base).fetch(server.http, MANGA)).chapters
    assert (chapter.external, chapter.url, chapter.group) == (True, "https://elsewhere.example/1", "somebody")


BAD: tuple[Any, ...] = (
    *({}, None, 5, "x", []),
    *({"id": "b"}, {"id": "b", "attributes": []}, {"id": None, "attributes": {}}, {"attributes": {}}),
    *(item("b", chapter=["1"]), item("b", title={"en": "x"}), item("b", title="x" * 5000)),
)


async def test_a_bad_item_is_set_aside_and_the_others_go_through(server: Canned) -> None:
    """Whatever stands among the items, the good ones before and after it arrive, and each bad one has its reason."""
    server.say(collection(item("a"), *BAD, item("z", chapter="2")))
    fetched = await MangaDex(server.base).fetch(server.http, MANGA)
    assert [chapter.id for chapter in fetched.chapters] == ["a", "z"]
    assert len(fetched.set_aside) == len(BAD)
    assert all(each.reason for each in fetched.set_aside)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "attributes", "x"]), inner, max_size=3)
    ),
    max_leaves=10,
)
FIELDS = st.dictionaries(
    st.sampled_from(
        ["chapter", "volume", "title", "translatedLanguage", "externalUrl", "publishAt", "readableAt", "updatedAt"]
    ),
    JSON,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({"id": JSON, "attributes": JSON | FIELDS, "relationships": JSON}) | JSON)
def test_no_item_is_too_odd(raw: Any) -> None:
    """Any JSON at all is either a chapter or misshapen, nothing else."""
    with suppress(Misshapen):
        assert _chapter(raw, MANGA).id


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (404, '{"result":"error","errors":[{"title":"Not Found","detail":"no"}]}', Gone),
        (400, '{"result":"error","errors":[{"title":"Bad","detail":"limit"}]}', Refused),
        (403, '{"result":"error","errors":[{"title":"Forbidden","detail":"you"}]}', Refused),
        (403, "", RateLimited),
        (403, "<html>", RateLimited),
        (429, "", RateLimited),
        (200, "", Unreadable),
        (200, "[]", Unreadable),
        (200, '{"result":"error","errors":[]}', Unreadable),
        (200, '{"result":"ok"}', Unreadable),
        (200, '{"result":"ok","data":{}}', Unreadable),
    ],
)
async def test_refusals_are_told_apart(server: Canned, status: int, body: str, failure: type[Exception]) -> None:
    """Its own errors are believed; a bare 403 is the gate that shuts out those who asked too fast."""
    server.say(body, status)
    with pytest.raises(failure) as caught:
        await MangaDex(server.base).fetch(server.http, MANGA)
    assert type(caught.value) is failure


@pytest.mark.parametrize("ref", ["", "x", "../../manga", "32d76d19-8a05-4db0-9fc2-e0b0648fe9d0/../x", "32d76d19"])
async def test_only_a_uuid_is_put_into_the_path(server: Canned, ref: str) -> None:
    """A place that is not an id is refused before anything is asked."""
    with pytest.raises(Refused):
        await MangaDex(server.base).fetch(server.http, Place(ref))
    assert server.requests == []


async def test_the_request_is_as_the_api_wants_it(server: Canned) -> None:
    """Pages of 500, all ratings, the languages asked for, and a time in UTC that does not say so."""
    server.say(collection())
    since = datetime(2024, 5, 1, 12, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))
    place = Place(MANGA.ref, languages=("en", "es-la"))
    await MangaDex(server.base).fetch(server.http, place, since=since)
    query = server.requests[0].query_params
    assert server.requests[0].url.path == f"/manga/{MANGA.ref}/feed"
    assert (query["limit"], query["offset"], query["updatedAtSince"]) == ("500", "0", "2024-05-01T10:00:00")
    assert query.getlist("translatedLanguage[]") == ["en", "es-la"]
    assert set(query.getlist("contentRating[]")) == {"safe", "suggestive", "erotica", "pornographic"}
    assert query["order[createdAt]"] == "asc"
    assert "via" not in server.requests[0].headers


async def test_pages_are_joined_and_the_cap_is_kept() -> None:
    """Behind 10,000 results the next fetch goes on from where this one ended, until every chapter was given."""
    world = World()
    series = world.add("Long")
    start = datetime(2020, 1, 1, tzinfo=UTC)
    for at in range(CAP + 700):
        world.publish(series, str(at + 1), at=start + timedelta(minutes=at))
    async with serving(serials(world)) as base, httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        source = MangaDex(f"{base}/mangadex")
        first = await source.fetch(http, Place(series.id))
        assert len(first.chapters) == CAP
        assert not first.complete
        assert len(world.log.lines) == CAP // PAGE
        second = await source.fetch(http, Place(series.id), first.state)
        assert second.complete
        assert second.state == State()
    numbers = {chapter.number.number for fetched in (first, second) for chapter in fetched.chapters}
    assert numbers == {Decimal(at + 1) for at in range(CAP + 700)}
    assert all(line.status == 200 for line in world.log.lines)


async def test_a_deletion_between_two_pages_hides_nothing(server: Canned) -> None:
    """When the total shrinks while we page, the list moved up by one: we look again from the start."""
    items = [item(f"i{at}", chapter=str(at)) for at in range(PAGE + 2)]
    pages = [
        collection(*items[:PAGE], total=PAGE + 2),
        collection(*items[PAGE + 1 :], total=PAGE + 1),
        collection(*items[1 : PAGE + 1], total=PAGE + 1),
        collection(*items[PAGE + 1 :], total=PAGE + 1),
    ]
    server.say("")
    server.answers = [type(server.answers[0])(page) for page in pages]
    fetched = await MangaDex(server.base).fetch(server.http, MANGA)
    assert {f"i{at}" for at in range(1, PAGE + 2)} <= {chapter.id for chapter in fetched.chapters}
    assert len(server.requests) == 4
