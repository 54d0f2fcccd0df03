"""A place: where a source carries a series, read from what a person gave, and the host that is asked there."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from imprint.problem import Problem
from imprint.settings import Settings

LONGEST_REF = 2000
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DIGITS = re.compile(r"\d{1,12}")
_MANGADEX = re.compile(r"/(?:title|manga)/([0-9a-fA-F-]{36})(?:/|$)")
_MANGAPARK = re.compile(r"/(?:title|comic)/(\d{1,12})(?:[-/]|$)")
KINDS = {"mangadex": _UUID, "mangapark": _DIGITS, "feed": None}


@dataclass(frozen=True)
class Place:
    """A kind of source, and what names the series there."""

    kind: str
    ref: str

    @property
    def name(self) -> str:
        """Give a name to show while nobody has chosen another."""
        if self.kind != "feed":
            return f"{self.kind} {self.ref[:8]}"
        url = urlsplit(self.ref)
        return f"{url.hostname}{url.path.rstrip('/')}"[:100]


def read(text: str, settings: Settings) -> Place:
    """Read an address, or KIND:ID; an address that is none of a site we know is a feed's."""
    text = text.strip()
    if not text.isprintable() or not 1 <= len(text) <= LONGEST_REF:
        raise Problem("source.bad_place", "This is neither an address nor KIND:ID.")
    kind, colon, ref = text.partition(":")
    if colon and (kind in KINDS) and not text.startswith(("http://", "https://")):
        if (form := KINDS[kind]) is None:
            return read(ref, settings)
        if not form.fullmatch(ref):
            raise Problem("source.bad_place", f"{ref[:60]!r} does not name a series of {kind}.")
        return Place(kind, ref.lower())
    url = urlsplit(_whole(text))
    if _at(url.hostname, settings.mangadex_base, "mangadex.org") and (found := _MANGADEX.search(url.path)):
        return Place("mangadex", found[1].lower())
    if _at(url.hostname, settings.mangapark_base, "mangapark.net") and (found := _MANGAPARK.search(url.path)):
        return Place("mangapark", found[1])
    return Place("feed", url._replace(fragment="").geturl())


def host(place: Place, settings: Settings) -> str:
    """Name the host that is asked."""
    base = {"mangadex": settings.mangadex_base, "mangapark": settings.mangapark_base}.get(place.kind, place.ref)
    return (urlsplit(base).hostname or "?")[:300]


def _whole(text: str) -> str:
    try:
        url = urlsplit(text)
        sound = url.scheme in {"http", "https"} and bool(url.hostname) and not url.username and (url.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise Problem("source.bad_place", "This is neither an http or https address nor KIND:ID.")
    return text


def _at(hostname: str | None, base: str, site: str) -> bool:
    """Say whether a host is the one of a site, or the one that stands in for it."""
    name = (hostname or "").lower()
    return name == site or name.endswith(f".{site}") or name == urlsplit(base).hostname
