"""MangaPark: `POST /apo/`, its historic GraphQL; closed in January 2026, so the base is whoever still speaks it."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import urljoin

import httpx2

from imprint.decisions.chapter_number import from_name
from imprint.sources.answer import Answer, ask
from imprint.sources.contract import NO_STATE, Chapter, Fetched, Gone, Place, Refused, SetAside, State, Unreadable
from imprint.sources.moment import from_epoch
from imprint.sources.shape import Misshapen, listing, mapping, optional, text

BASE = "https://mangapark.net"
LARGEST = 16 * 1024 * 1024
_FIELDS = "id dname title lang dateCreate dateModify urlPath srcTitle userNode { data { name } }"
QUERY = (
    "query get_comicChapterList($comicId: ID!) { get_comicChapterList(comicId: $comicId) "
    f"{{ data {{ {_FIELDS} dupChapters {{ data {{ {_FIELDS} }} }} }} }} }}"
)
_ID = re.compile(r"\d{1,12}")


class MangaPark:
    """Reads series by MangaPark's GraphQL; it has neither paging nor dates to ask by, so each answer is everything."""

    name: ClassVar[str] = "mangapark"
    gap: ClassVar[timedelta] = timedelta(seconds=1)
    conditional: ClassVar[bool] = False

    def __init__(self, base: str = BASE) -> None:
        self._base = base.rstrip("/")

    async def fetch(
        self,
        http: httpx2.AsyncClient,
        place: Place,
        state: State = NO_STATE,  # noqa: ARG002 - there is nothing to go on from
        since: datetime | None = None,  # noqa: ARG002 - nor a filter
    ) -> Fetched:
        """Ask for the whole list."""
        if not _ID.fullmatch(place.ref):
            raise Refused("source.bad_place", "A MangaPark series is named by its number.")
        try:
            request = http.build_request(
                "POST", f"{self._base}/apo/", json={"query": QUERY, "variables": {"comicId": place.ref}}
            )
        except (httpx2.InvalidURL, ValueError) as error:
            raise Refused("source.bad_url", f"This is not a URL that can be asked: {str(error)[:200]}.") from error
        answer = await ask(http, request, LARGEST)
        answer.settle()
        chapters: dict[str, Chapter] = {}
        aside: list[SetAside] = []
        for item in _items(answer):
            for node in _with_doubles(item):
                try:
                    chapter = self._chapter(node, place)
                    chapters[chapter.id] = chapter
                except Misshapen as error:
                    aside.append(SetAside(_id(node), str(error), repr(node)[:300]))
        found = tuple(
            each for each in chapters.values() if not place.languages or each.language in {None, *place.languages}
        )
        return Fetched(found, wish=answer.wish(), whole=True, set_aside=tuple(aside), moved_to=answer.moved_to)

    def _chapter(self, node: Any, place: Place) -> Chapter:
        fields = mapping(mapping(node, "the item").get("data"), "data")
        own = text(fields.get("id"), "id")
        name = text(fields.get("dname"), "dname")
        path = optional(fields.get("urlPath"), "urlPath")
        user = fields.get("userNode")
        uploader = (
            user.get("data", {}).get("name") if isinstance(user, dict) and isinstance(user.get("data"), dict) else None
        )
        return Chapter(
            id=own,
            number=from_name(name, series=place.title, fallback=own),
            title=optional(fields.get("title"), "title"),
            url=urljoin(f"{self._base}/", path) if path else None,
            language=optional(fields.get("lang"), "lang"),
            group=optional(fields.get("srcTitle"), "srcTitle") or optional(uploader, "userNode"),
            published_at=from_epoch(fields.get("dateCreate")),
            updated_at=from_epoch(fields.get("dateModify")),
        )


def _items(answer: Answer) -> list[Any]:
    try:
        body = mapping(answer.json(), "the answer")
        data = body.get("data")
        if body.get("errors"):
            raise Refused("source.graphql", f"MangaPark refused: {str(body['errors'])[:200]}.")
        found = mapping(data, "data").get("get_comicChapterList")
        if found is None:
            raise Gone("source.gone", "MangaPark has no such series.")
        return listing(found, "get_comicChapterList")
    except Misshapen as error:
        raise Unreadable("source.misshapen", f"MangaPark answered something else: {error}.") from error


def _with_doubles(item: Any) -> Iterator[Any]:
    """Give an item, then the uploads of the same chapter that the site folds under it."""
    yield item
    data = item.get("data") if isinstance(item, dict) else None
    doubles = data.get("dupChapters") if isinstance(data, dict) else None
    if isinstance(doubles, list):
        yield from doubles


def _id(node: Any) -> str | None:
    data = node.get("data") if isinstance(node, dict) else None
    return str(data["id"])[:100] if isinstance(data, dict) and "id" in data else None
