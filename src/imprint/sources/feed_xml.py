"""RSS, RDF and Atom that are well-formed, read in one pass: time and memory grow with the bytes and no faster.

feedparser reads more dialects, but 250 kB of the right letters keep it busy for five minutes; so it reads only what is
broken, in a process that can be killed: see feed_salvage.
"""

import html
import re
from datetime import timedelta
from xml.parsers import expat

from imprint.sources.contract import Unreadable
from imprint.sources.feed_document import DEEPEST, LONGEST_READ, MOST_ITEMS, Document, Entry

_CORE = {  # namespaces whose elements are a feed's own
    "",
    "http://www.w3.org/2005/Atom",
    "http://purl.org/atom/ns#",
    "http://purl.org/rss/1.0/",
    "http://my.netscape.com/rdf/simple/0.9/",
    "http://channel.netscape.com/rdf/simple/0.9/",
    "http://backend.userland.com/rss2",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
_DUBLIN = {"http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"}
_SYNDICATION = "http://purl.org/rss/1.0/modules/syndication/"
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
_ROOTS = {"rss", "rdf", "feed", "channel"}
_ITEMS = {"item", "entry"}

# What an item's element fills; of several the first in the document counts, as readers do it.
_FIELDS = {
    "title": "title",
    "link": "link",
    "guid": "id",
    "id": "id",
    "pubdate": "published",
    "published": "published",
    "issued": "published",
    "created": "published",
    "date": "published",
    "updated": "updated",
    "modified": "updated",
    "author": "author",
    "creator": "author",
    "language": "language",
}
_ABOUT = {"title", "language", "ttl", "hour", "day", "updateperiod", "updatefrequency"}  # of the feed itself
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PERIODS = {"hourly": 1, "daily": 24, "weekly": 168, "monthly": 720, "yearly": 8760}  # hours
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,30});")
_XML_OWN = {"amp", "lt", "gt", "quot", "apos"}


class Broken(ValueError):  # noqa: N818 - it is a state, not an accident
    """The document is not well-formed."""


def parse(text: str) -> Document:
    """Read a document; raise Broken when it is not well-formed, Unreadable when it is no feed or a hostile one."""
    try:
        return _parse(text)
    except Broken:
        # The commonest fault of all: HTML's named letters, which XML does not know.
        known = _NAMED.sub(lambda found: found[0] if found[1] in _XML_OWN else html.unescape(found[0]), text)
        if known == text:
            raise
        return _parse(known)


def _parse(text: str) -> Document:
    reader = _Reader()
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.EntityDeclHandler = reader.entity
    try:
        parser.Parse(text.encode(), True)  # noqa: FBT003 - the last piece; the C function takes no names
    except expat.ExpatError as error:
        raise Broken(f"{expat.ErrorString(error.code)} in line {error.lineno}") from error
    return reader.document()


class _Reader:
    """Follows the parser through a document."""

    def __init__(self) -> None:
        self._depth = 0
        self._item: dict[str, str] | None = None
        self._item_depth = 0
        self._field: str | None = None
        self._field_depth = 0
        self._pieces: list[str] = []
        self._size = 0
        self._about: dict[str, str] = {}
        self._hours: set[int] = set()
        self._days: set[int] = set()
        self._entries: list[Entry] = []
        self._left_off = False

    def entity(self, name: str, *_: object) -> None:
        """Refuse documents that declare entities: no feed needs them, and a kilobyte of them makes a gigabyte."""
        raise Unreadable("feed.entities", f"The feed declares an entity ({name[:50]}), which none has to.")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Go one deeper."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unreadable("feed.too_deep", f"The feed is nested more than {DEEPEST} deep.")
        space, _, local = name.rpartition(" ")
        local = local.lower()
        if self._depth == 1 and local not in _ROOTS:
            what = "a web page" if local == "html" else f"a document of <{local[:50]}>"
            raise Unreadable("feed.not_a_feed", f"This is {what}, not a feed.")
        if self._field is not None:
            return
        if local in _ITEMS and space in _CORE and self._item is None:
            self._item, self._item_depth = {}, self._depth
            for key, value in attributes.items():
                if key.endswith("#about"):  # RDF names its items outside of them
                    self._item["about"] = value[:LONGEST_READ]
                if key == _LANGUAGE:
                    self._item["language"] = value[:LONGEST_READ]
            return
        if self._item is not None and self._depth == self._item_depth + 1:
            self._item_element(space, local, attributes)
        elif self._item is None and local in _ABOUT and (space in _CORE | _DUBLIN or space == _SYNDICATION):
            self._open(local)

    def _item_element(self, space: str, local: str, attributes: dict[str, str]) -> None:
        if self._item is None or (space not in _CORE and space not in _DUBLIN):
            return
        if local == "link" and "href" in attributes:
            if attributes.get("rel", "alternate") == "alternate":
                self._item.setdefault("link", attributes["href"].strip()[:LONGEST_READ])
        elif local in _FIELDS:
            if local == "guid" and attributes.get("isPermaLink", "true").lower() != "false":
                self._item["permalink"] = ""
            self._open(_FIELDS[local])

    def _open(self, field: str) -> None:
        self._field, self._field_depth, self._pieces, self._size = field, self._depth, [], 0

    def data(self, text: str) -> None:
        """Collect what is inside an element that is wanted, and no more of it than is read."""
        if self._field is not None and self._size <= LONGEST_READ:
            self._pieces.append(text)
            self._size += len(text)

    def end(self, _name: str) -> None:
        """Come back up."""
        if self._field is not None and self._depth == self._field_depth:
            value = " ".join("".join(self._pieces).split())[:LONGEST_READ]
            field, self._field = self._field, None
            if value and self._item is not None:
                self._item.setdefault(field, value)
            elif value:
                self._tell(field, value)
        elif self._item is not None and self._depth == self._item_depth:
            item, self._item = self._item, None
            self._keep(item)
        self._depth -= 1

    def _keep(self, item: dict[str, str]) -> None:
        if len(self._entries) >= MOST_ITEMS:
            self._left_off = True
            return
        own = item.get("id") or item.get("about")
        if "permalink" in item and own and "link" not in item:
            item["link"] = own
        fields = ("title", "link", "published", "updated", "author", "language")
        self._entries.append(Entry(id=own, **{name: item.get(name) for name in fields}))

    def _tell(self, field: str, value: str) -> None:
        if field == "hour" and value.isascii() and value.isdecimal() and int(value[:4]) <= 24:  # noqa: PLR2004 - 24 is 0
            self._hours.add(int(value[:4]) % 24)
        elif field == "day" and value.lower() in _DAYS:
            self._days.add(_DAYS.index(value.lower()))
        else:
            self._about.setdefault(field, value)

    def document(self) -> Document:
        """Give what was read."""
        return Document(
            entries=tuple(self._entries),
            title=self._about.get("title"),
            language=self._about.get("language"),
            every=every(self._about),
            skip_hours=frozenset(self._hours) if len(self._hours) < 24 else frozenset(),  # noqa: PLR2004 - a day: never is a mistake
            skip_days=frozenset(self._days) if len(self._days) < 7 else frozenset(),  # noqa: PLR2004 - a week
            left_off=self._left_off,
        )


def every(about: dict[str, str]) -> timedelta | None:
    """Say how often a feed claims to change: its ttl in minutes, or so many times in a period."""
    ttl = about.get("ttl", "")
    if re.fullmatch(r"\d{1,7}", ttl) and int(ttl):
        return timedelta(minutes=int(ttl))
    hours = _PERIODS.get(about.get("updateperiod", "").lower())
    times = about.get("updatefrequency", "1")
    if hours is None or not re.fullmatch(r"\d{1,5}", times) or not int(times):
        return None
    return timedelta(hours=hours) / int(times)
