"""Notices: what is new in the series that a person follows; to be read, or not to be heard of any more."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import ConfigDict, Field

from imprint.api import cursor, offers
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Shape, pages, shape
from imprint.api.site import Here, Me, Site
from imprint.work import notice as notices
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("notices")
READ, WRITE = needs(Scope.NOTICES_READ), needs(Scope.NOTICES_WRITE)

EXAMPLE: dict[str, Any] = {
    "id": 815,
    "seriesId": "0b0f5b3e-1c52-4a4e-9c3e-5d1f3a5f7c11",
    "series": "The lighthouse",
    "chapterId": 4711,
    "number": "45.5",
    "label": "Ch.45.5",
    "title": "The storm",
    "url": "https://serials.example/lighthouse/45.5",
    "createdAt": "2030-05-01T16:00:00Z",
    "readAt": None,
    "moves": [{"name": "read", "to": None, "why": "the person has seen it"}],
}
Notice = shape(
    "Notice",
    notices.Notice,
    without={"kind", "slug", "number_end", "volume", "season", "version"},
    label=str,
    moves=list[Opening],
    example=EXAMPLE,
)
Counts = shape("NoticeCounts", notices.Counts, example={"notices": 120, "unread": 3})

Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


class Which(Given):
    """Which notices."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [815, 816]}]})

    ids: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**63 - 1)], ...],
        Field(min_length=1, max_length=1000, description="The notices."),
    ]


class Seen(Shape):
    """The notices that were not read before."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"read": [815, 816]}]})

    read: list[int]


@routes.get("/notices", response_model=pages(Notice), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    *,
    unread: Annotated[bool, Query(description="Only those that were not read.")] = False,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List what is new in the series that one follows, the newest first."""
    async with site.database.connection() as connection:
        before = cursor.read_number(cursor_)
        found = await notices.listed(connection, me.owner, unread=unread, before=before, limit=limit + 1)
    return cursor.numbered(found, limit, [_told(me, each) for each in found], by="chapter_id")


@routes.get("/notices/counts", response_model=Counts, openapi_extra=READ)
async def counts(site: Here, me: Me) -> dict[str, Any]:
    """Say how many notices there are, and how many of them were not read."""
    async with site.database.connection() as connection:
        return vars(await notices.counts(connection, me.owner))


@routes.post("/notices/read", response_model=Seen, openapi_extra=WRITE)
async def read_several(site: Here, me: Me, given: Which) -> dict[str, Any]:
    """Mark notices as read; a message that has not left yet leaves them out."""
    return {"read": await notices.read(site.database, me.owner, given.ids)}


@routes.post("/notices/read-all", response_model=Seen, openapi_extra=WRITE)
async def read_all(site: Here, me: Me) -> dict[str, Any]:
    """Mark every notice as read."""
    return {"read": await notices.read(site.database, me.owner, None)}


@routes.get("/notices/{notice}", response_model=Notice, openapi_extra=READ)
async def show(site: Here, me: Me, notice: Id) -> dict[str, Any]:
    """Show one notice, and which moves are open to it."""
    return await _show(site, me, notice)


@routes.post("/notices/{notice}/read", response_model=Notice, openapi_extra=WRITE)
async def read(site: Here, me: Me, notice: Id) -> dict[str, Any]:
    """Mark a notice as read."""
    await notices.read(site.database, me.owner, [notice])
    return await _show(site, me, notice)


@routes.post("/notices/{notice}/mute", response_model=Notice, openapi_extra=WRITE)
async def mute(site: Here, me: Me, notice: Id) -> dict[str, Any]:
    """Hear no more of the series that a notice is about; it stays in the library."""
    await notices.mute(site.database, me.owner, notice)
    return await _show(site, me, notice)


async def _show(site: Site, me: Caller, notice: int) -> dict[str, Any]:
    async with site.database.connection() as connection:
        return _told(me, await notices.show(connection, me.owner, notice))


def _told(me: Caller, notice: notices.Notice) -> dict[str, Any]:
    moves = [("read", "the person has seen it")] if notice.read_at is None else []
    moves.append(("mute", "the person does not want to hear of its series any more"))
    return {**notice.as_data(), "moves": offers.to(me, Scope.NOTICES_WRITE, moves)}
