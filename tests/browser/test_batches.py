"""Batches in a real browser: how far they have come is seen without a reload, and their order is changed by buttons."""

from datetime import UTC, datetime, timedelta

from playwright.async_api import Page, expect

from tests.api.visitor import Visitor
from tests.browser.world import World

TITLES = ("A lighthouse at dusk", "Low tide", "The keeper's cat", "Two boats")


async def _batch(ada: Visitor, **plan: object) -> str:
    await ada.post("/api/sandbox-account", None, 201)
    posts = []
    for title in TITLES:
        posts.append((await ada.post("/api/posts", {"title": title, "kind": "article", "body": "Words."}, 201))["id"])
        await ada.post(f"/api/posts/{posts[-1]}/ready")
    made: str = (await ada.post("/api/batches", {"posts": posts, **plan}, 201))["id"]
    return made


async def _titles(page: Page) -> list[str]:
    return await page.locator(".rows tbody th a").all_inner_texts()


async def test_a_batch_is_arranged_paused_resumed_and_stopped(at: World) -> None:
    """Each by a button or a key, told to whoever looks at it or at the list."""
    ada = await at.town.first()
    at_three = datetime.now(UTC) + timedelta(hours=3)
    batch = await _batch(ada, everyMinutes=30, at=at_three.isoformat())
    window, other = await at.window(ada), await at.window(ada)
    page, listed = window.page, other.page
    await other.go("/batches")
    await listed.get_by_role("link", name="4 publications").click()
    await expect(listed.get_by_role("heading", name="Batch of 4")).to_be_visible()
    await window.go(f"/batches/{batch}")
    await other.go("/batches")
    await expect(page.get_by_role("row", name="Two boats")).to_contain_text("about")
    await page.get_by_role("button", name="Earlier: Two boats").click()
    await expect(page.locator(".rows tbody tr").nth(2)).to_contain_text("Two boats")
    await expect(page.get_by_role("button", name="Earlier: Two boats")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator(".rows tbody tr").nth(1)).to_contain_text("Two boats")
    await page.get_by_role("button", name="Put first Low tide").click()
    await expect(page.locator(".rows tbody tr").first).to_contain_text("Low tide")
    assert await _titles(page) == ["Low tide", "A lighthouse at dusk", "Two boats", "The keeper's cat"]
    members = (await ada.get(f"/api/batches/{batch}"))["members"]
    assert [each["title"] for each in members] == await _titles(page)
    await page.get_by_role("button", name="Pause").click()
    await expect(listed.locator(".rows .badge")).to_contain_text("paused")
    await page.get_by_role("button", name="Resume").click()
    await expect(listed.locator(".rows .badge")).to_contain_text("waits to begin")
    await page.get_by_role("button", name="Stop").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(listed.locator(".rows .badge")).to_contain_text("over")
    await expect(listed.locator(".rows")).to_contain_text("4 cancelled")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.get_by_text("There are no batches yet.")).to_be_visible()
    await expect(listed.get_by_text("There are no batches yet.")).to_be_visible()


async def test_a_batch_goes_out_before_ones_eyes(at: World) -> None:
    """One after the other, counted as they go."""
    ada = await at.town.first()
    batch = await _batch(ada, everyMinutes=0)
    window = await at.window(ada)
    await window.go(f"/batches/{batch}")
    async with at.worker():
        await expect(window.page.get_by_text("4 of 4 out.")).to_be_visible()
    await expect(window.page.get_by_role("link", name="See it there")).to_have_count(4)
