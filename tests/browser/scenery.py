"""Scenery: believable data for pages that are looked at, by tests and by who makes their pictures."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.api.visitor import Visitor
from tests.browser.belongings import belongings
from tests.browser.troubles import troubled
from tests.browser.world import World

# Every page, with the things it is about; a new page is added here, and is then tested and drawn like the others.
ENTRANCE = ("/first", "/sign-in", "/invitation")
PATHS = (
    "/",
    "/posts",
    "/posts/new",
    "/posts/{post}",
    "/posts/{post}/edit",
    "/accounts",
    "/accounts/new",
    "/accounts/new/deviantart",
    "/accounts/{account}/reconnect",
    "/batches",
    "/batches/{batch}",
    "/series",
    "/series/{series}",
    "/notices",
    "/notices/delivery",
    "/dead-letters",
    "/dead-letters/{letter}",
    "/dead-letters/machine",
    "/health",
    "/settings",
    "/settings/people",
    "/settings/people/{person}",
    "/settings/invitations",
    "/settings/audit",
)
TITLES = (
    "A lighthouse at dusk",
    "Fog over the harbour",
    "The keeper's cat",
    "Storm seen from inside",
    "Low tide",
    "First snow on the pier",
    "Nets drying in the sun",
    "Two boats, one shadow",
)


async def furnished(at: World, ada: Visitor) -> dict[str, Any]:
    """Connect an account and write posts in every state; gives what the paths of the pages need."""
    account = (await ada.post("/api/sandbox-account", None, 201))["account"]["id"]
    posts = [await _post(ada, title) for title in TITLES]
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for number, post in enumerate(posts[:6]):
        due = now + timedelta(days=number * 2 - 4, hours=number + 2)
        await ada.post(f"/api/posts/{post}/schedule", {"at": (now + timedelta(days=30)).isoformat()})
        await _at(at, UUID(post), due)
    await _ended(at, UUID(posts[0]), "success")
    await _ended(at, UUID(posts[1]), "failed")
    planned = [await _post(ada, title) for title in ("The keeper's coat", "Gulls", "A window in the fog")]
    return {
        "post": posts[3],
        "account": account,
        **await belongings(at, ada, planned),
        **await troubled(at, ada, posts[0]),
    }


async def _post(ada: Visitor, title: str) -> str:
    written = {"title": title, "kind": "article", "body": f"{title}: words about a picture.", "zone": "Europe/Berlin"}
    made: str = (await ada.post("/api/posts", written, 201))["id"]
    await ada.post(f"/api/posts/{made}/ready")
    return made


async def _at(at: World, post: UUID, due: datetime) -> None:
    """Give what waits a time of the past or the near future, which people could not."""
    async with at.database.transaction("scenery", "a believable calendar") as connection:
        await connection.execute(
            "UPDATE publication SET scheduled_at = $2, jitter_seconds = 0, due_at = $2 WHERE post_id = $1", post, due
        )


async def _ended(at: World, post: UUID, status: str) -> None:
    """Let a publication have ended, by the moves a worker makes."""
    ends = {
        "success": "remote_id = '17', url = 'http://127.0.0.1/blog/lighthouse/', published_at = imprint_now()",
        "failed": "error_code = 'wordpress.refused'",
    }
    async with at.database.transaction("scenery", "it went so") as connection:
        for change in (
            "status = 'running', phase = 'uploading', lease_until = imprint_now() + interval '1 min'",
            f"status = '{status}', phase = NULL, lease_until = NULL, {ends[status]}",
        ):
            await connection.execute(f"UPDATE publication SET {change} WHERE post_id = $1", post)
