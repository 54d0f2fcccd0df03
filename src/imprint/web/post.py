"""The page of one post: where it goes, how it stands, what happened, and what can be done now."""

from typing import Any
from uuid import UUID

from fastapi.responses import Response

from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import attach
from imprint.work import post as posts
from imprint.work.explain import explain
from imprint.work.post import EDITABLE
from imprint.work.scope import Scope

routes = pages()


@routes.get("/posts/{post}", **seen_by(Scope.POSTS_READ))
async def post(look: Looking, post: UUID) -> Response:
    """Show a post."""
    told = await _told(look, post)
    return look.page("post.html", title=told["post"].title or "Untitled", **told)


@routes.get("/posts/{post}/state", **seen_by(Scope.POSTS_READ))
async def state(look: Looking, post: UUID) -> Response:
    """Show how it stands, again."""
    return look.part("post_state.html", **await _told(look, post))


async def _told(look: View, post: UUID) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        shown = await posts.show(connection, look.me.owner, post)
        files = await attach.listed(connection, look.me.owner, post)
        explained = await explain(connection, look.me.owner, str(post), late_hours=look.site.settings.late_hours)
    asks = any(each.standing.status == "unknown" for each in explained.publications)
    return {
        "post": shown.post,
        "files": files,
        "story": explained,
        "asks": asks,
        "editable": shown.post.status in EDITABLE and not asks,
    }
