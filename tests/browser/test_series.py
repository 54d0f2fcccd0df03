"""Series in a real browser: added by an address, read, announced; a new chapter arrives while one looks."""

from playwright.async_api import expect

from imprint.sandbox.serial_faults import Fault, Kind
from imprint.sandbox.serial_world import World as Serials
from imprint.sandbox.serials import serials, serving
from tests.browser.world import World


async def test_a_chapter_arrives_while_one_looks(at: World) -> None:
    """Added by its address, what is there is no news; then one more comes out, is seen, announced and read."""
    ada = await at.town.first()
    await ada.post("/api/sandbox-account", None, 201)
    world = Serials()
    tale = world.add("The Lighthouse Keeper", 3)
    async with serving(serials(world)) as there, at.worker():
        window, other = await at.window(ada), await at.window(ada)
        page, listed = window.page, other.page
        await window.go("/series")
        await other.go("/series")
        await page.get_by_label("Address").fill(f"{there}/feeds/{tale.serial}.rss")
        await page.get_by_role("button", name="Add it").click()
        chapters = page.locator("#chapters")
        await expect(chapters.get_by_role("heading", name="Chapter 3")).to_be_visible()
        await expect(page.get_by_role("heading", name="The Lighthouse Keeper")).to_be_visible()
        await page.get_by_role("button", name="All read").click()
        await expect(listed.locator(".rows")).to_contain_text("all read")
        await page.get_by_text("Announce new chapters").click()
        await page.get_by_role("button", name="Announce from now on").click()
        await expect(page.locator("#rules")).to_contain_text("0 posts so far")
        world.publish(tale, "4")
        await page.get_by_role("button", name="Ask now").click()
        await expect(chapters.get_by_role("heading", name="Chapter 4")).to_be_visible()
        await expect(page.locator("#about")).to_contain_text("1 to read")
        await expect(listed.locator(".rows")).to_contain_text("1 of 4")
        await expect(page.locator("#rules")).to_contain_text("1 post so far")
        await page.get_by_role("button", name="Mark read Chapter 4", exact=True).click()
        await expect(listed.locator(".rows")).to_contain_text("all read")


async def test_a_source_that_fails_says_so_and_when_it_is_tried_again(at: World) -> None:
    """Its last error and its next try are there by themselves; asked again, it is well."""
    ada = await at.town.first()
    world = Serials()
    tale = world.add("The Lighthouse Keeper", 2)
    world.faults.add(Fault(Kind.STATUS, "/feeds", times=1, status=503))
    async with serving(serials(world)) as there:
        made = await ada.post("/api/series", {"place": f"{there}/feeds/{tale.serial}.rss", "title": "A tale"}, 201)
        window = await at.window(ada)
        page = window.page
        await window.go(f"/series/{made['id']}")
        async with at.worker():
            sources = page.locator("#sources")
            await expect(sources).to_contain_text("The next try is")
            await expect(sources.locator(".badge")).to_contain_text("failed")
            await page.get_by_role("button", name="Ask now").click()
            await expect(page.locator("#chapters").get_by_role("heading", name="Chapter 2")).to_be_visible()
            await expect(sources.locator(".badge")).to_contain_text("active")
    await page.get_by_role("button", name="Unfollow").click()
    await expect(page.locator("#about .badge")).to_contain_text("not followed")
    await page.get_by_role("button", name="Disable").click()
    await expect(sources).to_contain_text("Not asked until you enable it.")
