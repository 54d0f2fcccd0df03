"""Settings in a real browser: password, sessions and keys of one person, and for administrators people and audit."""

from playwright.async_api import expect

from tests.api.visitor import PASSWORD
from tests.browser.world import World


async def test_a_person_looks_after_their_own_doors(at: World) -> None:
    """A mistake is told in place, another session ends, and a key is shown once and opens what it was given for."""
    ada = await at.town.first()
    elsewhere = await at.town.visitor()
    await elsewhere.post("/api/session", {"name": "ada", "password": PASSWORD}, 201)
    window = await at.window(ada)
    page = window.page
    await window.go("/settings")
    await expect(page.locator("#sessions tbody tr")).to_have_count(2)
    await page.get_by_role("button", name="End the session").click()
    await expect(page.locator("#sessions tbody tr")).to_have_count(1)
    assert await elsewhere.refused("GET", "/api/session") == (401, "signed_out")
    window.expect("403", "409", "422", "/api/session/password")
    await page.get_by_label("The one you have").fill("not the one")
    await page.get_by_label("The new one").fill("another horse battery staple")
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.get_by_text("That is not the password you have now.")).to_be_visible()
    await page.get_by_label("The one you have").fill(PASSWORD)
    await page.get_by_role("button", name="Change the password").click()
    await expect(page.get_by_role("status").filter(has_text="Your password is changed.")).to_be_visible()
    await page.get_by_text("Make a key").click()
    await page.get_by_label("What it is for").fill("my script")
    await page.get_by_label("posts:read").check()
    await page.get_by_role("button", name="Make the key").click()
    secret = await page.get_by_role("dialog").get_by_role("status").inner_text()
    await page.get_by_role("button", name="I have it").click()
    assert secret not in await page.content()
    program = await at.town.visitor(Authorization=f"Bearer {secret}")
    await program.get("/api/posts")
    assert await program.refused("GET", "/api/notices") == (403, "scope.lacking")
    await page.get_by_role("button", name="Revoke my script").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.get_by_text("You have no keys.")).to_be_visible()
    assert await program.refused("GET", "/api/posts") == (401, "signed_out")


async def test_an_administrator_invites_and_looks_after_people(at: World) -> None:
    """The address of an invitation is shown once and lets somebody in, who can be let in no more."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    await window.go("/settings")
    await page.get_by_role("link", name="Invitations").click()
    await page.get_by_label("For whom").fill("Grace")
    await page.get_by_role("button", name="Invite", exact=True).click()
    address = await page.get_by_role("dialog").get_by_role("status").inner_text()
    assert address.startswith(f"{at.url}/invitation#")
    await page.get_by_role("button", name="I have it").click()
    await expect(page.get_by_role("row").filter(has_text="Grace")).to_be_visible()
    grace = await at.town.visitor()
    given = {"code": address.partition("#")[2], "name": "grace", "password": PASSWORD}
    grace.signed = await grace.post("/api/invitations/accept", given, 201)
    await page.get_by_role("link", name="People").click()
    await page.get_by_role("link", name="grace").click()
    await page.get_by_label("Role").select_option("reader")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("row").filter(has_text="grace")).to_contain_text("reader")
    await page.get_by_role("link", name="grace").click()
    await page.get_by_role("button", name="Disable").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.get_by_role("button", name="Enable")).to_be_visible()
    assert await grace.refused("GET", "/api/session") == (401, "signed_out")


async def test_the_audit_is_read_and_verified(at: World) -> None:
    """A page at a time, with names; new lines come by themselves, and a line that somebody changed is found."""
    ada = await at.town.first()
    for number in range(51):
        await ada.post("/api/posts", {"title": f"Post {number}"}, 201)
    window = await at.window(ada)
    page = window.page
    await window.go("/settings/audit")
    await expect(page.locator("tbody tr")).to_have_count(50)
    await expect(page.locator("tbody tr").first).to_contain_text("ada")
    await page.get_by_role("button", name="Verify the chain").click()
    await expect(page.get_by_text("are as they were written")).to_be_visible()
    latest = (await ada.post("/api/posts", {"title": "The latest"}, 201))["id"]
    await expect(page.locator("tbody tr").first).to_contain_text(latest[:8])
    await page.get_by_role("link", name="Older lines").click()
    await expect(page.locator("tbody tr").last).to_be_visible()
    assert await page.locator("tbody tr").count() < 50
    async with at.database.connection() as connection:
        await connection.execute("ALTER TABLE audit DISABLE TRIGGER USER")
        await connection.execute("UPDATE audit SET reason = 'nothing of note' WHERE row_id = $1", latest)
    await page.get_by_role("button", name="Verify the chain").click()
    await expect(page.get_by_role("heading", name="Somebody has touched it")).to_be_visible()
