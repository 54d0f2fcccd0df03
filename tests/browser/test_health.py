"""Health in a real browser: the charts follow what a worker does, and the doctor says in words what is wrong."""

from playwright.async_api import expect

from imprint.store import backup
from tests.browser.world import World


async def test_the_charts_follow_the_work(at: World) -> None:
    """A worker comes, a post goes out: numbers and charts change without a reload."""
    ada = await at.town.first()
    await ada.post("/api/sandbox-account", None, 201)
    post = (await ada.post("/api/posts", {"title": "Out", "kind": "article", "body": "Hello."}, 201))["id"]
    await ada.post(f"/api/posts/{post}/ready")
    window = await at.window(ada)
    page = window.page
    await window.go("/health")
    throughput = page.locator('[data-chart="throughput"] [data-told]')
    await expect(throughput).to_contain_text("0 published")
    await expect(page.locator("[data-chart] canvas")).to_have_count(4)
    await expect(page.get_by_text("none is alive: nothing is sent")).to_be_visible()
    await expect(page.locator(".findings").get_by_text("none is alive, so nothing is sent")).to_be_visible()
    async with at.worker():
        await ada.post(f"/api/posts/{post}/publish")
        await expect(throughput).to_contain_text("1 published")
        await expect(page.locator('[data-chart="workers"] [data-told]')).to_contain_text("1 in this quarter")
        await expect(page.locator(".tiles div").first).to_contain_text("alive")
        backup.note(at.town.settings.home)
        await page.get_by_role("button", name="Look again").click()
        await expect(page.get_by_text("Nothing is wrong.")).to_be_visible()
        await page.get_by_text("more that are as they should be").click()
        await expect(page.locator(".findings").get_by_text("1 alive")).to_be_visible()
    await window.go("/health")
    await expect(page.locator(".tiles").get_by_text("imprint backup")).to_have_count(0)
    await window.accessible()


async def test_a_member_is_told_that_it_is_not_for_them(at: World) -> None:
    """It stands in no menu of theirs, and its address leads to a sentence."""
    bob = await at.town.invited(await at.town.first(), "bob")
    window = await at.window(bob, phone=True)
    window.expect("403")
    await window.go("/health")
    await expect(window.page.get_by_text("Your role does not include this page.")).to_be_visible()
    assert await window.page.locator("a[href='/health']").count() == 0
