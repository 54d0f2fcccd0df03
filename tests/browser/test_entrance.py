"""The entrance in a real browser: the first account, signing in and out, an invitation; mistakes are told in place."""

from playwright.async_api import expect

from tests.api.visitor import PASSWORD
from tests.browser.world import World


async def test_the_first_visitor_makes_the_first_account(at: World) -> None:
    """The address that `imprint up` prints carries the code; a name and a password are all that is asked."""
    window = await at.window()
    await window.go(f"/first#{await at.town.code()}")
    page = window.page
    assert "#" not in page.url  # a code that works once need not stay in the history
    await page.get_by_label("Name").fill("ada")
    await page.get_by_label("Password").fill("short")
    window.expect("422", "/api/people/first")
    await page.get_by_role("button", name="Make the first account").click()
    await expect(page.locator(".field-problem")).to_contain_text("letters")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Make the first account").click()
    await expect(page.get_by_role("heading", name="Calendar")).to_be_visible()
    await expect(page.get_by_text("First, somewhere to publish")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_who_signs_in_goes_on_to_where_they_wanted(at: World) -> None:
    """A wrong password is told in place, and nobody is sent to an address that is not ours."""
    ada = await at.town.first()
    await ada.post("/api/posts", {"title": "A lighthouse at dusk"}, 201)
    window = await at.window()
    page = window.page
    await window.go("/posts?status=review")
    assert "/sign-in?next=/posts" in page.url
    await page.get_by_label("Name").fill("ada")
    await page.get_by_label("Password").fill("wrong password")
    window.expect("401", "/api/session")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).not_to_be_empty()
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("link", name="A lighthouse at dusk")).to_be_visible()
    await window.go("/sign-in?next=//evil.example/")
    await expect(page.get_by_role("heading", name="Calendar")).to_be_visible()


async def test_who_is_invited_comes_in_and_sees_nothing_of_others(at: World) -> None:
    """The code comes in the address; the new person's pages are empty."""
    ada = await at.town.first()
    secret = "Only Ada knows this"  # noqa: S105 - not of the kind that opens doors
    post = (await ada.post("/api/posts", {"title": secret}, 201))["id"]
    code = (await ada.post("/api/invitations", {"role": "member"}, 201))["code"]
    window = await at.window()
    page = window.page
    await window.go(f"/invitation#{code}")
    await page.get_by_label("Name").fill("bob")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Make my account").click()
    await expect(page.get_by_role("heading", name="Calendar")).to_be_visible()
    for path in ("/", "/posts", f"/posts/{post}"):
        window.expect(f"404 GET {at.url}/posts/{post}", "404 (Not Found)")
        await window.go(path)
        assert secret not in await page.content()
    await expect(page.get_by_text("There is no such post.")).to_be_visible()
