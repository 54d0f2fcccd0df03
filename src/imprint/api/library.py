"""The library: the series that a person follows, whether they are told, where they like to read, what they read."""

from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field

from imprint.api import cursor
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.series import Series, Words, told
from imprint.api.shape import Given, Shape, Text, pages
from imprint.api.site import Here, Me, Site
from imprint.work import series as serials
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("library")
READ, WRITE = needs(Scope.SERIES_READ), needs(Scope.SERIES_WRITE)

Names = Annotated[
    tuple[Annotated[Text, Field(min_length=1, max_length=300)], ...],
    Field(max_length=1000, description="Chapters such as 45 or «Extra 3»; all when left out.", examples=[["45"]]),
]


class Follow(Given):
    """Whether one is told, and at which source one likes to read; what is left out stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"notify": True, "preferredSource": "5a1f3a5f-7c11-4e1c-8a4e-0b0f5b3e1c52"}]}
    )

    notify: bool | None = None
    preferred_source: UUID | None = None


class Unread(Given):
    """Which chapters."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"chapters": ["45", "Extra 3"]}]})

    chapters: Names = ()


class Read(Unread):
    """Which chapters, or up to which number."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"upTo": "45.5"}]})

    up_to: Annotated[Decimal, Field(ge=0, le=999_999_999, max_digits=21, decimal_places=12)] | None = None


class Marked(Shape):
    """How many chapters were marked, and how many are unread now."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": "0b0f5b3e-1c52-4a4e-9c3e-5d1f3a5f7c11", "marked": 2, "unread": 0}]}
    )

    id: UUID
    marked: int
    unread: int


@routes.get("/library", response_model=pages(Series), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    text: Words = None,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List the series that one follows, the newest first, each with how much of it there is to read."""
    async with site.database.connection() as connection:
        after = cursor.read(cursor_)
        found = await serials.page(connection, me.owner, followed=True, text=text, after=after, limit=limit + 1)
    return cursor.page(found, limit, [told(me, each) for each in found])


@routes.put("/library/{series}", response_model=Series, openapi_extra=WRITE)
async def follow(site: Here, me: Me, series: UUID, given: Follow | None = None) -> dict[str, Any]:
    """Follow a series, or change how one follows it."""
    wanted = given or Follow()
    await serials.follow(site.database, me.owner, series, notify=wanted.notify, preferred=wanted.preferred_source)
    return told(me, await _shown(site, me, series))


@routes.delete("/library/{series}", status_code=204, openapi_extra=WRITE)
async def unfollow(site: Here, me: Me, series: UUID) -> None:
    """Follow a series no more; what was read stays known."""
    await _shown(site, me, series)
    await serials.unfollow(site.database, me.owner, series)


@routes.post("/library/{series}/read", response_model=Marked, openapi_extra=WRITE)
async def read(site: Here, me: Me, series: UUID, given: Read | None = None) -> dict[str, Any]:
    """Mark chapters as read, and the notices of them: those that are named, those up to a number, or all."""
    wanted = given or Read()
    marked = await serials.read(site.database, me.owner, series, wanted.chapters, up_to=wanted.up_to)
    return await _marked(site, me, series, marked)


@routes.post("/library/{series}/unread", response_model=Marked, openapi_extra=WRITE)
async def unread(site: Here, me: Me, series: UUID, given: Unread | None = None) -> dict[str, Any]:
    """Mark chapters as not read: those that are named, or all."""
    marked = await serials.unread(site.database, me.owner, series, (given or Unread()).chapters)
    return await _marked(site, me, series, marked)


async def _marked(site: Site, me: Caller, series: UUID, marked: int) -> dict[str, Any]:
    return {"id": series, "marked": marked, "unread": (await _shown(site, me, series)).unread}


async def _shown(site: Site, me: Caller, series: UUID) -> serials.Series:
    async with site.database.connection() as connection:
        return await serials.show(connection, me.owner, series)
