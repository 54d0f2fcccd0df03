"""MangaDex: `GET /manga/{id}/feed`, five requests a second, at most 10,000 results however they are paged."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import httpx2

from imprint.decisions.chapter_number import from_fields
from imprint.sources.answer import Answer, ask, get
from imprint.sources.contract import (
    NO_STATE,
    Chapter,
    Fetched,
    Gone,
    Place,
    RateLimited,
    Refused,
    SetAside,
    State,
    Unreadable,
)
from imprint.sources.moment import moment
from imprint.sources.shape import Misshapen, listing, mapping, optional, text

BASE = "https://api.mangadex.org"
READER = "https://mangadex.org/chapter/"
PAGE = 500
CAP = 10_000
LARGEST = 16 * 1024 * 1024
RATINGS = ("safe", "suggestive", "erotica", "pornographic")
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class MangaDex:
    """Reads series from MangaDex, or from whoever speaks like it."""

    name: ClassVar[str] = "mangadex"
    gap: ClassVar[timedelta] = timedelta(milliseconds=250)
    conditional: ClassVar[bool] = False

    def __init__(self, base: str = BASE) -> None:
        self._base = base.rstrip("/")

    async def fetch(
        self, http: httpx2.AsyncClient, place: Place, state: State = NO_STATE, since: datetime | None = None
    ) -> Fetched:
        """Page through the feed, oldest first: what is added meanwhile comes at the end and moves nothing."""
        if not _ID.fullmatch(place.ref):
            raise Refused("source.bad_place", "A MangaDex series is named by its UUID.")
        chapters: dict[str, Chapter] = {}
        aside: list[SetAside] = []
        offset, total, last, restarted = 0, 1, state.cursor, False
        while offset < min(total, CAP):
            answer = await self._page(http, place, state, since, offset)
            before, (items, total) = total, _items(answer)
            if offset and total < before and not restarted:
                offset, restarted = 0, True  # something was deleted: the rest moved up, one may have slipped by
                continue
            for item in items:
                last = _created(item) or last
                try:
                    chapter = _chapter(item, place)
                    chapters[chapter.id] = chapter
                except Misshapen as error:
                    aside.append(SetAside(_id(item), str(error), repr(item)[:300]))
            offset += PAGE
            if not items:
                break
        # Behind the cap the list goes on from the last one's time, in the next fetch: a poll has an end.
        capped = total > CAP and last is not None and last != state.cursor
        return Fetched(
            tuple(chapters.values()),
            State(cursor=last if capped else None),
            answer.wish(),
            complete=not capped,
            whole=not capped and since is None and state.cursor is None,
            set_aside=tuple(aside),
            moved_to=answer.moved_to,
        )

    async def _page(
        self, http: httpx2.AsyncClient, place: Place, state: State, since: datetime | None, offset: int
    ) -> Answer:
        params: list[tuple[str, str]] = [("limit", str(min(PAGE, CAP - offset))), ("offset", str(offset))]
        params += [("translatedLanguage[]", language) for language in place.languages]
        params += [("contentRating[]", rating) for rating in RATINGS]
        params += [("includes[]", "scanlation_group"), ("includes[]", "user"), ("order[createdAt]", "asc")]
        params += [("includeFuturePublishAt", "0")]
        if since is not None:
            params.append(("updatedAtSince", _stamp(since)))
        if state.cursor is not None:
            params.append(("createdAtSince", state.cursor))
        answer = await ask(http, get(http, f"{self._base}/manga/{place.ref}/feed", params=params), LARGEST)
        if answer.status == httpx2.codes.NOT_FOUND:
            raise Gone("source.gone", "MangaDex has no such series.")
        if answer.status == httpx2.codes.FORBIDDEN and not _explained(answer):
            # Those who go on after a 429 get a bare 403 from the gate before the API.
            raise RateLimited("source.rate_limited", "The gate before MangaDex has shut us out.", answer.retry_after())
        if answer.status in {400, 403} and (why := _explained(answer)):
            raise Refused(f"source.http_{answer.status}", f"MangaDex refused: {why}.")
        answer.settle()
        return answer


def _items(answer: Answer) -> tuple[list[Any], int]:
    try:
        body = mapping(answer.json(), "the answer")
        if body.get("result") != "ok":
            raise Unreadable("source.not_ok", f"MangaDex answered without a result: {_explained(answer) or '?'}.")
        total = body.get("total")
        items = listing(body.get("data"), "data")
        return items, total if isinstance(total, int) and total >= 0 else len(items)
    except Misshapen as error:
        raise Unreadable("source.misshapen", f"MangaDex answered something else: {error}.") from error


def _chapter(item: Any, place: Place) -> Chapter:
    whole = mapping(item, "the item")
    own = text(whole.get("id"), "id")
    fields = mapping(whole.get("attributes"), "attributes")
    title = optional(fields.get("title"), "title")
    external = optional(fields.get("externalUrl"), "externalUrl")
    number = from_fields(
        optional(fields.get("chapter"), "chapter"),
        volume=optional(fields.get("volume"), "volume"),
        name=title,
        series=place.title,
        fallback=own,
    )
    return Chapter(
        id=own,
        number=number,
        title=title,
        url=external or f"{READER}{own}",
        language=optional(fields.get("translatedLanguage"), "translatedLanguage"),
        group=" & ".join(_groups(whole)) or None,
        published_at=moment(fields.get("readableAt")) or moment(fields.get("publishAt")),
        updated_at=moment(fields.get("updatedAt")),
        external=external is not None,
    )


def _groups(item: dict[str, Any]) -> Iterator[str]:
    """Name the groups; an upload without any is its uploader's own."""
    told = item.get("relationships")
    related = [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []
    for kind, field in (("scanlation_group", "name"), ("user", "username")):
        found = False
        for each in related:
            attributes = each.get("attributes")
            name = attributes.get(field) if isinstance(attributes, dict) else None
            if each.get("type") == kind and isinstance(name, str) and name.strip():
                found = True
                yield name.strip()[:200]
        if found:
            return


def _created(item: Any) -> str | None:
    fields = item.get("attributes") if isinstance(item, dict) else None
    created = moment(fields.get("createdAt")) if isinstance(fields, dict) else None
    return _stamp(created) if created else None


def _id(item: Any) -> str | None:
    return str(item["id"])[:100] if isinstance(item, dict) and "id" in item else None


def _explained(answer: Answer) -> str | None:
    """Read MangaDex's own errors; None when the answer carries none."""
    try:
        first = listing(mapping(answer.json(), "it").get("errors"), "errors")[0]
        return f"{mapping(first, 'it').get('title')}: {str(first.get('detail'))[:200]}"
    except (Misshapen, Unreadable, IndexError):
        return None


def _stamp(at: datetime) -> str:
    """Write a time as the API takes it: UTC, without saying so, whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
