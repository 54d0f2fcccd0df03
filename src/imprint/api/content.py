"""Content: the stored works of a person, by their state, with what happened to each."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query

from imprint.api import cursor, offers
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Opening, Shape, pages, shape
from imprint.api.site import Here, Me
from imprint.lifecycles.content import ContentStatus
from imprint.work import collection
from imprint.work import content as contents
from imprint.work.caller import Caller
from imprint.work.content import Kept, Line, Listed, camel
from imprint.work.scope import Scope

routes = router("content")
READ = needs(Scope.CONTENT_READ)

Object = shape("Object", Kept, without={"store", "key"})
Variant = shape("Variant", contents.Variant)
Content = shape(
    "Content",
    contents.Content,
    without={"owner"},
    moves=list[Opening],
    objects=list[Object],  # type: ignore[valid-type] # a shape made from its dataclass
    variants=list[Variant],  # type: ignore[valid-type]
)
HistoryLine = shape("HistoryLine", Line)
InList = shape("ContentInList", Listed, without={"owner"}, moves=list[Opening])


class Variants(Shape):
    """The variants of a content, made or not."""

    items: list[Variant]  # type: ignore[valid-type]


class ContentHistory(Shape):
    """Everything that happened, in order."""

    items: list[HistoryLine]  # type: ignore[valid-type]


@routes.get("/content", response_model=pages(InList), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    status: ContentStatus | None = None,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List content, the newest first."""
    async with site.database.connection() as connection:
        found = await collection.listed(
            connection, me.owner, status=status, after=cursor.read(cursor_), limit=limit + 1
        )
    items = [{**camel(vars(each)), "moves": offers.of_content(me, each.status)} for each in found]
    return cursor.page(found, limit, items)


@routes.get("/content/counts", response_model=dict[str, int], openapi_extra=READ)
async def counts(site: Here, me: Me) -> dict[str, int]:
    """Say how much content there is in each state."""
    async with site.database.connection() as connection:
        return await collection.counts(connection, me.owner)


@routes.get("/content/{content}", response_model=Content, openapi_extra=READ)
async def show(site: Here, me: Me, content: UUID) -> dict[str, Any]:
    """Show one content, deleted or not, and which moves are open to it."""
    async with site.database.connection() as connection:
        await collection.expect(connection, me.owner, content)
        return told(me, await contents.show(connection, content))


@routes.get("/content/{content}/variants", response_model=Variants, openapi_extra=READ)
async def variants(site: Here, me: Me, content: UUID) -> dict[str, Any]:
    """List the variants of a content."""
    async with site.database.connection() as connection:
        await collection.expect(connection, me.owner, content)
        return {"items": [camel(vars(each)) for each in (await contents.show(connection, content)).variants]}


@routes.get("/content/{content}/history", response_model=ContentHistory, openapi_extra=READ)
async def history(site: Here, me: Me, content: UUID) -> dict[str, Any]:
    """Tell what happened to a content, its objects and its variants."""
    async with site.database.connection() as connection:
        await collection.expect(connection, me.owner, content)
        return {"items": [camel(vars(each)) for each in await contents.history(connection, content)]}


def told(me: Caller, shown: contents.Shown) -> dict[str, Any]:
    """Give a content as the API tells of it, with what the caller can do with it."""
    known = shown.content
    moves = offers.of_content(
        me, known.status, deleted=known.deleted_at is not None, purged=known.purged_at is not None
    )
    return {**shown.as_data(), "moves": moves}
