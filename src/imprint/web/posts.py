"""The list of posts: found by state, account and words, the newest first."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from fastapi.responses import Response

from imprint.api import cursor
from imprint.lifecycles.post import PostStatus
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import account as accounts
from imprint.work import catalogue
from imprint.work import post as posts
from imprint.work.catalogue import Wanted
from imprint.work.scope import Scope

routes = pages()
PAGE = 50

Words = Annotated[str, Query(max_length=200)]


@routes.get("/posts", **seen_by(Scope.POSTS_READ))
async def listed(look: Looking, status: str = "", text: Words = "", account: str = "", after: str = "") -> Response:
    """Show the posts."""
    return look.page("posts.html", title="Posts", **await _found(look, status, text, account, after))


@routes.get("/posts/rows", **seen_by(Scope.POSTS_READ))
async def rows(look: Looking, status: str = "", text: Words = "", account: str = "", after: str = "") -> Response:
    """Show the rows of the list, again."""
    return look.part("posts_rows.html", **await _found(look, status, text, account, after))


async def _found(look: View, status: str, text: str, account: str, after: str) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        connected = await accounts.listed(connection, look.me.owner)
        on: UUID | None = next((each.id for each in connected if str(each.id) == account), None)
        wanted = Wanted(PostStatus(status) if status in set(PostStatus) else None, None, text or None, on)
        found = await catalogue.page(
            connection, look.me.owner, wanted, after=cursor.read(after or None), limit=PAGE + 1
        )
        asking = await catalogue.asking(connection, look.me.owner, [each.id for each in found])
        counts = await posts.counts(connection, look.me.owner)
    told = cursor.page(found, PAGE, found)
    return {
        "posts": told["items"],
        "next": told["next"],
        "asking": asking,
        "after": after,
        "counts": counts,
        "status": wanted.status,
        "text": text,
        "account": on,
        "accounts": connected,
        "states": list(PostStatus),
    }
