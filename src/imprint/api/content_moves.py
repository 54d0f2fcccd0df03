"""What can be done with content: try again, archive, delete, take back; also for many."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from imprint.api.content import Content, told
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Outcomes
from imprint.api.site import Here, Me, Site
from imprint.work import collection
from imprint.work import content as contents
from imprint.work import content_moves as moves
from imprint.work.caller import Caller
from imprint.work.content_moves import Outcome
from imprint.work.scope import Scope

routes = router("content")
WRITE = needs(Scope.CONTENT_WRITE)


class ManyContents(Given):
    """Which contents, and where they shall go: `archived`, or `processing` to have variants made again."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=500)]
    status: Annotated[Literal["archived", "processing"], Field(examples=["archived"])]


@routes.post("/content/retry-failed", response_model=Outcomes, openapi_extra=WRITE)
async def retry_failed(site: Here, me: Me) -> dict[str, Any]:
    """Try everything again that failed."""
    return _told(await collection.retry_failed(site.database, site.settings, me.owner))


@routes.post("/content/bulk/status", response_model=Outcomes, openapi_extra=WRITE)
async def update_many(site: Here, me: Me, given: ManyContents) -> dict[str, Any]:
    """Move many contents."""
    return _told(await collection.update_many(site.database, site.settings, me.owner, given.ids, given.status))


@routes.post("/content/{content}/retry", response_model=Content, openapi_extra=WRITE)
async def retry(site: Here, me: Me, content: UUID) -> dict[str, Any]:
    """Let a content that failed over its variants be tried again."""
    await _expect(site, me.owner, content)
    await moves.retry(site.database, content, me.owner)
    return await _show(site, me, content)


@routes.post("/content/{content}/derive", response_model=Content, openapi_extra=WRITE)
async def derive(site: Here, me: Me, content: UUID) -> dict[str, Any]:
    """Let all variants be made again."""
    await _expect(site, me.owner, content)
    await moves.derive_again(site.database, site.settings, content, me.owner)
    return await _show(site, me, content)


@routes.post("/content/{content}/archive", response_model=Content, openapi_extra=WRITE)
async def archive(site: Here, me: Me, content: UUID) -> dict[str, Any]:
    """Keep a content that is no longer worked with."""
    await _expect(site, me.owner, content)
    await moves.archive(site.database, content, me.owner)
    return await _show(site, me, content)


@routes.post("/content/{content}/restore", response_model=Content, openapi_extra=WRITE)
async def restore(site: Here, me: Me, content: UUID) -> dict[str, Any]:
    """Take a deletion back while the bytes are there."""
    await _expect(site, me.owner, content)
    await moves.restore(site.database, content, me.owner)
    return await _show(site, me, content)


@routes.delete("/content/{content}", response_model=Content, openapi_extra=WRITE)
async def delete(site: Here, me: Me, content: UUID, *, force: bool = False) -> dict[str, Any]:
    """Delete a content; its bytes go after a while. While its variants are being made this needs `force`."""
    await _expect(site, me.owner, content)
    await moves.delete(site.database, site.settings, content, me.owner, force=force)
    return await _show(site, me, content)


async def _expect(site: Site, owner: str, content: UUID) -> None:
    async with site.database.connection() as connection:
        await collection.expect(connection, owner, content)


async def _show(site: Site, me: Caller, content: UUID) -> dict[str, Any]:
    async with site.database.connection() as connection:
        return told(me, await contents.show(connection, content))


def _told(outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "outcomes": [
            {"id": str(each.id), "ok": each.done, "code": each.code or None, "error": each.sentence or None}
            for each in outcomes
        ]
    }
