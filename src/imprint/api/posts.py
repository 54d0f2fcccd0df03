"""Posts: write, find, look at, change, delete."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api import cursor, offers
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Opening, Shape, Text, pages, shape
from imprint.api.site import Here, Me, Site
from imprint.lifecycles.post import PostStatus
from imprint.work import audit, catalogue, schedule
from imprint.work import post as posts
from imprint.work.caller import Caller
from imprint.work.catalogue import Wanted
from imprint.work.post import Listed, Planned, PostFile
from imprint.work.post_fields import Fields
from imprint.work.scope import Scope

routes = router("posts")

WRITTEN: dict[str, Any] = {
    "title": "A lighthouse at dusk",
    "description": "Oil on canvas.",
    "tags": ["sea", "light"],
    "zone": "Europe/Berlin",
}
File = shape("PostFile", PostFile, without={"store", "key"})
Publication = shape("PlannedPublication", Planned, without={"due_at"}, actual_publish_at=datetime)
Post = shape(
    "Post",
    posts.Post,
    without={"owner", "overrides"},
    overrides=dict[str, Any],
    files=list[File],  # type: ignore[valid-type] # a shape made from its dataclass
    publications=list[Publication],  # type: ignore[valid-type]
    moves=list[Opening],
)
InList = shape("PostInList", Listed, moves=list[Opening])
HistoryLine = shape("PostHistoryLine", audit.Line)


class PostHistory(Shape):
    """Everything that happened to a post and its publications, in order."""

    items: list[HistoryLine]  # type: ignore[valid-type] # a shape made from its dataclass


class New(Fields):
    """What one writes of a post; whatever is left out is as it usually is."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=False, extra="forbid", json_schema_extra={"examples": [WRITTEN]}
    )


class Changes(New):
    """What is to be different; with `revision` only if nobody has changed it in the meantime."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=False,
        extra="forbid",
        json_schema_extra={"examples": [{"title": "A lighthouse at dawn", "revision": 3}]},
    )

    revision: Annotated[int | None, Field(ge=1, le=2**31 - 1)] = None


@routes.get("/posts", response_model=pages(InList), openapi_extra=needs(Scope.POSTS_READ))
async def listed(
    site: Here,
    me: Me,
    status: PostStatus | None = None,
    kind: Literal["artwork", "article"] | None = None,
    text: Annotated[Text | None, Query(max_length=200, description="Words of the title.")] = None,
    account: Annotated[UUID | None, Query(description="Those that go or went to this account.")] = None,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List posts, the newest first."""
    async with site.database.connection() as connection:
        found = await catalogue.page(
            connection, me.owner, Wanted(status, kind, text, account), after=cursor.read(cursor_), limit=limit + 1
        )
    return cursor.page(found, limit, [{**each.as_data(), "moves": offers.of_post(me, each.status)} for each in found])


@routes.get("/posts/counts", response_model=dict[str, int], openapi_extra=needs(Scope.POSTS_READ))
async def counts(site: Here, me: Me) -> dict[str, int]:
    """Say how many posts there are in each state."""
    async with site.database.connection() as connection:
        return await posts.counts(connection, me.owner)


@routes.post("/posts", response_model=Post, status_code=201, openapi_extra=needs(Scope.POSTS_WRITE))
async def create(site: Here, me: Me, given: New) -> dict[str, Any]:
    """Write a post; it is in review until it is declared ready."""
    return await show_one(site, me, await posts.create(site.database, me.owner, written(given)))


@routes.get("/posts/{post}", response_model=Post, openapi_extra=needs(Scope.POSTS_READ))
async def show(site: Here, me: Me, post: UUID) -> dict[str, Any]:
    """Show one post, its files, where it goes, and which moves are open to it."""
    return await show_one(site, me, post)


@routes.get("/posts/{post}/history", response_model=PostHistory, openapi_extra=needs(Scope.POSTS_READ))
async def history(site: Here, me: Me, post: UUID) -> dict[str, Any]:
    """Tell what happened to a post and its publications: what, from, to, when, who, why."""
    async with site.database.connection() as connection:
        return {"items": [each.as_data() for each in await catalogue.history(connection, me.owner, post)]}


@routes.patch("/posts/{post}", response_model=Post, openapi_extra=needs(Scope.POSTS_WRITE))
async def edit(site: Here, me: Me, post: UUID, given: Changes) -> dict[str, Any]:
    """Change what is given and nothing else; what is out, on its way or unknown stays as it is."""
    changes = written(given)
    revision = changes.pop("revision", None)
    return _told(me, await posts.edit(site.database, me.owner, post, changes, revision=revision))


@routes.delete("/posts/{post}", status_code=204, openapi_extra=needs(Scope.POSTS_WRITE))
async def delete(site: Here, me: Me, post: UUID) -> None:
    """Delete a post; what waits is cancelled, what is out stays out."""
    await schedule.delete(site.database, me.owner, post)


async def show_one(site: Site, me: Caller, post: UUID) -> dict[str, Any]:
    """Give everything about one post, as one caller sees it."""
    async with site.database.connection() as connection:
        return _told(me, await posts.show(connection, me.owner, post))


def written(given: Fields) -> dict[str, Any]:
    """Give what was written, by the names it has in the JSON, and nothing that was left out."""
    return given.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _told(me: Caller, shown: posts.Shown) -> dict[str, Any]:
    moves = offers.of_post(me, shown.post.status, [each.status for each in shown.publications])
    return {**shown.as_data(), "moves": moves}
