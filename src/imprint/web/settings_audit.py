"""The audit: everything that happened, a page at a time, and whether anybody has touched it; for administrators."""

import asyncio
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from fastapi.responses import Response

from imprint.api.gate import wall
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import audit
from imprint.work import person as people
from imprint.work.scope import Scope

routes = pages()
PAGE = 50
PATIENCE = 60.0
Before = Annotated[int | None, Query(ge=1, le=2**63 - 1)]


@routes.get("/settings/audit", **seen_by(Scope.SYSTEM_READ))
async def lines(look: Looking, row: UUID | None = None, before: Before = None) -> Response:
    """Show what happened, the newest first."""
    return look.page("settings_audit.html", title="Audit", **await _lines(look, row, before))


@routes.get("/settings/audit/rows", **seen_by(Scope.SYSTEM_READ))
async def rows(look: Looking, row: UUID | None = None, before: Before = None) -> Response:
    """Show what happened, again."""
    return look.part("settings_audit_rows.html", **await _lines(look, row, before))


@routes.get("/settings/audit/verified", **seen_by(Scope.SYSTEM_READ))
async def verified(look: Looking) -> Response:
    """Show whether every line, every seal and every row is as it was written."""
    # Each row is held against its last line; behind a wall rows would be missing, and their lines prove nothing.
    try:
        async with asyncio.timeout(PATIENCE), look.site.machine().connection() as connection:
            found = await audit.verify(connection)
    except TimeoutError:
        return look.part("sorry_part.html", sentence="It is long by now; run imprint audit verify on the machine.")
    return look.part("settings_audit_verified.html", verified=found)


async def _lines(look: View, row: UUID | None, before: int | None) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        found = await audit.listed(connection, row=row, before=before, limit=PAGE + 1)
    shown = found[:PAGE]
    return {
        "lines": shown,
        "next": shown[-1].id if len(found) > PAGE else None,
        "row": row,
        "before": before,
        "names": await _names(look),
    }


async def _names(look: View) -> dict[str, str]:
    """Give the names of people, which are seen from the other office of an administrator."""
    if not look.may(Scope.PEOPLE_READ):
        return {}
    async with look.site.behind(wall(look.me, Scope.PEOPLE_READ)).database.connection() as connection:
        return {each.id: each.name for each in await people.listed(connection)}
