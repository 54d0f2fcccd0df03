"""The page of a post in a real browser: it changes by itself, asks one clear question, and every move is one click."""

from playwright.async_api import expect

from tests.browser.world import World
from tests.work.posts import Author


async def test_a_post_goes_out_before_ones_eyes(at: World) -> None:
    """From ready to published with its address, told as a story, and the page is never loaded again."""
    ada = await at.town.first()
    await ada.post("/api/sandbox-account", None, 201)
    written = {"title": "Low tide", "kind": "article", "body": "Words."}
    post = (await ada.post("/api/posts", written, 201))["id"]
    window = await at.window(ada)
    page = window.page
    await window.go(f"/posts/{post}")
    await page.evaluate("window.sameAsBefore = true")
    await page.get_by_text("Text of the article").click()
    await page.get_by_role("button", name="Ready").press("Enter")
    await expect(page.locator("#state")).to_be_focused()  # what was pressed is gone; the keyboard is not lost
    await expect(page.get_by_text("Words.")).to_be_visible()  # what was opened stays open
    await expect(page.get_by_role("link", name="Posts", exact=True)).to_have_attribute("aria-current", "true")
    await page.get_by_role("button", name="Publish now").click()
    await expect(page.locator(".ahead")).to_contain_text("Next:")
    await expect(page.locator(".story").first).to_contain_text("It was planned")
    async with at.worker():
        await expect(page.get_by_role("link", name="See it there")).to_be_visible()
    await expect(page.locator("h1 + .badge")).to_contain_text("published")
    await page.get_by_text("What happened").click()
    await expect(page.locator(".story").first).to_contain_text("A worker took it: attempt 1.")
    assert await page.evaluate("window.sameAsBefore")
    await page.get_by_role("button", name="Duplicate").click()
    await page.wait_for_url("**/edit")
    await expect(page.get_by_label("Title", exact=True)).to_have_value("Low tide")
    await window.go(f"/posts/{post}")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Go on").click()
    await page.wait_for_url("**/posts")
    await expect(page.get_by_role("link", name="Low tide")).to_have_count(1)  # the copy


async def test_an_unknown_outcome_is_one_question(at: World) -> None:
    """What somebody typed survives what changes around it; an address that is none is told, a real one decides it."""
    ada = await at.town.first()
    author = Author(at.database, "operator")
    post = await author.brought("unknown")
    publication = await author.publication(post)
    window = await at.window(ada)
    page = window.page
    await window.go("/posts")
    await expect(page.locator(".rows .badge")).to_contain_text("unknown")  # and not failed: nobody knows
    await window.go(f"/posts/{post}")
    await expect(page.get_by_role("heading", name="Is it out on")).to_be_visible()
    await expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    address = page.get_by_label("Its address there")
    await address.fill("https://gallery.example/art /1")
    window.expect("422")
    await page.get_by_role("button", name="Yes, it is out").click()
    await expect(page.locator(".field-problem")).to_contain_text("Give the address")
    await address.fill("https://gallery.example/art/1")
    async with at.database.connection() as connection:  # something else happens to it meanwhile
        await connection.execute("UPDATE publication SET held_why = 'look' WHERE id = $1", publication)
    await page.evaluate(f"document.body.dispatchEvent(new CustomEvent('live:post-{post}'))")
    async with page.expect_response(f"**/posts/{post}/state"):
        pass
    await expect(address).to_have_value("https://gallery.example/art/1")
    await page.get_by_role("button", name="Yes, it is out").click()
    await expect(page.locator("h1 + .badge")).to_contain_text("published")
    assert await page.get_by_role("link", name="See it there").get_attribute("href") == "https://gallery.example/art/1"
    assert await author.states(post) == ["success"]


async def test_what_is_said_not_to_be_out_is_sent_again(at: World) -> None:
    """The other button, after a second question; and what failed is tried again or let go."""
    ada = await at.town.first()
    author = Author(at.database, "operator")
    lost, failed = await author.brought("unknown"), await author.brought("failed")
    window = await at.window(ada)
    page = window.page
    await window.go(f"/posts/{lost}")
    await page.get_by_role("button", name="No, send it again").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.locator("h1 + .badge")).to_contain_text("scheduled")
    assert await author.states(lost) == ["pending"]
    await window.go(f"/posts/{failed}")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("button", name="Unschedule")).to_be_visible()
    await page.get_by_role("button", name="Unschedule").click()
    await expect(page.get_by_role("link", name="Edit and schedule")).to_be_visible()
