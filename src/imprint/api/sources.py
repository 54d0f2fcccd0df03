"""Sources: the places that carry a series; how they are, when they are asked, and that they are asked now."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field

from imprint.api import cursor, offers
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.series import Languages, Place
from imprint.api.shape import Given, Opening, Text, pages, shape
from imprint.api.site import Here, Me
from imprint.decisions.polling import Priority
from imprint.work import series as serials
from imprint.work import source as sources
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("sources")
READ, WRITE = needs(Scope.SERIES_READ), needs(Scope.SERIES_WRITE)

EXAMPLE: dict[str, Any] = {
    "id": "5a1f3a5f-7c11-4e1c-8a4e-0b0f5b3e1c52",
    "name": "serials.example/lighthouse/feed",
    "seriesId": "0b0f5b3e-1c52-4a4e-9c3e-5d1f3a5f7c11",
    "series": "The lighthouse",
    "kind": "feed",
    "ref": "https://serials.example/lighthouse/feed",
    "host": "serials.example",
    "languages": ["en"],
    "status": "active",
    "statusAt": "2030-01-01T08:00:00Z",
    "priority": "WARM",
    "priorityBefore": None,
    "priorityFixed": False,
    "nextCheckAt": "2030-05-01T22:00:00Z",
    "polling": False,
    "every": 21600,
    "rhythm": 604800,
    "lastPolledAt": "2030-05-01T16:00:00Z",
    "lastWorkedAt": "2030-05-01T10:00:00Z",
    "lastNewsAt": "2030-04-28T10:00:00Z",
    "failures": 1,
    "errorCode": "source.unreachable",
    "error": "serials.example does not answer.",
    "gapFrom": None,
    "gapTo": None,
    "missing": None,
    "releases": 46,
    "setAside": 0,
    "createdAt": "2030-01-01T08:00:00Z",
    "moves": [{"name": "disable", "to": "disabled", "why": "a person does not want it asked"}],
}
Source = shape(
    "Source",
    sources.Source,
    without={"every", "rhythm"},
    every=int | None,
    rhythm=int | None,
    missing=str | None,
    moves=list[Opening],
    example=EXAMPLE,
)


class NewSource(Given):
    """Where a series is carried as well, what one calls that, and how urgently it is asked."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"place": "mangapark:74763", "name": "the other one", "languages": ["en"]}]}
    )

    place: Place
    name: Annotated[Text, Field(min_length=1, max_length=100)] | None = None
    languages: Languages = ()
    priority: Priority | None = None


class SourceChanges(Given):
    """How urgently it is asked; auto: as its news ask for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"priority": "HOT"}]})

    priority: Literal["HOT", "WARM", "COLD", "auto"]


@routes.get("/sources", response_model=pages(Source), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    *,
    failing: Annotated[bool, Query(description="Only those that failed when they were last asked.")] = False,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List the sources of all one's series, the newest first, each with its last error and its next try."""
    async with site.database.connection() as connection:
        after = cursor.read(cursor_)
        found = await sources.page(connection, me.owner, failing=failing, after=after, limit=limit + 1)
    return cursor.page(found, limit, [_told(me, each) for each in found])


@routes.get("/series/{series}/sources", response_model=pages(Source), openapi_extra=READ)
async def of_series(
    site: Here,
    me: Me,
    series: UUID,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List the sources of a series, the newest first, each with its last error and its next try."""
    async with site.database.connection() as connection:
        await serials.show(connection, me.owner, series)
        after = cursor.read(cursor_)
        found = await sources.page(connection, me.owner, series=series, after=after, limit=limit + 1)
    return cursor.page(found, limit, [_told(me, each) for each in found])


@routes.post("/series/{series}/sources", response_model=Source, status_code=201, openapi_extra=WRITE)
async def add(site: Here, me: Me, series: UUID, given: NewSource) -> dict[str, Any]:
    """Add another place that carries a series; what it brings when it is first read is no news."""
    return _told(
        me,
        await sources.add(
            site.database,
            site.settings,
            me.owner,
            series,
            given.place,
            name=given.name,
            languages=given.languages,
            priority=given.priority,
        ),
    )


@routes.get("/sources/{source}", response_model=Source, openapi_extra=READ)
async def show(site: Here, me: Me, source: UUID) -> dict[str, Any]:
    """Show a source: how it is asked, when, what went wrong last, and which moves are open to it."""
    async with site.database.connection() as connection:
        return _told(me, await sources.show(connection, me.owner, source))


@routes.patch("/sources/{source}", response_model=Source, openapi_extra=WRITE)
async def change(site: Here, me: Me, source: UUID, given: SourceChanges) -> dict[str, Any]:
    """Set how urgently a source is asked, or let that follow from its news."""
    wanted = None if given.priority == "auto" else Priority(given.priority)
    return _told(me, await sources.prioritise(site.database, me.owner, source, wanted))


@routes.post("/sources/{source}/poll", response_model=Source, status_code=202, openapi_extra=WRITE)
async def poll(site: Here, me: Me, source: UUID) -> dict[str, Any]:
    """Let a worker ask a source now, due or not; one that rests is tried. What came of it is shown with the source."""
    return _told(me, await sources.hasten(site.database, me.owner, source))


@routes.post("/sources/{source}/disable", response_model=Source, openapi_extra=WRITE)
async def disable(site: Here, me: Me, source: UUID) -> dict[str, Any]:
    """Ask a source no more until it is enabled."""
    return _told(me, await sources.disable(site.database, me.owner, source))


@routes.post("/sources/{source}/enable", response_model=Source, openapi_extra=WRITE)
async def enable(site: Here, me: Me, source: UUID) -> dict[str, Any]:
    """Ask a source again, at once; what it failed at before is forgotten."""
    return _told(me, await sources.enable(site.database, me.owner, source))


@routes.delete("/sources/{source}", status_code=204, openapi_extra=WRITE)
async def remove(site: Here, me: Me, source: UUID) -> None:
    """Remove a source; what it has brought stays."""
    await sources.remove(site.database, me.owner, source)


def _told(me: Caller, source: sources.Source) -> dict[str, Any]:
    return {**source.as_data(), "moves": offers.of_source(me, source.status, polling=source.polling)}
