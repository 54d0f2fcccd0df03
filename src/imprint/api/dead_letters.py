"""Dead letters: what failed for good; to be looked at, tried once more, or let go.

A person has their own: messages that never reached their targets, and items of their sources that could not be taken
in. Those of the whole machine, jobs included, are for administrators.
"""

from datetime import datetime
from typing import Annotated, Any, Protocol

from fastapi import Path, Query
from pydantic import ConfigDict, Field

from imprint.api import cursor
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Outcomes, Shape, Text, pages
from imprint.api.site import Here, Me, Site
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.work import bulk
from imprint.work import dead_letter as letters
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("dead letters")
OWN_READ, OWN_WRITE = needs(Scope.NOTICES_READ), needs(Scope.NOTICES_WRITE)
READ, WRITE = needs(Scope.SYSTEM_READ), needs(Scope.SYSTEM_WRITE)

EXAMPLE: dict[str, Any] = {
    "id": "d42",
    "queue": "notify",
    "about": "phone",
    "attempts": 5,
    "error": "The service answered 503.",
    "heldAt": "2030-05-01T16:04:00Z",
    "data": {"target": "phone", "service": "ntfy", "series": "The lighthouse", "notices": []},
    "moves": [{"name": "requeue", "to": "queued", "why": "to try it once more, with all its attempts"}],
}
MOVES = [
    {"name": "requeue", "to": "queued", "why": "to try it once more, with all its attempts"},
    {"name": "discard", "to": "discarded", "why": "it is not wanted any more"},
]
Id = Annotated[Text, Path(max_length=60, description="As the list shows it.")]
Queue = Annotated[Text, Field(max_length=100)]
InQueue = Annotated[Text | None, Query(max_length=100, description="Only those of this queue.")]


class Move(Protocol):
    """What is done to a dead letter."""

    async def __call__(self, database: Database, actor: str, text: str, *, owner: str | None) -> letters.Letter:
        """Do it."""


class DeadLetter(Shape):
    """What failed for good: in which queue, what it is about, how often it was tried, and why it failed last."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    id: str
    queue: str
    about: str
    attempts: int
    error: str
    held_at: datetime
    data: dict[str, Any]
    moves: list[Opening]


class Event(Shape):
    """Something that happened to it before."""

    at: datetime
    what: str
    error: str | None


class DeadLetterShown(DeadLetter):
    """A dead letter and its history."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {**EXAMPLE, "history": [{"at": "2030-05-01T16:04:00Z", "what": "failed", "error": "It answered 503."}]}
            ]
        }
    )

    history: list[Event]


class DeadLetters(Given):
    """Which: by their ids, or all of them, or all of one queue."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["d42", "a7"]}]})

    ids: Annotated[tuple[Annotated[Text, Field(max_length=60)], ...], Field(max_length=500)] = ()
    everything: bool = False
    queue: Queue | None = None


@routes.get("/dead-letters", response_model=pages(DeadLetter), openapi_extra=OWN_READ)
async def own(
    site: Here,
    me: Me,
    queue: InQueue = None,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List what failed for good of one's own targets and sources, the newest first."""
    return await _page(site, me, me.owner, queue, cursor_, limit)


@routes.post("/dead-letters/bulk/requeue", response_model=Outcomes, openapi_extra=OWN_WRITE)
async def requeue_several_own(site: Here, me: Me, given: DeadLetters) -> dict[str, Any]:
    """Try dead letters of one's own once more, each by itself."""
    return await _each(site, me, me.owner, given, letters.requeue)


@routes.post("/dead-letters/bulk/discard", response_model=Outcomes, openapi_extra=OWN_WRITE)
async def discard_several_own(site: Here, me: Me, given: DeadLetters) -> dict[str, Any]:
    """Let dead letters of one's own go, for good, each by itself."""
    return await _each(site, me, me.owner, given, letters.discard)


@routes.get("/dead-letters/{letter}", response_model=DeadLetterShown, openapi_extra=OWN_READ)
async def show_own(site: Here, me: Me, letter: Id) -> dict[str, Any]:
    """Show one dead letter of one's own with its data, its error and its history."""
    return await _show(site, me, me.owner, letter)


@routes.post("/dead-letters/{letter}/requeue", response_model=DeadLetter, openapi_extra=OWN_WRITE)
async def requeue_own(site: Here, me: Me, letter: Id) -> dict[str, Any]:
    """Try a dead letter of one's own once more; it is told as it was, and is one no more."""
    return await _moved(site, me, me.owner, letter, letters.requeue)


@routes.post("/dead-letters/{letter}/discard", response_model=DeadLetter, openapi_extra=OWN_WRITE)
async def discard_own(site: Here, me: Me, letter: Id) -> dict[str, Any]:
    """Let a dead letter of one's own go, for good; it is told as it was."""
    return await _moved(site, me, me.owner, letter, letters.discard)


@routes.get("/system/dead-letters", response_model=pages(DeadLetter), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    queue: InQueue = None,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List what failed for good on this machine, the newest first; for administrators."""
    return await _page(site, me, None, queue, cursor_, limit)


@routes.post("/system/dead-letters/bulk/requeue", response_model=Outcomes, openapi_extra=WRITE)
async def requeue_several(site: Here, me: Me, given: DeadLetters) -> dict[str, Any]:
    """Try dead letters once more, each by itself."""
    return await _each(site, me, None, given, letters.requeue)


@routes.post("/system/dead-letters/bulk/discard", response_model=Outcomes, openapi_extra=WRITE)
async def discard_several(site: Here, me: Me, given: DeadLetters) -> dict[str, Any]:
    """Let dead letters go, for good, each by itself."""
    return await _each(site, me, None, given, letters.discard)


@routes.get("/system/dead-letters/{letter}", response_model=DeadLetterShown, openapi_extra=READ)
async def show(site: Here, me: Me, letter: Id) -> dict[str, Any]:
    """Show one dead letter with its data, its error, its history, and which moves are open to it."""
    return await _show(site, me, None, letter)


@routes.post("/system/dead-letters/{letter}/requeue", response_model=DeadLetter, openapi_extra=WRITE)
async def requeue(site: Here, me: Me, letter: Id) -> dict[str, Any]:
    """Try a dead letter once more; it is told as it was, and is one no more."""
    return await _moved(site, me, None, letter, letters.requeue)


@routes.post("/system/dead-letters/{letter}/discard", response_model=DeadLetter, openapi_extra=WRITE)
async def discard(site: Here, me: Me, letter: Id) -> dict[str, Any]:
    """Let a dead letter go, for good; it is told as it was."""
    return await _moved(site, me, None, letter, letters.discard)


async def _page(
    site: Site, me: Caller, owner: str | None, queue: str | None, after: str | None, limit: int
) -> dict[str, Any]:
    async with site.database.connection() as connection:
        found = await letters.listed(connection, queue, limit + 1, owner=owner, after=cursor.read(after))
    items = [_told(each.as_data(), me, owner) for each in found]
    return cursor.page(found, limit, items, by="held_at", row="key")


async def _show(site: Site, me: Caller, owner: str | None, letter: str) -> dict[str, Any]:
    async with site.database.connection() as connection:
        return _told((await letters.show(connection, letter, owner=owner)).as_data(), me, owner)


async def _moved(site: Site, me: Caller, owner: str | None, letter: str, move: Move) -> dict[str, Any]:
    return {**(await move(site.database, me.person, letter, owner=owner)).as_data(), "moves": []}


async def _each(site: Site, me: Caller, owner: str | None, given: DeadLetters, move: Move) -> dict[str, Any]:
    if bool(given.ids) == given.everything or (given.ids and given.queue is not None):
        raise Problem("dead_letter.which", "Name the dead letters, or say everything, of one queue or of all.")
    named = list(given.ids)
    if not named:
        async with site.database.connection() as connection:
            named = [each.id for each in await letters.listed(connection, given.queue, owner=owner)]
    outcomes = await bulk.each(named, lambda letter: move(site.database, me.person, letter, owner=owner))
    return {"outcomes": [each.as_data() for each in outcomes]}


def _told(data: dict[str, Any], me: Caller, owner: str | None) -> dict[str, Any]:
    """Give a letter and its moves, for who may make them."""
    may = (Scope.SYSTEM_WRITE if owner is None else Scope.NOTICES_WRITE) in me.scopes
    return {**data, "moves": MOVES if may else []}
