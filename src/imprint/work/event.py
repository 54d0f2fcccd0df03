"""An event: something of a person that changed, as those are told who watch; and how far somebody has read.

Events are not written down for their own sake: every move is a line of the audit, and what changes without a move has
a row beside it with a number of the same line. A watcher is told at least once: what was told just before a connection
broke may come again.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from imprint.store.query import Nothing, query

KEPT = timedelta(days=1)
RESET = "reset"

# What a kind of event is called, and what somebody must be allowed to see to be told of it.
KINDS: Mapping[str, tuple[str, str]] = {
    "post": ("post", "posts:read"),
    "publication": ("publication", "posts:read"),
    "content": ("content", "content:read"),
    "notice": ("notice", "notices:read"),
    "series": ("series", "series:read"),
    "batch": ("batch", "posts:read"),
    "account": ("health", "accounts:read"),
    "source": ("health", "series:read"),
}
_POSITION = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})")


@dataclass(frozen=True)
class Line:
    """A line that was read, or nothing but the oldest transaction that still runs."""

    oldest: int
    id: int | None
    old: bool  # so old that what was beside it may be forgotten
    lifecycle: str | None
    row_id: UUID | None
    move: str | None
    status: str | None
    post_id: UUID | None
    owner: str | None


@dataclass(frozen=True)
class Begin:
    """How far the numbers have come, and of which database they are."""

    newest: int
    following: int
    place: str


@dataclass(frozen=True)
class Bound:
    """A transaction that began after everything so far."""

    following: int


@dataclass(frozen=True)
class Position:
    """How far somebody has read, in which database."""

    place: str
    number: int

    def __str__(self) -> str:
        """Write it as it is sent."""
        return f"{self.place}-{self.number}"

    @classmethod
    def read(cls, text: str) -> "Position | None":
        """Read what somebody brings back; None when it is not one of ours."""
        found = _POSITION.fullmatch(text)
        return cls(found[1], int(found[2])) if found else None


READ = query("event_read", Line)
LISTEN = query("event_listen", Nothing)
UNLISTEN = query("event_unlisten", Nothing)
BEGIN = query("event_begin", Begin)
BOUND = query("event_bound", Bound)
FORGET = query("event_forget", Nothing)


def sees(scopes: frozenset[str]) -> frozenset[str]:
    """Name the lifecycles of which somebody who may do this is told."""
    return frozenset(lifecycle for lifecycle, (_, scope) in KINDS.items() if scope in scopes)


def written(line: Line, at: Position) -> bytes:
    """Write an event as server-sent events are written; `at` is how far its reader has read with it."""
    data: dict[str, Any] = {"id": line.row_id and str(line.row_id), "status": line.status, "move": line.move}
    kind = KINDS[str(line.lifecycle)][0]
    if line.post_id:
        data["postId"] = str(line.post_id)
    if kind == "notice":
        data["id"], data["seriesId"] = None, data["id"]
    if kind == "health":
        data["of"] = line.lifecycle
    return f"event: {kind}\nid: {at}\ndata: {json.dumps(data)}\n\n".encode()


def reset(at: Position) -> bytes:
    """Write that everything is to be loaded anew."""
    return f"event: {RESET}\nid: {at}\ndata: {{}}\n\n".encode()


def heartbeat(at: Position | None) -> bytes:
    """Write a sign of life, which tells nothing but how far one has read."""
    return f": still here\nid: {at}\n\n".encode() if at else b": still here\n\n"
