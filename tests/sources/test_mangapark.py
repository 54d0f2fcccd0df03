"""MangaPark: names are read, folded uploads unfold, refusals are told apart."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from imprint.sources.contract import Gone, Place, Refused, Unreadable
from imprint.sources.mangapark import MangaPark
from tests.sources.canned import Canned, canned

COMIC = Place("74763", title="100% Perfect Girl")


@pytest.fixture
async def server() -> AsyncIterator[Canned]:
    """Give a server that answers as it is told."""
    async with canned() as one:
        yield one


def listed(*nodes: Any) -> str:
    """Write an answer of the API."""
    return json.dumps({"data": {"get_comicChapterList": nodes}})


def node(own: Any = "1", dname: Any = "Vol.3 Ch.12", **more: Any) -> dict[str, Any]:
    """Write an item of the API."""
    return {
        "data": {"id": own, "dname": dname, "title": None, "dateCreate": 1704067200000, "urlPath": "/title/1/2", **more}
    }


async def test_names_become_numbers_and_folded_uploads_unfold(server: Canned) -> None:
    """Two uploads of one chapter are two releases with the same slug, each with its own uploader."""
    double = node(2, "Chapter 12", srcTitle="Other", userNode={"data": {"name": "b"}})
    server.say(listed(node(1, srcTitle=None, userNode={"data": {"name": "a"}}, dupChapters=[double])))
    fetched = await MangaPark(server.base).fetch(server.http, COMIC)
    one, two = fetched.chapters
    assert (one.id, one.number.number, one.number.volume, one.group) == ("1", Decimal(12), Decimal(3), "a")
    assert (two.id, two.number.slug, two.group) == ("2", one.number.slug, "Other")
    assert one.published_at == datetime(2024, 1, 1, tzinfo=UTC)
    assert one.url == f"{server.base}/title/1/2"
    body = json.loads(await server.requests[0].body())
    assert body["variables"] == {"comicId": "74763"}
    assert "get_comicChapterList" in body["query"]
    assert server.requests[0].url.path == "/apo/"


async def test_the_series_title_is_not_part_of_the_names(server: Canned) -> None:
    """A number of the title is not a chapter's."""
    server.say(listed(node(1, "100% Perfect Girl"), node(2, "100% Perfect Girl 5")))
    fetched = await MangaPark(server.base).fetch(server.http, COMIC)
    assert [chapter.number.number for chapter in fetched.chapters] == [None, Decimal(5)]


async def test_a_bad_item_is_set_aside_and_the_others_go_through(server: Canned) -> None:
    """Items and folded items of any shape leave the good ones alone."""
    bad: list[Any] = [
        None,
        5,
        [],
        {},
        {"data": None},
        node(None),
        node("x", None),
        node("x", {"a": 1}),
        node("x", "Ch.1", title=[1]),
    ]
    folded = node("c", "Ch.3", dupChapters=[None, node("d", "Ch.3"), {"data": {}}])
    server.say(listed(node("a", "Ch.1"), *bad, folded, node("z", "Ch.2", dupChapters=5, userNode="?", dateCreate="?")))
    fetched = await MangaPark(server.base).fetch(server.http, COMIC)
    assert [chapter.id for chapter in fetched.chapters] == ["a", "c", "d", "z"]
    assert len(fetched.set_aside) == len(bad) + 2


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (200, '{"data":{"get_comicChapterList":null}}', Gone),
        (200, '{"errors":[{"message":"no"}]}', Refused),
        (200, '{"data":null}', Unreadable),
        (200, '{"data":{"get_comicChapterList":{}}}', Unreadable),
        (200, "<html>", Unreadable),
        (403, "", Refused),
        (307, "", Refused),
    ],
)
async def test_refusals_are_told_apart(server: Canned, status: int, body: str, failure: type[Exception]) -> None:
    """GraphQL's errors, its nulls and other people's pages each have their failure."""
    server.say(body, status)
    with pytest.raises(failure) as caught:
        await MangaPark(server.base).fetch(server.http, COMIC)
    assert type(caught.value) is failure


@pytest.mark.parametrize("ref", ["", "x", "1/2", "1 or 1=1"])
async def test_only_a_number_is_asked_for(server: Canned, ref: str) -> None:
    """A place that is no number is refused before anything is asked."""
    with pytest.raises(Refused):
        await MangaPark(server.base).fetch(server.http, Place(ref))
    assert server.requests == []
