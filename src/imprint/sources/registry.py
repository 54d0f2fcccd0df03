"""The sources there are; adding one is one file and one line here."""

from collections.abc import Callable, Mapping

from imprint.problem import Problem
from imprint.sources.contract import Source
from imprint.sources.feed import Feed
from imprint.sources.mangadex import MangaDex
from imprint.sources.mangapark import MangaPark

SOURCES: Mapping[str, Callable[..., Source]] = {
    "mangadex": MangaDex,
    "mangapark": MangaPark,
    "feed": Feed,
}


def source(name: str, base: str | None = None) -> Source:
    """Make the source of a name, at another base than its own when one is set."""
    if name not in SOURCES:
        raise Problem("source.unknown", f"There is no source {name!r}; there are {', '.join(sorted(SOURCES))}.")
    return SOURCES[name](base) if base and name != "feed" else SOURCES[name]()
