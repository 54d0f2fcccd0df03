"""The calendar: what goes out when; the page's script asks the API for what it shows."""

from typing import Any

from fastapi.responses import Response

from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import account as accounts
from imprint.work import post as posts
from imprint.work.scope import Scope

routes = pages()


@routes.get("/", **seen_by(Scope.POSTS_READ))
async def calendar(look: Looking) -> Response:
    """Show the calendar, and to whoever has nothing in it what to do next."""
    return look.page("calendar.html", title="Calendar", **await _next(look))


@routes.get("/calendar/next", **seen_by(Scope.POSTS_READ))
async def next_step(look: Looking) -> Response:
    """Show what to do next, again."""
    return look.part("calendar_next.html", **await _next(look))


async def _next(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        connected = await accounts.listed(connection, look.me.owner)
        counts = await posts.counts(connection, look.me.owner)
    return {"accounts": connected, "counts": counts, "sandbox": look.site.sandbox is not None}
