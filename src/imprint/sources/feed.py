"""A feed: RSS, RDF, Atom or JSON Feed at any URL, asked for conditionally."""

import asyncio
from datetime import datetime, timedelta
from hashlib import sha256
from typing import ClassVar
from urllib.parse import urljoin, urlsplit

import httpx2

from imprint.decisions.chapter_number import from_name
from imprint.sources import feed_json, feed_xml
from imprint.sources.answer import LONGEST_WISH, Answer, ask, get
from imprint.sources.contract import NO_STATE, Chapter, Fetched, Place, SetAside, State, Unreadable, Wish
from imprint.sources.feed_document import LARGEST, LONGEST_TEXT, MOST_ITEMS, Document, Entry, decoded, plain
from imprint.sources.feed_salvage import salvage
from imprint.sources.moment import moment

LONGEST_TAG = 500
ACCEPT = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"


class Feed:
    """Reads a feed; the place is its URL."""

    name: ClassVar[str] = "feed"
    gap: ClassVar[timedelta] = timedelta(seconds=1)
    conditional: ClassVar[bool] = True

    async def fetch(
        self,
        http: httpx2.AsyncClient,
        place: Place,
        state: State = NO_STATE,
        since: datetime | None = None,  # noqa: ARG002 - a feed gives what it gives
    ) -> Fetched:
        """Ask for the feed, if it has changed."""
        headers = {"Accept": ACCEPT}
        if etag := _sendable(state.etag):
            headers["If-None-Match"] = etag
        if modified := _sendable(state.last_modified):
            headers["If-Modified-Since"] = modified
        answer = await ask(http, get(http, place.ref, headers=headers), LARGEST)
        answer.settle()
        if answer.status == httpx2.codes.NOT_MODIFIED:
            kept = _state(answer)
            kept = State(kept.etag or state.etag, kept.last_modified or state.last_modified)
            return Fetched(state=kept, wish=answer.wish(), not_modified=True, moved_to=answer.moved_to)
        document = await read(answer.body, answer.headers.get("content-type", ""))
        chapters: dict[str, Chapter] = {}
        aside: list[SetAside] = []
        for at, entry in enumerate(document.entries):
            if why := document.broken.get(at) or _lacking(entry):
                aside.append(SetAside(entry.id, why, repr(entry)[:300]))
                continue
            chapter = _chapter(entry, document, place, answer.url)
            chapters.setdefault(chapter.id, chapter)  # the newest comes first
        if document.left_off:
            aside.append(SetAside(None, f"the feed has more than {MOST_ITEMS} items; the others were not read", ""))
        return Fetched(
            tuple(chapters.values()),
            _state(answer),
            _wish(answer, document),
            set_aside=tuple(aside),
            moved_to=answer.moved_to,
            title=plain(document.title),
        )


async def read(data: bytes, content_type: str) -> Document:
    """Read a document in whatever dialect it is; in a thread, because megabytes take longer than a heartbeat waits."""
    text = await asyncio.to_thread(decoded, data, content_type)
    start = text.lstrip()[:1]
    if not start:
        raise Unreadable("feed.empty", "The feed is empty.")
    if start in "{[":
        return await asyncio.to_thread(feed_json.parse, text)
    if start != "<":
        raise Unreadable("feed.not_a_feed", "This is neither XML nor JSON.")
    try:
        return await asyncio.to_thread(feed_xml.parse, text)
    except feed_xml.Broken as error:
        return await salvage(text, str(error))


def _lacking(entry: Entry) -> str | None:
    return None if entry.id or entry.link or entry.title else "it has neither an id nor a link nor a title"


def _chapter(entry: Entry, document: Document, place: Place, base: str) -> Chapter:
    title = plain(entry.title)
    link = _link(entry.link, base)
    own = entry.id or entry.link or f"title:{_digest(entry.title or '')}"
    if len(own) > LONGEST_TEXT:
        own = f"sha256:{_digest(own)}"
    language = entry.language or document.language
    return Chapter(
        id=own,
        number=from_name(title or "", series=place.title or plain(document.title) or "", fallback=own),
        title=title,
        url=link,
        language=language.replace("_", "-").lower()[:20] if language else None,
        group=plain(entry.author),
        published_at=moment(entry.published) or moment(entry.updated),
        updated_at=moment(entry.updated),
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def _link(link: str | None, base: str) -> str | None:
    """Make a link whole; None when it leads to something else than the web."""
    if not link:
        return None
    try:
        whole = urljoin(base, link)
        return whole if urlsplit(whole).scheme in {"http", "https"} and len(whole) <= LONGEST_TEXT else None
    except ValueError:
        return None


def _state(answer: Answer) -> State:
    """Keep what the next request is made conditional by, if it can be sent back as it came."""
    return State(*(_sendable(answer.headers.get(name)) for name in ("etag", "last-modified")))


def _sendable(value: str | None) -> str | None:
    return value if value and value.isascii() and value.isprintable() and len(value) <= LONGEST_TAG else None


def _wish(answer: Answer, document: Document) -> Wish:
    told = answer.wish().after
    wishes = [wish for wish in (told, document.every) if wish]
    return Wish(min(max(wishes), LONGEST_WISH) if wishes else None, document.skip_hours, document.skip_days)
