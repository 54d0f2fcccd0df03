"""Chapters of a series, each with where it can be read: its releases."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query

from imprint.api import cursor, offers
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Opening, pages, shape
from imprint.api.site import Here, Me
from imprint.store.query import Link
from imprint.work import series as serials
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("chapters")
READ = needs(Scope.SERIES_READ)

Release = shape("Release", serials.Release, without={"chapter_id"})
EXAMPLE: dict[str, Any] = {
    "id": 4711,
    "slug": "45.5",
    "kind": "chapter",
    "number": "45.5",
    "numberEnd": None,
    "volume": None,
    "season": None,
    "version": None,
    "title": "The storm",
    "firstSeenAt": "2030-05-01T16:00:00Z",
    "silent": False,
    "readAt": None,
    "url": "https://serials.example/lighthouse/45.5",
    "releases": [
        {
            "sourceId": "5a1f3a5f-7c11-4e1c-8a4e-0b0f5b3e1c52",
            "source": "serials.example/lighthouse/feed",
            "kind": "feed",
            "url": "https://serials.example/lighthouse/45.5",
            "title": "The storm",
            "language": "en",
            "groupName": None,
            "external": False,
            "publishedAt": "2030-05-01T15:58:00Z",
            "firstSeenAt": "2030-05-01T16:00:00Z",
        }
    ],
    "moves": [{"name": "read", "to": None, "why": "the person has read it"}],
}
Chapter = shape(
    "Chapter",
    serials.Chapter,
    without={"releases"},
    releases=list[Release],  # type: ignore[valid-type] # a shape made from its dataclass
    moves=list[Opening],
    example=EXAMPLE,
)


@routes.get("/series/{series}/chapters", response_model=pages(Chapter), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    series: UUID,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List the chapters of a series, the latest first, each with its releases and whether one has read it."""
    async with site.database.connection() as connection:
        after = cursor.read_number(cursor_)
        found = await serials.chapters(connection, me.owner, series, limit + 1, after=after)
        return cursor.numbered(found, limit, await _told(me, connection, found[:limit]))


@routes.get("/series/{series}/chapters/{chapter}", response_model=Chapter, openapi_extra=READ)
async def show(site: Here, me: Me, series: UUID, chapter: Annotated[int, Path(ge=1, le=2**63 - 1)]) -> dict[str, Any]:
    """Show one chapter, its releases, and which moves are open to it."""
    async with site.database.connection() as connection:
        found = await serials.chapter(connection, me.owner, series, chapter)
        return (await _told(me, connection, [found]))[0]


async def _told(me: Caller, connection: Link, found: list[serials.Chapter]) -> list[dict[str, Any]]:
    releases = await serials.releases(connection, found)
    return [
        {
            **each.as_data(),
            "releases": [one.as_data() for one in releases[each.id]],
            "moves": offers.to(me, Scope.SERIES_WRITE, [_move(each)]),
        }
        for each in found
    ]


def _move(chapter: serials.Chapter) -> tuple[str, str]:
    if chapter.read_at is None:
        return "read", "the person has read it"
    return "unread", "the person has not read it after all"
