"""The calendar in a real browser: an empty one says what to do, a full one can be dragged, and changes by itself."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from playwright.async_api import expect

from tests.api.visitor import Visitor
from tests.browser.world import World
from tests.waiting import until
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
    """The API is asked, the message offers to undo, and the time of day stays; in a week, and without a mouse, too."""
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
    assert back["scheduledAt"] == before["scheduledAt"]  # the random seconds have not added up
    await window.go(f"/#timeGridWeek/{due.date()}")
    slot = await page.locator(".fc-timegrid-slot-lane").first.bounding_box()
    await entry.scroll_into_view_if_needed()
    box = await entry.bounding_box()
    assert slot
    assert box
    await page.mouse.move(box["x"] + 10, box["y"] + 8)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 10, box["y"] + 8 - slot["height"], steps=4)
    await page.mouse.move(box["x"] + 10, box["y"] + 8 - 2 * slot["height"], steps=4)
    await page.mouse.up()
    await until(lambda: _goes(ada, post, due - timedelta(hours=1)))
    await entry.focus()
    await page.keyboard.press("Shift+ArrowDown")
    await until(lambda: _goes(ada, post, due - timedelta(minutes=30)))
    await expect(entry).to_be_focused()
    await entry.click()
    await page.wait_for_url(f"**/posts/{post}")
    await page.go_back()
    await expect(page.locator(".fc-timegrid-slot-lane").first).to_be_visible()  # where one was


async def _goes(ada: Visitor, post: UUID, at: datetime) -> bool:
    """Say whether a post is planned for this time."""
    (now,) = (await ada.get(f"/api/posts/{post}"))["publications"]
    return datetime.fromisoformat(now["scheduledAt"]) == at


async def test_a_full_day_is_short_and_shows_what_matters(at: World) -> None:
    """However many there are, a month stays small; what failed is among those one sees, and one line leads to all."""
    ada = await at.town.first()
    author = Author(at.database, "operator")
    failed = await author.brought("failed")
    await author.account(default=True)
    due = _noon(2)
    rows = [f"Wave {each},article,Words.,{due:%Y-%m-%dT%H:%M}" for each in range(30)]
    sheet = "\r\n".join(["title,kind,body,time", *rows])
    told = await ada.post("/api/posts/import", {"csv": sheet, "zone": "UTC", "check": False})
    assert told["imported"] == 30
    async with at.database.transaction("scenery", "on the same day") as connection:
        await connection.execute(
            "UPDATE publication SET scheduled_at = $2, due_at = $2 WHERE post_id = $1", failed, due + timedelta(hours=1)
        )
    window = await at.window(ada)
    page = window.page
    await window.go(f"/#dayGridMonth/{due.date()}")
    day = page.locator(f'td[data-date="{due.date()}"] .fc-daygrid-event')
    await expect(day).to_have_count(5)
    await expect(day.locator(".entry-sign").filter(has_text="✖")).to_have_count(1)
    await page.get_by_role("link", name="27 more").click()
    await expect(page.locator(".fc-list-event")).to_have_count(31)


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
