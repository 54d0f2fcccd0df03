"""The same for many posts, each by itself: a problem with one does not stop the others."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from imprint.api.dry_runs import rehearsed
from imprint.api.explanations import explained
from imprint.api.gate import needs, router
from imprint.api.post_moves import On, Reschedule, Schedule, move, plan, zone_of_post
from imprint.api.posts import New, show_one, written
from imprint.api.shape import Given, Outcomes
from imprint.api.site import Here, Me
from imprint.work import bulk, schedule
from imprint.work import post as posts
from imprint.work.fitting import Fitting
from imprint.work.schedule import Changed
from imprint.work.scope import Scope

routes = router("posts")
READ, WRITE = needs(Scope.POSTS_READ), needs(Scope.POSTS_WRITE)

Ids = Annotated[list[UUID], Field(min_length=1, max_length=500, description="The posts.")]


class ManyPosts(Given):
    """Which posts."""

    ids: Ids


class ManyOn(On):
    """Which posts, on which accounts."""

    ids: Ids


class ScheduleMany(Schedule):
    """Which posts, when and where."""

    ids: Ids


class RescheduleMany(Reschedule):
    """Which posts, and their other time."""

    ids: Ids


class CreateMany(Given):
    """What one writes of each post."""

    posts: Annotated[list[New], Field(min_length=1, max_length=100, description="In their order.")]


class EditMany(Given):
    """Which posts, and what is to be different in each of them."""

    ids: Ids
    changes: New


class FewOn(On):
    """Which posts, on which accounts; not too many, since each is looked at as a whole."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=50, description="The posts.")]


class Few(Given):
    """Which posts; not too many, since each is told as a whole."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=50, description="The posts.")]


@routes.post("/posts/bulk/create", response_model=Outcomes, openapi_extra=WRITE)
async def create(site: Here, me: Me, given: CreateMany) -> dict[str, Any]:
    """Write posts; `id` is the place of each in the list, from 0, and `result` the id of the new post."""

    async def one(place: int) -> UUID:
        return await posts.create(site.database, me.owner, written(given.posts[place]))

    return _told(await bulk.each(range(len(given.posts)), one))


@routes.post("/posts/bulk/edit", response_model=Outcomes, openapi_extra=WRITE)
async def edit(site: Here, me: Me, given: EditMany) -> dict[str, Any]:
    """Change the same in many posts, and nothing else."""
    changes = written(given.changes)

    async def one(post: UUID) -> None:
        await posts.edit(site.database, me.owner, post, changes)

    return await _each(given.ids, one)


@routes.post("/posts/bulk/show", response_model=Outcomes, openapi_extra=READ)
async def show(site: Here, me: Me, given: Few) -> dict[str, Any]:
    """Give posts, each as it is given alone."""
    return await _each(given.ids, lambda post: show_one(site, me, post))


@routes.post("/posts/bulk/explain", response_model=Outcomes, openapi_extra=READ)
async def explain(site: Here, me: Me, given: Few) -> dict[str, Any]:
    """Tell of each post why it did, or did not, go out."""
    return await _each(given.ids, lambda post: explained(site, me.owner, post))


@routes.post("/posts/bulk/dry-run", response_model=Outcomes, openapi_extra=READ)
async def dry_run(site: Here, me: Me, given: FewOn) -> dict[str, Any]:
    """Show of each post what would be sent; nothing is sent."""
    return await _each(given.ids, lambda post: rehearsed(site, me.owner, post, given.accounts))


@routes.post("/posts/bulk/ready", response_model=Outcomes, openapi_extra=WRITE)
async def ready(site: Here, me: Me, given: ManyPosts) -> dict[str, Any]:
    """Declare posts ready."""
    return await _each(given.ids, lambda post: posts.ready(site.database, me.owner, post))


@routes.post("/posts/bulk/reopen", response_model=Outcomes, openapi_extra=WRITE)
async def reopen(site: Here, me: Me, given: ManyPosts) -> dict[str, Any]:
    """Take posts back."""
    return await _each(given.ids, lambda post: posts.reopen(site.database, me.owner, post))


@routes.post("/posts/bulk/schedule", response_model=Outcomes, openapi_extra=WRITE)
async def schedule_(site: Here, me: Me, given: ScheduleMany) -> dict[str, Any]:
    """Plan posts, all for the same time."""
    return await _each(given.ids, lambda post: plan(site, me.owner, post, given))


@routes.post("/posts/bulk/reschedule", response_model=Outcomes, openapi_extra=WRITE)
async def reschedule(site: Here, me: Me, given: RescheduleMany) -> dict[str, Any]:
    """Give what waits of posts another time."""
    return await _each(given.ids, lambda post: move(site, me.owner, post, given))


@routes.post("/posts/bulk/unschedule", response_model=Outcomes, openapi_extra=WRITE)
async def unschedule(site: Here, me: Me, given: ManyOn) -> dict[str, Any]:
    """Cancel what waits of posts."""
    return await _each(
        given.ids, lambda post: schedule.unschedule(site.database, me.owner, post, accounts=given.accounts)
    )


@routes.post("/posts/bulk/publish", response_model=Outcomes, openapi_extra=WRITE)
async def publish(site: Here, me: Me, given: ManyOn) -> dict[str, Any]:
    """Let posts go at once."""
    fitting = Fitting(site.vault)

    async def one(post: UUID) -> list[Changed]:
        zone = await zone_of_post(site, me.owner, post)
        return await schedule.publish_now(
            site.database, me.owner, post, zone=zone, accounts=given.accounts, fitting=fitting
        )

    return await _each(given.ids, one)


@routes.post("/posts/bulk/cancel", response_model=Outcomes, openapi_extra=WRITE)
async def cancel(site: Here, me: Me, given: ManyOn) -> dict[str, Any]:
    """Stop posts."""
    return await _each(given.ids, lambda post: schedule.cancel(site.database, me.owner, post, accounts=given.accounts))


@routes.post("/posts/bulk/retry", response_model=Outcomes, openapi_extra=WRITE)
async def retry(site: Here, me: Me, given: ManyOn) -> dict[str, Any]:
    """Try again what failed of posts."""
    return await _each(given.ids, lambda post: schedule.retry(site.database, me.owner, post, accounts=given.accounts))


@routes.post("/posts/bulk/duplicate", response_model=Outcomes, openapi_extra=WRITE)
async def duplicate(site: Here, me: Me, given: ManyPosts) -> dict[str, Any]:
    """Copy posts; the result of each is the id of its copy."""
    return await _each(given.ids, lambda post: posts.duplicate(site.database, me.owner, post))


@routes.post("/posts/bulk/delete", response_model=Outcomes, openapi_extra=WRITE)
async def delete(site: Here, me: Me, given: ManyPosts) -> dict[str, Any]:
    """Delete posts."""
    return await _each(given.ids, lambda post: schedule.delete(site.database, me.owner, post))


async def _each(ids: list[UUID], act: Callable[[UUID], Awaitable[object]]) -> dict[str, Any]:
    return _told(await bulk.each(ids, act))


def _told(outcomes: Sequence[bulk.Outcome[Any, Any]]) -> dict[str, Any]:
    return {"outcomes": [{**each.as_data(_result(each.result)), "id": str(each.id)} for each in outcomes]}


def _result(result: object) -> object:
    if isinstance(result, list):
        return [each.as_data() for each in result]
    return str(result) if isinstance(result, UUID) else result
