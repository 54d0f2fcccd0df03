"""Notices: what is new in the series one follows; and where else one is told of it, by message or by webhook."""

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response

from imprint.api import cursor
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import notice as notices
from imprint.work import target as targets
from imprint.work import webhook as webhooks
from imprint.work.scope import Scope

routes = pages()
PAGE = 50
DIGESTS = {"off": "at once", "hourly": "every hour", "daily": "every day"}
EVENTS = {
    "published": "published",
    "failed": "failed",
    "unknown": "unknown outcome",
    "reconnect": "sign in again",
    "chapter": "new chapter",
}
After = Annotated[str, Query(max_length=100)]


@routes.get("/notices", **seen_by(Scope.NOTICES_READ))
async def news(look: Looking, only: str = "", after: After = "") -> Response:
    """Show what is new."""
    return look.page("notices.html", title="Notices", **await _news(look, only, after))


@routes.get("/notices/rows", **seen_by(Scope.NOTICES_READ))
async def rows(look: Looking, only: str = "", after: After = "") -> Response:
    """Show what is new, again."""
    return look.part("notices_rows.html", **await _news(look, only, after))


@routes.get("/notices/delivery", **seen_by(Scope.NOTICES_READ))
async def delivery(look: Looking) -> Response:
    """Show where one is told."""
    told = {**await _targets(look), **await _webhooks(look)}
    return look.page("delivery.html", title="Where you are told", **told)


@routes.get("/notices/delivery/targets", **seen_by(Scope.NOTICES_READ))
async def delivery_targets(look: Looking) -> Response:
    """Show the targets, again."""
    return look.part("delivery_targets.html", **await _targets(look))


@routes.get("/notices/delivery/webhooks", **seen_by(Scope.NOTICES_READ))
async def delivery_webhooks(look: Looking) -> Response:
    """Show the webhooks, again."""
    return look.part("delivery_webhooks.html", **await _webhooks(look))


async def _news(look: View, only: str, after: str) -> dict[str, Any]:
    unread, before = only == "unread", cursor.read_number(after or None)
    async with look.site.database.connection() as connection:
        found = await notices.listed(connection, look.me.owner, unread=unread, before=before, limit=PAGE + 1)
        counts = await notices.counts(connection, look.me.owner)
    told = cursor.numbered(found, PAGE, found, by="chapter_id")
    return {"notices": told["items"], "next": told["next"], "counts": counts, "unread": unread, "after": after}


async def _targets(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        return {"targets": await targets.listed(connection, look.me.owner), "digests": DIGESTS}


async def _webhooks(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        return {"webhooks": await webhooks.listed(connection, look.me.owner), "events": EVENTS}
