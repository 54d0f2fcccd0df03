"""API keys: what one's own programs come in with."""

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from imprint.api.gate import SELF, needs, router
from imprint.api.shape import Given, Opening, Shape, Text, shape
from imprint.api.site import Here, Me
from imprint.work import api_key as api_keys

routes = router("api keys")

EXAMPLE = {
    "id": "0b8f6a52-6f0a-4c55-8a1e-6c0f5d4b3a29",
    "personId": "operator",
    "person": "ada",
    "label": "my script",
    "prefix": "imp_Yk3a9Q",
    "scopes": ["posts:write"],
    "createdAt": "2030-05-01T16:00:00Z",
    "expiresAt": None,
    "lastUsedAt": None,
    "revokedAt": None,
    "moves": [{"name": "revoke"}],
}
ApiKey = shape("ApiKey", api_keys.ApiKey, moves=list[Opening], example=EXAMPLE)
NewApiKey = shape("NewApiKey", api_keys.ApiKey, moves=list[Opening], secret=str, example={**EXAMPLE, "secret": "imp_…"})


class ApiKeys(Shape):
    """One's keys."""

    items: list[ApiKey]  # type: ignore[valid-type] # a shape made from its dataclass


class Wanted(Given):
    """What a key is for, and what it may do."""

    label: Annotated[Text, Field(max_length=100, examples=["my script"])]
    scopes: Annotated[list[Text], Field(max_length=100, examples=[["posts:write", "content:write"]])]
    days: Annotated[int | None, Field(ge=1, le=3650, description="How long it is good; for good when left out.")] = None


@routes.get("/api-keys", response_model=ApiKeys, openapi_extra=needs(SELF))
async def listed(site: Here, me: Me) -> dict[str, Any]:
    """List one's keys."""
    async with site.database.connection() as connection:
        return {"items": [each.as_data() for each in await api_keys.listed(connection, me.person)]}


@routes.post("/api-keys", response_model=NewApiKey, status_code=201, openapi_extra=needs(SELF, shown_once=True))
async def add(site: Here, me: Me, given: Wanted) -> dict[str, Any]:
    """Make a key; the secret is shown once."""
    lasts = None if given.days is None else timedelta(days=given.days)
    made = await api_keys.add(site.database, me.person, me.person, given.label, given.scopes, lasts)
    return {**made.key.as_data(), "secret": made.secret}


@routes.delete("/api-keys/{key}", status_code=204, openapi_extra=needs(SELF))
async def revoke(site: Here, me: Me, key: UUID) -> None:
    """Make a key good for nothing, at once."""
    await api_keys.revoke(site.database, me.person, key, of=me.person)
