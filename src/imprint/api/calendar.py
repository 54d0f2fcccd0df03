"""The calendar: what goes or went out between two times, made to be read often and in thousands of rows."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response
from pydantic_core import to_json

from imprint.api import cursor
from imprint.api.cursor import Cursor
from imprint.api.gate import needs, router
from imprint.api.shape import pages, shape
from imprint.api.site import Here, Me
from imprint.api.span import Since, Until, Zone, moment
from imprint.decisions.schedule import zone_of
from imprint.work import calendar
from imprint.work.scope import Scope

routes = router("calendar")

MOST = 10_000
EXAMPLE = {
    "id": "0b0c7a0e-8d0f-4e7e-9a51-0d6f7f4e7d11",
    "postId": "8f1d0c52-5d0e-4e62-8a8e-0f7a3f0c9b23",
    "title": "A lighthouse at dusk",
    "kind": "artwork",
    "accountId": "6a6d1f0a-3f43-4a3c-8e0e-3d9c3c6c1a77",
    "account": "gallery",
    "platform": "deviantart",
    "actualPublishAt": "2030-05-01T16:02:11Z",
    "status": "pending",
    "late": False,
    "needsPerson": False,
    "movable": True,
}
InCalendar = shape("Appointment", calendar.Appointment, without={"due_at"}, actual_publish_at=datetime, example=EXAMPLE)


@routes.get("/calendar", response_model=pages(InCalendar), openapi_extra=needs(Scope.POSTS_READ))
async def span(
    site: Here,
    me: Me,
    since: Since,
    until: Until,
    zone: Zone = "UTC",
    cursor_: Annotated[Cursor, Query(alias="cursor")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="How many at most.")] = MOST,
) -> Response:
    """List what goes or went out in a span of time, the earliest first, with only what a calendar shows."""
    wall = zone_of(zone)
    first, end = moment(since, wall, "from"), moment(until, wall, "until")
    async with site.database.connection() as connection:
        found = await calendar.span(connection, me.owner, first, end, after=cursor.read(cursor_), limit=limit + 1)
    page: dict[str, Any] = cursor.page(found, limit, [each.as_data() for each in found], by="due_at")
    # Written at once: to look at each of thousands of rows again, as other routes do, would cost more than all else.
    return Response(to_json(page), media_type="application/json")
