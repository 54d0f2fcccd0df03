"""The audit: everything that happened, for administrators; who wants the history of one thing asks that."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query

from imprint.api.cursor import Limit
from imprint.api.gate import needs, router
from imprint.api.shape import Shape, shape
from imprint.api.site import Here
from imprint.work import audit as audits
from imprint.work.scope import Scope

routes = router("audit")

AuditLine = shape("AuditLine", audits.Line)


class Lines(Shape):
    """Lines of the audit, the newest first; `next` is the number to ask for as `before`, null on the last page."""

    items: list[AuditLine]  # type: ignore[valid-type] # a shape made from its dataclass
    next: int | None


@routes.get("/audit", response_model=Lines, openapi_extra=needs(Scope.SYSTEM_READ))
async def listed(
    site: Here,
    row: Annotated[UUID | None, Query(description="Only of the thing with this id.")] = None,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Only lines with a smaller number.")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List what happened, the newest first: what, from, to, when, who, why."""
    async with site.database.connection() as connection:
        found = await audits.listed(connection, row=row, before=before, limit=limit + 1)
    shown = found[:limit]
    return {"items": [each.as_data() for each in shown], "next": shown[-1].id if len(found) > limit else None}
