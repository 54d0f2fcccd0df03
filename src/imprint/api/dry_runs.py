"""Dry runs: exactly what would be sent of a post, and what stands in the way; nothing is sent."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api.gate import needs, router
from imprint.api.shape import Shape
from imprint.api.site import Here, Me, Site
from imprint.work import dry_run as runs
from imprint.work.scope import Scope

routes = router("posts")


class Obstacle(Shape):
    """Something that stands in the way."""

    code: str
    sentence: str


class RehearsedFile(Shape):
    """A file of the post, and the form in which it goes; `why` it needs a rendition, `made` whether that is there."""

    name: str
    form: str = Field(alias="as")
    made: bool
    type: str | None = None
    size: int | None = None
    sha256: str | None = None
    why: list[str]


class RehearsedRequest(Shape):
    """One request as it would be sent, secrets hidden; `sha256` is that of its body, null while it is not known."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "what": "publish",
                    "method": "POST",
                    "url": "https://gallery.example/api/publish",
                    "headers": {"Authorization": "(hidden)"},
                    "body": [["title", "A lighthouse at dusk"]],
                    "sha256": None,
                }
            ]
        },
    )

    what: str
    method: str
    url: str
    headers: dict[str, str]
    body: Any
    sha256: str | None


class Rehearsal(Shape):
    """What one publication would send, or would if it were planned; `problems` are what stands in the way."""

    account_id: UUID
    account: str
    platform: str
    publication_id: UUID | None
    status: str | None
    actual_publish_at: datetime | None
    note: str | None
    problems: list[Obstacle]
    files: list[RehearsedFile]
    requests: list[RehearsedRequest]


class DryRun(Shape):
    """What would be sent of a post, for each account; `ok` unless something stands in the way."""

    ok: bool
    items: list[Rehearsal]


@routes.get("/posts/{post}/dry-run", response_model=DryRun, openapi_extra=needs(Scope.POSTS_READ))
async def dry_run(
    site: Here,
    me: Me,
    post: UUID,
    accounts: Annotated[
        list[UUID], Query(alias="account", max_length=100, description="On these accounts, planned or not.")
    ] = [],  # noqa: B006 - FastAPI copies it
) -> dict[str, Any]:
    """Show exactly what would be sent of a post, for each account it is planned on or would go to."""
    return await rehearsed(site, me.owner, post, accounts)


async def rehearsed(site: Site, owner: str, post: UUID, accounts: Sequence[UUID]) -> dict[str, Any]:
    """Rehearse a post of a person."""
    found = await runs.dry_run(site.database, site.stores, site.vault, owner, post, only=accounts)
    return {"ok": not any(each.problems for each in found), "items": [each.as_data() for each in found]}
