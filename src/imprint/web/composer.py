"""The composer: where a post is written; what it sends is shown as it is written."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from fastapi.responses import RedirectResponse, Response

from imprint.images.sniff import ALLOWED
from imprint.platforms.registry import PLATFORMS
from imprint.web.page import Looking, View, pages, seen_by
from imprint.web.shown import platform_name
from imprint.work import account as accounts
from imprint.work import post as posts
from imprint.work.account import Account
from imprint.work.dry_run import dry_run
from imprint.work.measure import rooms
from imprint.work.post import EDITABLE, Shown
from imprint.work.post_fields import Fields
from imprint.work.scope import Scope

routes = pages()
MATURE = ("nudity", "sexual", "gore", "language", "ideology")


@routes.get("/posts/new", **seen_by(Scope.POSTS_WRITE))
async def new(look: Looking) -> Response:
    """Show an empty composer; the post is made with the first letter or file."""
    return await _composer(look, None)


@routes.get("/posts/{post}/edit", **seen_by(Scope.POSTS_WRITE))
async def edit(look: Looking, post: UUID) -> Response:
    """Show a post in the composer; one that can no longer be changed is shown on its own page."""
    async with look.site.database.connection() as connection:
        shown = await posts.show(connection, look.me.owner, post)
    if shown.post.status not in EDITABLE:
        return RedirectResponse(f"/posts/{post}", 303)
    return await _composer(look, shown)


@routes.get("/posts/{post}/sent", **seen_by(Scope.POSTS_READ))
async def sent(
    look: Looking,
    post: UUID,
    account: Annotated[list[UUID], Query(max_length=100)] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Show how much room a post takes on each account, what stands in the way, and exactly what would be sent."""
    site, owner = look.site, look.me.owner
    if not account:
        return look.part("composer_sent.html", places=[])
    async with site.database.connection() as connection:
        found = await rooms(connection, site.vault, owner, post, account)
    rehearsed = await dry_run(site.database, site.stores, site.vault, owner, post, only=account)
    places = [
        {"room": room, "runs": [each.as_data() for each in rehearsed if each.account.id == room.account.id]}
        for room in found
    ]
    return look.part("composer_sent.html", places=places)


async def _composer(look: View, shown: Shown | None) -> Response:
    async with look.site.database.connection() as connection:
        connected = await accounts.listed(connection, look.me.owner)
    return look.page(
        "composer.html",
        title=(shown.post.title or "Untitled") if shown else "New post",
        post=shown.post if shown else None,
        words=_words(shown),
        data=_data(shown),
        accounts=connected,
        wordings=_wordings(connected),
        mature=MATURE,
        types=",".join(sorted(ALLOWED)),
    )


def _wordings(connected: Sequence[Account]) -> list[dict[str, Any]]:
    """Give the places that can have words of their own: platforms, and accounts where a platform has several."""
    found = []
    for platform, several in groupby(sorted(connected, key=lambda each: each.platform), lambda each: each.platform):
        members = list(several)
        places = [(platform, platform_name(platform))]
        places += [(str(each.id), each.shown) for each in members] if len(members) > 1 else []
        text_only = bool(PLATFORMS[platform].limits.text)
        found += [{"place": place, "shown": shown, "text_only": text_only} for place, shown in places]
    return found


def _words(shown: Shown | None) -> dict[str, Any]:
    """Give what is written, as the fields show it."""
    return shown.post.fields() if shown else Fields().model_dump(mode="json", by_alias=True)


def _data(shown: Shown | None) -> dict[str, Any]:
    """Give what the script needs of a post beside its words."""
    if shown is None:
        return {"id": None, "revision": None, "status": "review", "publications": []}
    planned = [
        {"accountId": str(each.account_id), "status": each.status, "at": (each.scheduled_at or each.due_at).isoformat()}
        for each in shown.publications
        if each.status != "cancelled"
    ]
    post = shown.post
    return {"id": str(post.id), "revision": post.revision, "status": post.status, "publications": planned}
