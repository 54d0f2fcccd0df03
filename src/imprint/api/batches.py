"""Batches: posts that go out one after the other, each a while after the end of the one before."""

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api import cursor
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.offers import Offer, allowed
from imprint.api.post_moves import Accounts, Time, Zone
from imprint.api.shape import Given, Opening, Shape, pages, shape
from imprint.api.site import Here, Me
from imprint.decisions.schedule import parse, zone_of
from imprint.work import batch as batches
from imprint.work import schedule
from imprint.work.caller import Caller
from imprint.work.fitting import Fitting
from imprint.work.schedule import Changed
from imprint.work.scope import Scope

routes = router("batches")
READ, WRITE = needs(Scope.POSTS_READ), needs(Scope.POSTS_WRITE)

EXAMPLE = {
    "id": "d7a6a2b4-0f51-4b3a-9a5c-6c2b7f1f9e02",
    "startsAt": "2030-05-01T16:00:00Z",
    "zone": "Europe/Berlin",
    "createdAt": "2030-04-30T09:00:00Z",
    "paused": False,
    "publications": 3,
    "waiting": 2,
    "running": 0,
    "unknown": 0,
    "out": 1,
    "failed": 0,
    "cancelled": 0,
    "nextAt": "2030-05-01T16:31:40Z",
    "everyMinutes": 30.0,
    "state": "runs",
    "moves": [{"name": "pause", "to": "paused", "why": "nothing more of it goes until it is resumed"}],
}
Batch = shape(
    "Batch",
    batches.Batch,
    without={"every", "begun"},
    every_minutes=float,
    state=str,
    moves=list[Opening],
    example=EXAMPLE,
)
Member = shape("BatchMember", batches.Member)
BatchShown = shape(
    "BatchShown",
    batches.Batch,
    without={"every", "begun"},
    every_minutes=float,
    state=str,
    moves=list[Opening],
    members=list[Member],  # type: ignore[valid-type] # a shape made from its dataclass
)
Stopped = shape("StoppedPublication", Changed)


class Cancelled(Shape):
    """What was cancelled; what has left is seen through."""

    cancelled: list[Stopped]  # type: ignore[valid-type]


class Create(Given):
    """Which posts in which order, how long after the end of the one before, where, and when the first one goes."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "posts": ["8f1d0c52-5d0e-4e62-8a8e-0f7a3f0c9b23", "51b6a8a5-8f5d-4d1e-93f5-3a6c0d0f7c10"],
                    "everyMinutes": 30,
                    "at": "2030-05-01T18:00",
                    "zone": "Europe/Berlin",
                }
            ]
        },
    )

    posts: Annotated[list[UUID], Field(min_length=1, max_length=batches.MOST, description="In their order.")]
    every_minutes: Annotated[float, Field(ge=0, le=1440, allow_inf_nan=False, examples=[30])]
    accounts: Accounts = ()
    at: Time | None = None
    zone: Zone = "UTC"


class BatchOrder(Given):
    """The places that still wait for their turn, each once, in the order one wants."""

    order: Annotated[
        list[Annotated[int, Field(ge=1, le=2**31 - 1)]], Field(max_length=batches.MOST, examples=[[4, 2, 3]])
    ]


@routes.get("/batches", response_model=pages(Batch), openapi_extra=READ)
async def listed(
    site: Here, me: Me, cursor_: Annotated[Cursor, Query(alias="cursor")] = None, limit: Limit = 50
) -> dict[str, Any]:
    """List batches, the newest first."""
    after = cursor.read(cursor_) or batches.LAST
    async with site.database.connection() as connection:
        found = await batches.listed(connection, me.owner, after=after, limit=limit + 1)
    return cursor.page(found, limit, [_told(me, each) for each in found])


@routes.post("/batches", response_model=BatchShown, status_code=201, openapi_extra=WRITE)
async def create(site: Here, me: Me, given: Create) -> dict[str, Any]:
    """Plan posts in this order, each on each account, beginning at a time or now; all of them, or none."""
    wall = zone_of(given.zone)
    shown = await batches.create(
        site.database,
        schedule.bounds(site.settings),
        me.owner,
        given.posts,
        every=timedelta(minutes=given.every_minutes),
        accounts=given.accounts,
        at=parse(given.at, wall) if given.at else None,
        zone=wall.key,
        fitting=Fitting(site.vault),
    )
    return _shown(me, shown)


@routes.get("/batches/{batch}", response_model=BatchShown, openapi_extra=READ)
async def show(site: Here, me: Me, batch: UUID) -> dict[str, Any]:
    """Show one batch, which moves are open to it, and when each of its publications went or goes."""
    async with site.database.connection() as connection:
        return _shown(me, await batches.show(connection, me.owner, batch))


@routes.post("/batches/{batch}/pause", response_model=BatchShown, openapi_extra=WRITE)
async def pause(site: Here, me: Me, batch: UUID) -> dict[str, Any]:
    """Let nothing more of a batch go until it is resumed; what is on its way goes on."""
    return _shown(me, await batches.pause(site.database, me.owner, batch))


@routes.post("/batches/{batch}/resume", response_model=BatchShown, openapi_extra=WRITE)
async def resume(site: Here, me: Me, batch: UUID) -> dict[str, Any]:
    """Let a batch go on: the next one goes at its time, or now if that is over."""
    return _shown(me, await batches.resume(site.database, me.owner, batch))


@routes.post("/batches/{batch}/arrange", response_model=BatchShown, openapi_extra=WRITE)
async def arrange(site: Here, me: Me, batch: UUID, given: BatchOrder) -> dict[str, Any]:
    """Put what waits for its turn into another order."""
    return _shown(me, await batches.arrange(site.database, me.owner, batch, given.order))


@routes.post("/batches/{batch}/stop", response_model=Cancelled, openapi_extra=WRITE)
async def stop(site: Here, me: Me, batch: UUID) -> dict[str, Any]:
    """Cancel everything of a batch that has not left."""
    return _cancelled(await batches.stop(site.database, me.owner, batch))


@routes.delete("/batches/{batch}", response_model=Cancelled, openapi_extra=WRITE)
async def delete(site: Here, me: Me, batch: UUID) -> dict[str, Any]:
    """Delete a batch and free its posts; what is out stays out. Refused while something is on its way."""
    return _cancelled(await batches.delete(site.database, me.owner, batch))


def _told(me: Caller, batch: batches.Batch) -> dict[str, Any]:
    moves: list[Offer] = [{"name": each.name, "to": each.to, "why": each.why} for each in batch.moves]
    return {**batch.as_data(), "moves": allowed(me, Scope.POSTS_WRITE, moves)}


def _shown(me: Caller, shown: batches.Shown) -> dict[str, Any]:
    return {**_told(me, shown.batch), "members": [each.as_data() for each in shown.members]}


def _cancelled(changed: list[Changed]) -> dict[str, Any]:
    return {"cancelled": [each.as_data() for each in changed]}
