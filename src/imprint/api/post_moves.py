"""What can be done with a post: declare it ready, say when it goes out and where, stop it, try it again, copy it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field

from imprint.api.gate import needs, router
from imprint.api.posts import Post, show_one
from imprint.api.shape import Given, Text
from imprint.api.site import Here, Me, Site
from imprint.decisions.schedule import parse, zone_of
from imprint.work import post as posts
from imprint.work import schedule as schedules
from imprint.work.fitting import Fitting
from imprint.work.schedule import Changed, Target
from imprint.work.scope import Scope

routes = router("posts")
WRITE = needs(Scope.POSTS_WRITE)

Time = Annotated[
    Text, Field(max_length=60, description="With an offset, or on the wall of the zone.", examples=["2030-05-01T18:00"])
]
Zone = Annotated[Text, Field(max_length=60, examples=["Europe/Berlin"])]
Accounts = Annotated[tuple[UUID, ...], Field(max_length=100, description="Only these accounts; all when left out.")]


class Place(Given):
    """An account, and its own time if it has one."""

    account_id: UUID
    at: Time | None = None


class Schedule(Given):
    """When and where; without accounts the default account."""

    at: Time | None = None
    zone: Zone | None = None
    accounts: Annotated[tuple[Place, ...], Field(max_length=100)] = ()

    def on(self, fallback: str) -> tuple[datetime | None, ZoneInfo, list[Target]]:
        """Read the times, on the wall of the zone."""
        wall = zone_of(self.zone or fallback)
        targets = [Target(each.account_id, parse(each.at, wall) if each.at else None) for each in self.accounts]
        return (parse(self.at, wall) if self.at else None), wall, targets


class Reschedule(Given):
    """Another time."""

    at: Time
    zone: Zone | None = None
    accounts: Accounts = ()


class On(Given):
    """Which accounts."""

    accounts: Accounts = ()


@routes.post("/posts/{post}/ready", response_model=Post, openapi_extra=WRITE)
async def ready(site: Here, me: Me, post: UUID) -> dict[str, Any]:
    """Declare a post ready: it needs a title and a confirmed file, an article a body."""
    await posts.ready(site.database, me.owner, post)
    return await show_one(site, me, post)


@routes.post("/posts/{post}/reopen", response_model=Post, openapi_extra=WRITE)
async def reopen(site: Here, me: Me, post: UUID) -> dict[str, Any]:
    """Take a draft back into review, or a post that failed back to its author."""
    await posts.reopen(site.database, me.owner, post)
    return await show_one(site, me, post)


@routes.post("/posts/{post}/schedule", response_model=Post, openapi_extra=WRITE)
async def schedule(site: Here, me: Me, post: UUID, given: Schedule) -> dict[str, Any]:
    """Plan a draft, or a post that failed."""
    await plan(site, me.owner, post, given)
    return await show_one(site, me, post)


@routes.post("/posts/{post}/reschedule", response_model=Post, openapi_extra=WRITE)
async def reschedule(site: Here, me: Me, post: UUID, given: Reschedule) -> dict[str, Any]:
    """Give what waits another time; it never goes early, and never twice."""
    await move(site, me.owner, post, given)
    return await show_one(site, me, post)


@routes.post("/posts/{post}/unschedule", response_model=Post, openapi_extra=WRITE)
async def unschedule(site: Here, me: Me, post: UUID, given: On | None = None) -> dict[str, Any]:
    """Cancel what waits."""
    await schedules.unschedule(site.database, me.owner, post, accounts=_on(given))
    return await show_one(site, me, post)


@routes.post("/posts/{post}/publish", response_model=Post, openapi_extra=WRITE)
async def publish(site: Here, me: Me, post: UUID, given: On | None = None) -> dict[str, Any]:
    """Let a post go at once."""
    zone = await zone_of_post(site, me.owner, post)
    fitting = Fitting(site.vault)
    await schedules.publish_now(site.database, me.owner, post, zone=zone, accounts=_on(given), fitting=fitting)
    return await show_one(site, me, post)


@routes.post("/posts/{post}/cancel", response_model=Post, openapi_extra=WRITE)
async def cancel(site: Here, me: Me, post: UUID, given: On | None = None) -> dict[str, Any]:
    """Stop everything that can still be stopped, and let go of what failed."""
    await schedules.cancel(site.database, me.owner, post, accounts=_on(given))
    return await show_one(site, me, post)


@routes.post("/posts/{post}/retry", response_model=Post, openapi_extra=WRITE)
async def retry(site: Here, me: Me, post: UUID, given: On | None = None) -> dict[str, Any]:
    """Try what failed once more."""
    await schedules.retry(site.database, me.owner, post, accounts=_on(given))
    return await show_one(site, me, post)


@routes.post("/posts/{post}/duplicate", response_model=Post, status_code=201, openapi_extra=WRITE)
async def duplicate(site: Here, me: Me, post: UUID) -> dict[str, Any]:
    """Make another post of the same words and files, in review."""
    return await show_one(site, me, await posts.duplicate(site.database, me.owner, post))


async def plan(site: Site, owner: str, post: UUID, given: Schedule) -> list[Changed]:
    """Plan a post; a time without a zone is on the wall of the post's own."""
    at, wall, targets = given.on(await zone_of_post(site, owner, post))
    limits = schedules.bounds(site.settings)
    fitting = Fitting(site.vault)
    return await schedules.schedule(
        site.database, limits, owner, post, at, zone=wall.key, targets=targets, fitting=fitting
    )


async def move(site: Site, owner: str, post: UUID, given: Reschedule) -> list[Changed]:
    """Give what waits of a post another time."""
    wall = zone_of(given.zone or await zone_of_post(site, owner, post))
    limits = schedules.bounds(site.settings)
    at = parse(given.at, wall)
    return await schedules.reschedule(site.database, limits, owner, post, at, zone=wall.key, accounts=given.accounts)


async def zone_of_post(site: Site, owner: str, post: UUID) -> str:
    """Give the zone in which the author of a post thinks."""
    async with site.database.connection() as connection:
        return (await posts.show(connection, owner, post)).post.zone


def _on(given: On | None) -> Sequence[UUID]:
    return given.accounts if given else ()
