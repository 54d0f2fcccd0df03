"""Series: add one by its address, find it, look at it, call it otherwise, remove it."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field

from imprint.api import cursor, offers
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Text, pages, shape
from imprint.api.site import Here, Me
from imprint.work import series as serials
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("series")
READ, WRITE = needs(Scope.SERIES_READ), needs(Scope.SERIES_WRITE)

EXAMPLE: dict[str, Any] = {
    "id": "0b0f5b3e-1c52-4a4e-9c3e-5d1f3a5f7c11",
    "title": "The lighthouse",
    "latestChapter": "45.5",
    "latestAt": "2030-05-01T16:00:00Z",
    "createdAt": "2030-01-01T08:00:00Z",
    "followed": True,
    "notify": True,
    "preferredSource": None,
    "chapters": 46,
    "unread": 2,
    "sources": 1,
    "failing": 0,
    "mine": True,
    "moves": [{"name": "unfollow", "to": None, "why": "the person does not want it in the library any more"}],
}
Series = shape("Series", serials.Series, moves=list[Opening], example=EXAMPLE)

Place = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=2000,
        description="Its address, a feed's address, or KIND:ID such as mangadex:….",
        examples=["https://serials.example/lighthouse/feed"],
    ),
]
Title = Annotated[Text, Field(min_length=1, max_length=500)]
Languages = Annotated[
    tuple[Annotated[Text, Field(min_length=1, max_length=20)], ...],
    Field(max_length=50, description="Only chapters in these languages; all when left out.", examples=[["en"]]),
]
Words = Annotated[Text | None, Query(max_length=200, description="Words of the title.")]


class NewSeries(Given):
    """Where a series is carried, what one calls it, and whether one follows it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"place": "https://serials.example/lighthouse/feed", "title": "The lighthouse", "languages": ["en"]}
            ]
        }
    )

    place: Place
    title: Title | None = None
    languages: Languages = ()
    follow: bool = True


class SeriesChanges(Given):
    """What one calls it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "The lighthouse"}]})

    title: Title


@routes.get("/series", response_model=pages(Series), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    text: Words = None,
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List one's series and those one follows, the newest first."""
    async with site.database.connection() as connection:
        found = await serials.page(connection, me.owner, text=text, after=cursor.read(cursor_), limit=limit + 1)
    return cursor.page(found, limit, [told(me, each) for each in found])


@routes.post("/series", response_model=Series, status_code=201, openapi_extra=WRITE)
async def add(site: Here, me: Me, given: NewSeries) -> dict[str, Any]:
    """Add a series; a worker reads it at once, and what is there already is no news."""
    return told(
        me,
        await serials.add(
            site.database,
            site.settings,
            me.owner,
            given.place,
            title=given.title,
            languages=given.languages,
            follow=given.follow,
        ),
    )


@routes.get("/series/{series}", response_model=Series, openapi_extra=READ)
async def show(site: Here, me: Me, series: UUID) -> dict[str, Any]:
    """Show one series, and which moves are open to it."""
    async with site.database.connection() as connection:
        return told(me, await serials.show(connection, me.owner, series))


@routes.patch("/series/{series}", response_model=Series, openapi_extra=WRITE)
async def change(site: Here, me: Me, series: UUID, given: SeriesChanges) -> dict[str, Any]:
    """Give a series another title."""
    await serials.rename(site.database, me.owner, series, given.title)
    return await show(site, me, series)


@routes.delete("/series/{series}", status_code=204, openapi_extra=WRITE)
async def remove(site: Here, me: Me, series: UUID) -> None:
    """Remove a series; it is asked for no more, and nobody is told of it any more."""
    await serials.remove(site.database, me.owner, series)


def told(me: Caller, one: serials.Series) -> dict[str, Any]:
    """Give a series and its moves; one of somebody else can be followed and read, but not changed."""
    if one.followed:
        moves = [("unfollow", "the person does not want it in the library any more")]
        moves += [("quiet", "not to be told of it")] if one.notify else [("notify", "to be told of it")]
    else:
        moves = [("follow", "to have it in the library")]
    if one.unread:
        moves.append(("read", "the person has read what there is"))
    if one.mine:
        moves += [("rename", "to call it otherwise"), ("remove", "nobody wants to hear of it any more")]
    return {**one.as_data(), "moves": offers.to(me, Scope.SERIES_WRITE, moves)}
