"""Publications: the log of what goes, went or did not go out; try one again, say whether an unknown one is out."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api import cursor, offers
from imprint.api.cursor import Cursor, Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Shape, Text, pages, shape
from imprint.api.site import Here, Me, Site
from imprint.api.span import SinceIfAny, UntilIfAny, Zone, moment
from imprint.decisions.schedule import zone_of
from imprint.lifecycles.publication import PublicationStatus
from imprint.work import publication as publications
from imprint.work import resolve as resolves
from imprint.work.caller import Caller
from imprint.work.publication import FIRST_MOMENT, LAST_MOMENT, Wanted
from imprint.work.resolve import Said
from imprint.work.scope import Scope

routes = router("publications")
READ, WRITE = needs(Scope.POSTS_READ), needs(Scope.POSTS_WRITE)

EXAMPLE = {
    "id": "0b0c7a0e-8d0f-4e7e-9a51-0d6f7f4e7d11",
    "postId": "8f1d0c52-5d0e-4e62-8a8e-0f7a3f0c9b23",
    "title": "A lighthouse at dusk",
    "accountId": "6a6d1f0a-3f43-4a3c-8e0e-3d9c3c6c1a77",
    "account": "gallery",
    "platform": "deviantart",
    "fileId": None,
    "status": "unknown",
    "statusAt": "2030-05-01T16:02:30Z",
    "phase": None,
    "scheduledAt": "2030-05-01T16:00:00Z",
    "zone": "Europe/Berlin",
    "actualPublishAt": "2030-05-01T16:02:11Z",
    "publishedAt": None,
    "remoteId": None,
    "url": None,
    "errorCode": None,
    "attempts": 1,
    "crashes": 0,
    "heldWhy": "person",
    "heldUntil": None,
    "lookAt": None,
    "batchId": None,
    "left": True,
    "dismissed": False,
    "late": False,
    "needsPerson": True,
    "moves": [
        {"name": "resolve", "to": None, "why": "a person has looked whether it is out"},
    ],
}
ATTEMPT = {
    "number": 1,
    "worker": "studio-1",
    "beganAt": "2030-05-01T16:02:11Z",
    "driftSeconds": 0.012,
    "intentAt": "2030-05-01T16:02:12Z",
    "deadline": "2030-05-01T16:03:12Z",
    "requestSha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "endedAt": "2030-05-01T16:02:30Z",
    "outcome": "no_answer",
    "code": "no_answer",
    "sentence": "The connection was lost before the answer came.",
    "stage": "publish",
    "httpStatus": None,
    "remoteId": None,
    "url": None,
}
Publication = shape(
    "Publication",
    publications.Publication,
    without={"due_at"},
    actual_publish_at=datetime,
    moves=list[Opening],
    example=EXAMPLE,
)
Attempt = shape("Attempt", publications.Attempt, example=ATTEMPT)


class TriedPublication(Shape):
    """A publication, and what was tried of it, in order."""

    publication: Publication  # type: ignore[valid-type] # a shape made from its dataclass
    attempts: list[Attempt]  # type: ignore[valid-type]


class Resolved(Shape):
    """What became of an unknown publication: it is out, sent again, or dropped."""

    became: Said
    publication: Publication  # type: ignore[valid-type]


class Resolve(Given):
    """What one saw at the platform: it is out, at this address; or it is not, and is sent again or dropped."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [
                {"outcome": "published", "url": "https://gallery.example/art/1"},
                {"outcome": "notPublished", "drop": False},
            ]
        },
    )

    outcome: Literal["published", "notPublished"]
    url: Annotated[Text, Field(max_length=5000, description="Where it can be seen; when it is out.")] = ""
    drop: Annotated[bool, Field(description="When it is not out: it is not wanted any more.")] = False


@routes.get("/publications", response_model=pages(Publication), openapi_extra=READ)
async def listed(
    site: Here,
    me: Me,
    status: PublicationStatus | None = None,
    post: Annotated[UUID | None, Query(description="Only of this post.")] = None,
    account: Annotated[UUID | None, Query(description="Only on this account.")] = None,
    platform: Annotated[Text | None, Query(max_length=100, description="Only on this platform.")] = None,
    needs_person: Annotated[
        bool | None, Query(alias="needsPerson", description="Only those that wait for a person, or only the others.")
    ] = None,
    since: SinceIfAny = None,
    until: UntilIfAny = None,
    zone: Zone = "UTC",
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List publications, those that go or went last first."""
    wall = zone_of(zone)
    wanted = Wanted(
        status,
        post,
        account,
        platform,
        moment(since, wall, "from") if since else FIRST_MOMENT,
        moment(until, wall, "until") if until else LAST_MOMENT,
        needs_person,
    )
    async with site.database.connection() as connection:
        found = await publications.page(connection, me.owner, wanted, after=cursor.read(cursor_), limit=limit + 1)
    return cursor.page(found, limit, [_told(me, each) for each in found], by="due_at")


@routes.get("/publications/{publication}", response_model=TriedPublication, openapi_extra=READ)
async def show(site: Here, me: Me, publication: UUID) -> dict[str, Any]:
    """Show one publication, which moves are open to it, and every attempt."""
    async with site.database.connection() as connection:
        found = await publications.show(connection, me.owner, publication)
        attempts = await publications.attempts(connection, publication)
    return {"publication": _told(me, found), "attempts": [each.as_data() for each in attempts]}


@routes.post("/publications/{publication}/retry", response_model=Publication, openapi_extra=WRITE)
async def retry(site: Here, me: Me, publication: UUID) -> dict[str, Any]:
    """Try a publication that failed once more; others of its post stay as they are."""
    await publications.retry(site.database, me.owner, publication)
    return await _show(site, me, publication)


@routes.post("/publications/{publication}/resolve", response_model=Resolved, openapi_extra=WRITE)
async def resolve(site: Here, me: Me, publication: UUID, given: Resolve) -> dict[str, Any]:
    """Say whether an unknown publication is out, when nobody else can tell; look at the platform first."""
    if given.outcome == "published":
        became = await resolves.published(site.database, me.owner, publication, given.url)
    else:
        became = await resolves.not_published(site.database, me.owner, publication, drop=given.drop)
    return {"became": became, "publication": await _show(site, me, publication)}


async def _show(site: Site, me: Caller, publication: UUID) -> dict[str, Any]:
    async with site.database.connection() as connection:
        return _told(me, await publications.show(connection, me.owner, publication))


def _told(me: Caller, publication: publications.Publication) -> dict[str, Any]:
    moves = offers.of_publication(me, publication.status, dismissed=publication.dismissed)
    return {**publication.as_data(), "moves": moves}
