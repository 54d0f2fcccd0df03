"""Sheets: posts as CSV, out of what the list shows and in by many at once."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query
from fastapi.responses import Response
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api.gate import needs, router
from imprint.api.post_moves import Zone
from imprint.api.shape import Given, Shape, Text
from imprint.api.site import Here, Me
from imprint.lifecycles.post import PostStatus
from imprint.work import schedule, sheet
from imprint.work.catalogue import Wanted
from imprint.work.fitting import Fitting
from imprint.work.scope import Scope

routes = router("posts")

EXAMPLE = 'title,tags,kind,body,account,time\r\nOn light,"sea, light",article,Words.,,\r\n'
# What people wrote is in it: a browser keeps it and runs nothing in it.
HEADERS = {
    "Content-Disposition": "attachment; filename=posts.csv",
    "Content-Security-Policy": "sandbox; default-src 'none'",
}


class Csv(Response):
    """An answer that is CSV."""

    media_type = "text/csv"


class Sheet(Given):
    """Rows under the names `title`, `description`, `tags`, `kind`, `body`, `account`, `time` and `files`.

    Accounts and files are named as people know them, several parted by semicolons. A row with a time is scheduled, one
    without stays in review. With `check` it is only tried.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"examples": [{"csv": EXAMPLE, "zone": "Europe/Berlin", "check": True}]},
    )

    csv: Annotated[Text, Field(max_length=2_000_000)]
    zone: Zone = "UTC"
    check: bool = False


class SheetRow(Shape):
    """One row, as a spreadsheet counts: what it made or would make, or what is wrong with it."""

    row: int
    title: str
    ok: bool
    post_id: UUID | None = None
    at: datetime | None = None
    accounts: list[str] = Field(default_factory=list)
    code: str | None = None
    error: str | None = None


class BroughtIn(Shape):
    """What became of each row; `imported` is 0 when one of them is wrong, for then none was kept."""

    imported: int
    items: list[SheetRow]


@routes.head("/posts/export", response_class=Csv, openapi_extra=needs(Scope.POSTS_READ))
@routes.get("/posts/export", response_class=Csv, openapi_extra=needs(Scope.POSTS_READ))
async def export(
    site: Here,
    me: Me,
    status: PostStatus | None = None,
    kind: Literal["artwork", "article"] | None = None,
    text: Annotated[Text | None, Query(max_length=200, description="Words of the title.")] = None,
    account: Annotated[UUID | None, Query(description="Those that go or went to this account.")] = None,
) -> Response:
    """Give the posts that a list shows as CSV; no cell of it is a formula."""
    async with site.database.connection() as connection:
        told = await sheet.written(connection, me.owner, Wanted(status, kind, text, account))
    return Csv("\ufeff" + told, headers=HEADERS)


@routes.post("/posts/import", response_model=BroughtIn, openapi_extra=needs(Scope.POSTS_WRITE))
async def bring(site: Here, me: Me, given: Sheet) -> dict[str, Any]:
    """Make a post of each row of a CSV, all of them or none."""
    brought = await sheet.bring(
        site.database,
        schedule.bounds(site.settings),
        me.owner,
        given.csv,
        zone=given.zone,
        fitting=Fitting(site.vault),
        keep=not given.check,
    )
    kept = not given.check and all(each.problem is None for each in brought)
    return {"imported": len(brought) if kept else 0, "items": [_told(each, kept=kept) for each in brought]}


def _told(row: sheet.Brought, *, kept: bool) -> dict[str, Any]:
    about = {"row": row.row, "title": row.title, "ok": row.problem is None}
    if row.problem is not None:
        return {**about, "code": row.problem.code, "error": row.problem.sentence}
    return {**about, "postId": row.post if kept else None, "at": row.at, "accounts": list(row.accounts)}
