"""Belongings: accounts, a batch and a series in believable states, for pages that are looked at."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.engine import circuit, pace
from imprint.sources.contract import Chapter
from tests.api.visitor import Visitor
from tests.browser.world import World
from tests.work.serials import chapter, take_in

SECRET = "whsec_Y2FuYXJ5LW9mLXRoZS12YXVsdC1jYW5hcnktb2Y="  # noqa: S105 - of nobody
WELL = """
UPDATE source SET last_polled_at = imprint_now(), last_worked_at = imprint_now(), last_news_at = imprint_now(),
    every = '6 h', next_check_at = imprint_now() + interval '6 h', priority = 'WARM' WHERE id = $1
"""
UNWELL = """
UPDATE source SET last_polled_at = imprint_now(), failures = 3, error_code = 'source.unreachable',
    error = 'mirror.example does not answer.', next_check_at = imprint_now() + interval '20 min' WHERE id = $1
"""
NAMES = ("The lamp", "A ship at night", "Letters from the coast", "The storm")


async def belongings(at: World, ada: Visitor, posts: list[str]) -> dict[str, Any]:
    """Give what the paths of the pages need, beside the posts."""
    hook = await connected(ada, "My site")
    slow = await connected(ada, "The harbour's newsletter")
    async with at.database.transaction("scenery", "they are not well") as connection:
        sentence = "The receiver does not take the secret; set it anew."
        await connection.execute(
            "UPDATE account SET status = 'reconnect', trouble_code = 'webhook.secret', trouble = $2 WHERE id = $1",
            UUID(hook),
            sentence,
        )
        await pace.slow(connection, f"account:{slow}", pace.PUBLISHING)
        for _ in range(12):
            await circuit.failed(
                connection, f"account:{slow}", circuit.PUBLISHING, "error", "The receiver answers 503."
            )
    first = datetime.now(UTC) + timedelta(hours=3)
    planned = {"posts": posts, "everyMinutes": 45, "at": first.isoformat()}
    return {"batch": (await ada.post("/api/batches", planned, 201))["id"], "series": await serial(at, ada)}


async def connected(ada: Visitor, label: str) -> str:
    """Connect an account that asks nobody."""
    answers = {"url": f"https://hooks{len(label)}.example/imprint", "secret": SECRET}
    given = {"platform": "webhook", "label": label, "answers": answers}
    made: str = (await ada.post("/api/accounts", given, 201))["account"]["id"]
    return made


async def serial(at: World, ada: Visitor) -> str:
    """Add a series with chapters, one source that works and one that does not, and a rule."""
    feed = {"place": "https://serials.example/lighthouse/feed", "title": "The Lighthouse Keeper"}
    series = (await ada.post("/api/series", feed, 201))["id"]
    other = await ada.post(f"/api/series/{series}/sources", {"place": "https://mirror.example/lighthouse.rss"}, 201)
    (works,) = [each for each in await _sources(ada, series) if each["id"] != other["id"]]
    await take_in(at.database, UUID(series), UUID(works["id"]), [_chapter(number) for number in range(1, 13)])
    await ada.post(f"/api/library/{series}/read", {"upTo": "10"})
    async with at.database.transaction("scenery", "they were asked") as connection:
        await connection.execute(WELL, UUID(works["id"]))
        await connection.execute(UNWELL, UUID(other["id"]))
    accounts = (await ada.get("/api/accounts"))["items"]
    chosen = [each["id"] for each in accounts if each["isDefault"]]
    await ada.post("/api/rules", {"seriesId": series, "accounts": chosen, "delaySeconds": 600}, 201)
    return str(series)


def _chapter(number: int) -> Chapter:
    url = f"https://serials.example/lighthouse/{number}"
    return chapter(f"Chapter {number}: {NAMES[number % len(NAMES)]}", f"own-{number}", url=url, language="en")


async def _sources(ada: Visitor, series: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await ada.get(f"/api/series/{series}/sources"))["items"]
    return found
