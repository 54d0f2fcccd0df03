"""Batches: posts that go out one after the other; how far each has come, and when the rest of it goes."""

from typing import Any
from uuid import UUID

from fastapi.responses import Response

from imprint.api import cursor
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import batch as batches
from imprint.work.outlook import FAILED, WAITS, span
from imprint.work.scope import Scope

routes = pages()
PAGE = 25


@routes.get("/batches", **seen_by(Scope.POSTS_READ))
async def listed(look: Looking, after: str = "") -> Response:
    """Show the batches."""
    return look.page("batches.html", title="Batches", **await _found(look, after))


@routes.get("/batches/rows", **seen_by(Scope.POSTS_READ))
async def rows(look: Looking, after: str = "") -> Response:
    """Show how far each batch has come, again."""
    return look.part("batches_rows.html", **await _found(look, after))


@routes.get("/batches/{batch}", **seen_by(Scope.POSTS_READ))
async def show(look: Looking, batch: UUID) -> Response:
    """Show one batch."""
    told = await _told(look, batch)
    return look.page("batch.html", title=f"Batch of {told['batch'].publications}", **told)


@routes.get("/batches/{batch}/state", **seen_by(Scope.POSTS_READ))
async def state(look: Looking, batch: UUID) -> Response:
    """Show how one batch stands, again."""
    return look.part("batch_state.html", **await _told(look, batch))


async def _found(look: View, after: str) -> dict[str, Any]:
    place = cursor.read(after or None) or batches.LAST
    async with look.site.database.connection() as connection:
        found = await batches.listed(connection, look.me.owner, after=place, limit=PAGE + 1)
    told = cursor.page(found, PAGE, found)
    return {"batches": told["items"], "next": told["next"], "after": after, "span": span}


async def _told(look: View, batch: UUID) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        shown = await batches.show(connection, look.me.owner, batch)
    return {
        "batch": shown.batch,
        "members": shown.members,
        "moves": {each.name for each in shown.batch.moves},
        "behind": [each.place for each in shown.members if each.turn == batches.BEHIND],
        "waits": WAITS,
        "failed": FAILED,
        "span": span,
    }
