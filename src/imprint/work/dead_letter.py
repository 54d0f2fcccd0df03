"""Dead letters: what failed for good, in whichever queue; a person looks at it, tries it once more or lets it go.

There are three kinds: a job that the queue holds after its last attempt, a delivery that never reached its target, and
an item of a source that was set aside because it could not be taken in. Whoever is first decides: every move has the
old state in its WHERE. What is requeued and works then leaves no trace but the line in the audit.

A person has their own, and requeues and discards them: messages to their targets and items of their sources. Whoever
looks after the machine has all. Jobs, of which an error may quote anything, are theirs alone: what went wrong is shown
to its person with the source, the post or the content that it is about.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from imprint.engine.queue import ring
from imprint.log import hide_in_text
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.catalogue import LAST, Place

MOST = 10_000
LONGEST_REASON = 500


@dataclass(frozen=True)
class Letter:
    """A dead letter: in which queue, what it is about, how often it was tried and why it failed the last time."""

    kind: str
    id: str
    queue: str
    about: str
    attempts: int
    error: str
    held_at: datetime
    data: str
    key: UUID  # by which the audit knows it

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "id": self.id,
            "queue": self.queue,
            "about": self.about,
            "attempts": self.attempts,
            "error": hide_in_text(self.error),
            "heldAt": self.held_at,
            "data": json.loads(self.data),
        }


@dataclass(frozen=True)
class Event:
    """Something that happened to a dead letter before it became one."""

    at: datetime
    what: str
    error: str | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {"at": self.at, "what": self.what, "error": hide_in_text(self.error) if self.error else None}


@dataclass(frozen=True)
class Shown:
    """A dead letter and its history."""

    letter: Letter
    history: list[Event]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {**self.letter.as_data(), "history": [event.as_data() for event in self.history]}


@dataclass(frozen=True)
class Moved:
    """A dead letter that was requeued or discarded, by the id the audit knows it under."""

    row_id: UUID


LIST = query("dead_letter_list", Letter)
AUDIT = query("dead_letter_audit", Nothing)
KINDS = ("job", "delivery", "item")
HISTORY = {kind: query(f"dead_letter_history_{kind}", Event) for kind in KINDS}
REQUEUE = {kind: query(f"dead_letter_requeue_{kind}", Moved) for kind in KINDS}
DISCARD = {kind: query(f"dead_letter_discard_{kind}", Moved) for kind in KINDS}


async def listed(
    connection: Link,
    queue: str | None = None,
    limit: int = MOST,
    *,
    owner: str | None = None,
    after: Place | None = None,
) -> list[Letter]:
    """Give the dead letters of one queue or of all, of one person or of everybody, the newest first."""
    return await LIST.all(connection, queue, None, limit, owner, *(after or LAST))


async def find(connection: Link, text: str, *, owner: str | None = None) -> Letter:
    """Find a dead letter by its id, of one person or of everybody."""
    found = await LIST.first(connection, None, text.strip().lower(), 1, owner, *LAST)
    if found is None:
        raise _missing(text)
    return found


async def show(connection: Link, text: str, *, owner: str | None = None) -> Shown:
    """Give everything about one dead letter."""
    letter = await find(connection, text, owner=owner)
    return Shown(letter, await HISTORY[letter.kind].all(connection, _key(letter)))


async def requeue(database: Database, actor: str, text: str, *, owner: str | None = None) -> Letter:
    """Try a dead letter once more, with all its attempts; refused when the same work already waits again."""
    return await _move(database, actor, text, owner, "requeue")


async def discard(database: Database, actor: str, text: str, *, owner: str | None = None) -> Letter:
    """Let a dead letter go."""
    return await _move(database, actor, text, owner, "discard")


async def _move(database: Database, actor: str, text: str, owner: str | None, move: str) -> Letter:
    async with database.connection() as connection:
        letter = await find(connection, text, owner=owner)
    statement, target = (REQUEUE, "queued") if move == "requeue" else (DISCARD, "discarded")
    async with database.transaction(actor, _reason(letter)) as connection:
        try:
            moved = await statement[letter.kind].first(connection, _key(letter))
        except asyncpg.UniqueViolationError:
            raise Problem(
                "dead_letter.waits",
                f"The same work of {letter.queue} waits or runs again already; discard this one if that is enough.",
            ) from None
        if moved is None:
            await find(connection, text, owner=owner)
            raise Problem(
                "dead_letter.busy", "Its source is disabled, or is being asked at this moment; try again in a minute."
            )
        await AUDIT.run(connection, moved.row_id, move, target)
        await ring(connection)
    return letter


def _key(letter: Letter) -> int:
    return int(letter.id.lstrip("ad"))


def _reason(letter: Letter) -> str:
    whole = hide_in_text(f"{letter.queue} {letter.about}: {letter.error}")
    return whole if len(whole) <= LONGEST_REASON else whole[: LONGEST_REASON - 1] + "…"


def _missing(text: str) -> Problem:
    return Problem(
        "dead_letter.missing",
        f"There is no dead letter {text[:60]}; it may have been requeued or discarded in the meantime.",
    )
