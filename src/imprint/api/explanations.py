"""Explanations: why a post did, or did not, go out; every step, and what happens next."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api.gate import needs, router
from imprint.api.shape import Shape
from imprint.api.site import Here, Me, Site
from imprint.work import explain as explains
from imprint.work.scope import Scope

routes = router("posts")
READ = needs(Scope.POSTS_READ)


class Step(Shape):
    """What happened at once: a sentence, who did it, the move, and what is known of the attempt."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "at": "2030-05-01T16:02:30Z",
                    "what": "lose",
                    "sentence": "The connection was lost before the answer came.",
                    "who": "studio-1",
                    "from": "running",
                    "to": "unknown",
                    "attempt": 1,
                    "outcome": "no_answer",
                    "code": "no_answer",
                    "stage": "publish",
                }
            ]
        },
    )

    at: datetime
    what: str
    sentence: str
    who: str | None = None
    source: str | None = Field(default=None, alias="from")
    target: str | None = Field(default=None, alias="to")
    attempt: int | None = None
    outcome: str | None = None
    code: str | None = None
    stage: str | None = None
    http_status: int | None = None
    until: datetime | None = None
    request_sha256: str | None = None


class Next(Shape):
    """What happens next, when at the earliest, and whether it needs a person."""

    sentence: str
    at: datetime | None
    needs_person: bool
    over: bool


class Circuit(Shape):
    """Why a platform or an account is left alone for a while, and until when."""

    until: datetime | None
    why: str


class ExplainedPost(Shape):
    """The post itself, and what its author did with it; `next` where nothing of it is planned."""

    id: UUID
    title: str
    status: str
    deleted: bool
    story: list[Step]
    next: str | None


class ExplainedPublication(Shape):
    """One publication: where it stands, what it waits for, what happened, what happens next."""

    id: UUID
    platform: str
    account: str
    account_status: str
    file: int | None
    status: str
    status_at: datetime
    scheduled_at: datetime | None
    actual_publish_at: datetime
    attempts: int
    crashes: int
    looks: int
    look_at: datetime | None
    held_until: datetime | None
    batch: UUID | None
    waits_for: str | None
    circuit: Circuit | None
    late_policy: str
    error_code: str | None
    remote_id: str | None
    url: str | None
    published_at: datetime | None
    next: Next
    story: list[Step]


class Explanation(Shape):
    """The whole story of a post and of each of its publications."""

    post: ExplainedPost
    publications: list[ExplainedPublication]


@routes.get("/posts/{post}/explain", response_model=Explanation, response_model_exclude_unset=True, openapi_extra=READ)
async def explain_post(site: Here, me: Me, post: UUID) -> dict[str, Any]:
    """Tell why a post did, or did not, go out: who did what and when, what the platform said, what happens next."""
    return await explained(site, me.owner, post)


@routes.get(
    "/publications/{publication}/explain",
    response_model=Explanation,
    response_model_exclude_unset=True,
    openapi_extra=READ,
    tags=["publications"],
)
async def explain_publication(site: Here, me: Me, publication: UUID) -> dict[str, Any]:
    """Tell why one publication did, or did not, go out."""
    return await explained(site, me.owner, publication)


async def explained(site: Site, owner: str, which: UUID) -> dict[str, Any]:
    """Explain a post or a publication of a person."""
    async with site.database.connection() as connection:
        told = await explains.explain(connection, owner, str(which), late_hours=site.settings.late_hours)
    data = told.as_data()
    return {**data, "post": {**data["post"], "next": None if told.publications else told.next}}
