"""The calendar in a real browser: an empty one says what to do, a full one can be dragged, and changes by itself."""

from datetime import UTC, datetime, timedelta

from playwright.async_api import expect

from tests.browser.world import World
from tests.work.posts import Author


def _noon(days: int) -> datetime:
    """Give a noon some days ahead: on the same day in every zone that a test uses."""
    return (datetime.now(UTC) + timedelta(days=days)).replace(hour=12, minute=0, second=0, microsecond=0)


async def test_from_an_empty_calendar_to_a_published_post(at: World) -> None:
    """A sandbox account with one click, a post, and it is out, seen without a reload; no registration anywhere."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    await window.go("/")
    await page.get_by_role("button", name="Connect a sandbox account").click()
    await expect(page.get_by_text("Now your first post")).to_be_visible()
    post = (await ada.post("/api/posts", {"title": "My first", "kind": "article", "body": "Hello."}, 201))["id"]
    await window.go(f"/posts/{post}")
    await page.get_by_role("button", name="Ready").click()
    async with at.worker():
        await page.get_by_role("button", name="Publish now").click()
        await expect(page.locator(".head .badge.good").first).to_be_visible()
    link = page.get_by_role("link", name="See it there")
    shown = await at.window()
    shown.url = ""
    shown.expect("favicon.ico")
    await shown.go(await link.get_attribute("href") or "")
    await expect(shown.page.get_by_text("Hello.")).to_be_visible()
    await window.go("/")
    await expect(page.get_by_role("link", name="My first")).to_be_visible()
    await expect(page.locator("#next")).to_be_empty()


async def test_a_post_is_dragged_to_another_day_and_back(at: World) -> None:
    """The API is asked, the message offers to undo, and the time of day stays."""
    ada = await at.town.first()
    author = Author(at.database, "operator")
    account = await author.account(default=True)
    post = await author.draft()
    due = _noon(2)
    await ada.post(f"/api/posts/{post}/schedule", {"at": due.isoformat(), "accounts": [{"accountId": str(account)}]})
    (before,) = (await ada.get(f"/api/posts/{post}"))["publications"]
    window = await at.window(ada)
    page = window.page
    await window.go("/")
    await page.get_by_role("button", name="Week").click()
    await page.get_by_role("button", name="Month").click()
    target = due + timedelta(days=1)
    if target.month != due.month:
        await page.get_by_role("button", name="Later").click()
    entry = page.get_by_role("link", name="A lighthouse at dusk")
    await entry.drag_to(page.locator(f'td[data-date="{target.date()}"]'))
    await expect(page.get_by_role("status")).to_contain_text("goes out")
    (moved,) = (await ada.get(f"/api/posts/{post}"))["publications"]
    assert datetime.fromisoformat(moved["scheduledAt"]).date() == target.date()
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("status")).to_contain_text("is back")
    (back,) = (await ada.get(f"/api/posts/{post}"))["publications"]
    assert back["scheduledAt"] == before["actualPublishAt"]


async def test_what_others_change_is_seen_without_a_reload(at: World) -> None:
    """A post that a program schedules appears in the calendar that is open, and in the list."""
    ada = await at.town.first()
    author = Author(at.database, "operator")
    await author.account(default=True)
    post = await author.draft()
    calendar, listed = await at.window(ada), await at.window(ada)
    await calendar.go("/")
    await listed.go("/posts")
    await expect(listed.page.locator(".rows .badge")).to_contain_text("ready")
    await calendar.page.get_by_role("button", name="List").click()
    due = datetime.now(UTC) + timedelta(hours=2)
    await ada.post(f"/api/posts/{post}/schedule", {"at": due.isoformat()})
    if due.astimezone().month == datetime.now(UTC).month:
        await expect(calendar.page.get_by_role("link", name="A lighthouse at dusk")).to_be_visible()
    await expect(listed.page.locator(".rows .badge")).to_contain_text("scheduled")
