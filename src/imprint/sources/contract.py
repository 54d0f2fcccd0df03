"""The contract of every source; its behaviour kit is tests/conformance/test_sources.py.

A source asks one place for its chapters, once, with the client it is handed: no retry loop, no clock that decides, no
database, no logging. It may give more than was asked for, never less, in any order; what it cannot read of one item it
sets aside with the reason and gives the others. What it cannot do at all is one of five failures; others decide.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Protocol

import httpx2

from imprint.decisions.chapter_number import ChapterNumber
from imprint.problem import Problem


@dataclass(frozen=True)
class Place:
    """Where a source carries a series: its own id there, or a feed's URL; no languages means all."""

    ref: str
    title: str = ""  # of the series: not part of its chapters' names
    languages: tuple[str, ...] = ()


@dataclass(frozen=True)
class State:
    """What the next request needs to ask only for what is new; kept by the caller as it is."""

    etag: str | None = None
    last_modified: str | None = None
    cursor: str | None = None  # the source's own: where a list too long for one poll goes on


NO_STATE = State()


@dataclass(frozen=True)
class Wish:
    """When the server would like to be asked again; the caller clamps it."""

    after: timedelta | None = None
    skip_hours: frozenset[int] = field(default_factory=frozenset)  # of the day, UTC
    skip_days: frozenset[int] = field(default_factory=frozenset)  # Monday is 0


NO_WISH = Wish()


@dataclass(frozen=True)
class Chapter:
    """One release of one chapter, as the source has it."""

    id: str  # the source's own
    number: ChapterNumber
    title: str | None = None
    url: str | None = None
    language: str | None = None
    group: str | None = None  # who translated or uploaded it
    published_at: datetime | None = None
    updated_at: datetime | None = None
    external: bool = False  # to be read elsewhere; `url` says where


@dataclass(frozen=True)
class SetAside:
    """An item that could not be read, and why."""

    id: str | None
    reason: str
    item: str  # its beginning, for a person to look at


@dataclass(frozen=True)
class Fetched:
    """What a fetch gave."""

    chapters: tuple[Chapter, ...] = ()
    state: State = NO_STATE
    wish: Wish = NO_WISH
    not_modified: bool = False
    complete: bool = True  # False: there is more than this, ask again with the state
    whole: bool = False  # True: this is everything there is, and what is not among it is gone
    set_aside: tuple[SetAside, ...] = ()
    moved_to: str | None = None  # the place has a new address for good
    title: str | None = None  # of the series, as the place calls it


class Failure(Problem):
    """A fetch gave nothing; which one of the five it is, is all that the caller decides on."""


class Refused(Failure):
    """The server or our own guard will not have this request; asking again the same way will not help."""


class Gone(Failure):
    """The server says that this place is no more."""


class Unreadable(Failure):
    """An answer came, and it is not what this source speaks."""


class NotYet(Failure):
    """Nothing came, or a fault that passes; try again, not before `after` when the server named it."""

    def __init__(self, code: str, sentence: str, after: timedelta | None = None) -> None:
        super().__init__(code, sentence)
        self.after = after


class RateLimited(NotYet):
    """The server wants to be asked less often."""


class Source(Protocol):
    """One kind of place that carries series; its limits are data on the class."""

    name: ClassVar[str]
    gap: ClassVar[timedelta]  # the host's rate: the least time between two requests to it
    conditional: ClassVar[bool]  # whether it says «not modified»

    async def fetch(
        self, http: httpx2.AsyncClient, place: Place, state: State = NO_STATE, since: datetime | None = None
    ) -> Fetched:
        """Ask for the chapters of a place that are new or changed since a time, or all; raise a Failure."""
        ...
