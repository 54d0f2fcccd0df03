"""Rules: a post for every new chapter of a series. They publish, so that they need what posts need."""

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import ConfigDict, Field

from imprint.api import offers
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Shape, Text, shape
from imprint.api.site import Here, Me, Site
from imprint.work import rule as rules
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("rules")
READ, WRITE = needs(Scope.POSTS_READ), needs(Scope.POSTS_WRITE)

EXAMPLE: dict[str, Any] = {
    "id": "9c3e5d1f-3a5f-4c11-8b0f-5b3e1c524a4e",
    "seriesId": "0b0f5b3e-1c52-4a4e-9c3e-5d1f3a5f7c11",
    "series": "The lighthouse",
    "title": "{series} {number}",
    "body": "{title}: {url}",
    "tags": ["{series}"],
    "delaySeconds": 1800,
    "zone": "Europe/Berlin",
    "enabled": True,
    "since": "2030-05-01T16:00:00Z",
    "createdAt": "2030-05-01T16:00:00Z",
    "accounts": ["my site"],
    "accountIds": ["6a6d1f0a-3f43-4a3c-8e0e-3d9c3c6c1a77"],
    "posts": 3,
    "moves": [{"name": "disable", "to": None, "why": "no posts are wanted for now"}],
}
Rule = shape("Rule", rules.Rule, without={"delay"}, delay_seconds=int, moves=list[Opening], example=EXAMPLE)


class Rules(Shape):
    """One's rules."""

    items: list[Rule]  # type: ignore[valid-type] # a shape made from its dataclass


class NewRule(Given):
    """Of which series, on which accounts, what the posts say, and how long after a chapter was found they go out.

    The fields of a template are {series}, {number}, {title} and {url}.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "seriesId": "0b0f5b3e-1c52-4a4e-9c3e-5d1f3a5f7c11",
                    "accounts": ["6a6d1f0a-3f43-4a3c-8e0e-3d9c3c6c1a77"],
                    "title": "{series} {number}",
                    "body": "{title}: {url}",
                    "delaySeconds": 1800,
                }
            ]
        }
    )

    series_id: UUID
    accounts: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=100)]
    title: Annotated[Text, Field(min_length=1, max_length=rules.LONGEST_TITLE)] = "{series} {number}"
    body: Annotated[Text, Field(min_length=1, max_length=rules.LONGEST_BODY)] = "{title}\n\n{url}"
    tags: Annotated[
        tuple[Annotated[Text, Field(min_length=1, max_length=rules.LONGEST_TAG)], ...],
        Field(max_length=rules.MOST_TAGS),
    ] = ()
    delay_seconds: Annotated[int, Field(ge=0, le=int(rules.LONGEST_DELAY.total_seconds()))] = 0
    zone: Annotated[Text, Field(max_length=60, examples=["Europe/Berlin"])] | None = None


@routes.get("/rules", response_model=Rules, openapi_extra=READ)
async def listed(
    site: Here, me: Me, series: Annotated[UUID | None, Query(description="Only those of this series.")] = None
) -> dict[str, Any]:
    """List one's rules, in the order in which they were made."""
    async with site.database.connection() as connection:
        return {"items": [_told(me, each) for each in await rules.listed(connection, me.owner, series)]}


@routes.post("/rules", response_model=Rule, status_code=201, openapi_extra=WRITE)
async def add(site: Here, me: Me, given: NewRule) -> dict[str, Any]:
    """Make a post of every chapter of a series that is found from now on."""
    made = await rules.add(
        site.database,
        me.owner,
        given.series_id,
        given.accounts,
        title=given.title,
        body=given.body,
        tags=given.tags,
        delay=timedelta(seconds=given.delay_seconds),
        zone=given.zone or site.settings.zone,
    )
    return _told(me, made)


@routes.get("/rules/{rule}", response_model=Rule, openapi_extra=READ)
async def show(site: Here, me: Me, rule: UUID) -> dict[str, Any]:
    """Show one rule, and which moves are open to it."""
    return await _show(site, me, rule)


@routes.post("/rules/{rule}/enable", response_model=Rule, openapi_extra=WRITE)
async def enable(site: Here, me: Me, rule: UUID) -> dict[str, Any]:
    """Turn a rule on again, for chapters that are found from now on."""
    await rules.enable(site.database, me.owner, rule)
    return await _show(site, me, rule)


@routes.post("/rules/{rule}/disable", response_model=Rule, openapi_extra=WRITE)
async def disable(site: Here, me: Me, rule: UUID) -> dict[str, Any]:
    """Turn a rule off; what it has scheduled stays scheduled."""
    await rules.disable(site.database, me.owner, rule)
    return await _show(site, me, rule)


@routes.delete("/rules/{rule}", status_code=204, openapi_extra=WRITE)
async def remove(site: Here, me: Me, rule: UUID) -> None:
    """Remove a rule; its posts stay."""
    await rules.remove(site.database, me.owner, rule)


async def _show(site: Site, me: Caller, rule: UUID) -> dict[str, Any]:
    async with site.database.connection() as connection:
        return _told(me, await rules.show(connection, me.owner, rule))


def _told(me: Caller, rule: rules.Rule) -> dict[str, Any]:
    moves = [("disable", "no posts are wanted for now") if rule.enabled else ("enable", "posts are wanted again")]
    moves.append(("remove", "no posts are wanted any more"))
    return {**rule.as_data(), "moves": offers.to(me, Scope.POSTS_WRITE, moves)}
