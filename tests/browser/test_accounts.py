"""Accounts in a real browser: each kind is connected as a person does it, and one whose token has ended again."""

from pathlib import Path

from playwright.async_api import Page, expect

from imprint.sandbox.server import Sandbox, sandbox
from tests.browser.belongings import connected
from tests.browser.world import Window, World

WHO = "painter"
PLATFORMS = ("bluesky", "deviantart", "mastodon", "webhook", "wordpress")
BY_BROWSER = {"deviantart", "mastodon"}


async def _fill(page: Page, answers: dict[str, str]) -> None:
    """Answer what a form asks for; what has a default is behind “More”."""
    more = page.locator("summary", has_text="More")
    if await more.count():
        await more.click()
    for name, value in answers.items():
        await page.locator(f"#answer-{name}").fill(value)


async def _connect(window: Window, running: Sandbox, platform: str) -> None:
    page = window.page
    await window.go("/accounts/new")
    await page.locator(f'a[href="/accounts/new/{platform}"]').click()
    await page.get_by_label("What you call it").fill(f"mine on {platform}")
    await _fill(page, running.sites[platform].answers(running.base_url(platform), WHO))
    await page.locator("main form button.primary").click()
    if platform in BY_BROWSER:
        await expect(page.get_by_text(f"mine on {platform} is connected.")).to_be_visible()
        await page.get_by_role("link", name="Go on").click()
    await expect(page.get_by_role("heading", name=f"mine on {platform}")).to_be_visible()


async def test_accounts_of_every_kind_are_connected(at: World, tmp_path: Path) -> None:
    """By answers, by way of the platform's own page, a folder of the machine, and the sandbox with one click."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    await window.go("/accounts")
    await expect(page.get_by_text("No account is connected yet.")).to_be_visible()
    async with sandbox() as running:
        for platform in PLATFORMS:
            await _connect(window, running, platform)
    await window.go("/accounts/new/folder")
    await page.get_by_label("What you call it").fill("mine")
    await page.get_by_label("Folder").fill(str(tmp_path / "nowhere"))
    window.expect("424")
    await page.get_by_role("button", name="Connect").click()
    await expect(page.get_by_role("alert")).not_to_be_empty()
    await page.get_by_label("Folder").fill(str(tmp_path))
    await page.get_by_role("button", name="Connect").click()
    await expect(page.get_by_role("heading", name="mine", exact=True)).to_be_visible()
    await window.go("/accounts/new")
    await page.get_by_role("button", name="Connect a sandbox account").click()
    await expect(page.get_by_role("heading", name="Sandbox")).to_be_visible()
    found = {each["platform"]: each["status"] for each in (await ada.get("/api/accounts"))["items"]}
    assert found == dict.fromkeys((*PLATFORMS, "folder"), "connected")


async def test_an_account_is_looked_after(at: World) -> None:
    """Default, disabled, enabled, removed: by buttons, seen at once, here and in another window."""
    ada = await at.town.first()
    await connected(ada, "My site")
    await connected(ada, "The other site")
    window, other = await at.window(ada), await at.window(ada)
    page = window.page
    await window.go("/accounts")
    await other.go("/accounts")
    there = other.page.get_by_role("region", name="The other site")
    await page.get_by_role("button", name="Make default The other site").click()
    await expect(there).to_contain_text("the default")
    await page.get_by_role("button", name="Disable The other site").click()
    await expect(page.get_by_role("region", name="The other site")).to_contain_text("Not used until you enable it.")
    await expect(there.locator(".badge")).to_contain_text("disabled")
    await expect(page.get_by_role("button", name="Enable The other site")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(there.locator(".badge")).to_contain_text("connected")
    await page.get_by_role("button", name="Remove The other site").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.get_by_role("status")).to_contain_text("Removed.")
    await expect(there).to_have_count(0)
    assert [each["label"] for each in (await ada.get("/api/accounts"))["items"]] == ["My site"]


async def test_a_post_goes_out_when_its_person_has_signed_in_again(at: World) -> None:
    """A token is taken back: the page says so by itself, and after the sign-in what waited goes out."""
    platform = "mastodon"
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    async with sandbox() as running, at.worker():
        await _connect(window, running, platform)
        running.sites[platform].spoil(WHO, "access")
        post = (await ada.post("/api/posts", {"title": "My first", "kind": "article", "body": "Hello."}, 201))["id"]
        await ada.post(f"/api/posts/{post}/ready")
        await ada.post(f"/api/posts/{post}/publish")
        card = page.get_by_role("region", name=f"mine on {platform}")
        await expect(card.locator(".badge")).to_contain_text("sign in again")
        await expect(card).to_contain_text("1 publication waits")
        await card.get_by_role("link", name="Sign in again").click()
        await _fill(page, running.sites[platform].answers(running.base_url(platform), WHO))
        await page.get_by_role("button", name="Go to Mastodon").click()
        await expect(page.get_by_text(f"mine on {platform} is connected.")).to_be_visible()
        await window.go(f"/posts/{post}")
        await expect(page.locator(".head .badge.good").first).to_be_visible()


async def test_an_application_is_not_asked_for_twice(at: World) -> None:
    """Who signs in to DeviantArt again only says yes there: Imprint still knows the application."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    async with sandbox() as running:
        await _connect(window, running, "deviantart")
        async with at.database.transaction("test", "its sign-in has ended") as connection:
            await connection.execute(
                "UPDATE account SET status = 'reconnect', trouble_code = 'x', trouble = 'It ended.'"
            )
        card = page.get_by_role("region", name="mine on deviantart")
        await expect(card).to_contain_text("It ended.")
        await card.get_by_role("link", name="Sign in again").click()
        await page.get_by_role("button", name="Sign in at DeviantArt").click()
        await expect(page.get_by_text("mine on deviantart is connected.")).to_be_visible()
        (account,) = (await ada.get("/api/accounts"))["items"]
        assert account["status"] == "connected"
