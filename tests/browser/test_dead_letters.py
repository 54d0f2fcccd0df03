"""Dead letters in a real browser: a person tries their own again; the machine's are for who looks after it."""

from playwright.async_api import expect

from tests.api.test_dead_letters import hold, set_aside
from tests.browser.troubles import undelivered
from tests.browser.world import World


async def test_a_person_requeues_and_discards_their_own(at: World) -> None:
    """One is looked at and requeued, one is let go after a question; those of others are not there."""
    ada = await at.town.first()
    bob = await at.town.invited(ada, "bob")
    await set_aside(at.town, ada, "of ada")
    await set_aside(at.town, bob, "of bob")
    letter = await undelivered(at, bob.signed["personId"])
    window = await at.window(bob)
    page = window.page
    await window.go("/")
    await page.get_by_role("link", name="Dead letters").click()
    await expect(page.locator("tbody tr")).to_have_count(2)
    assert await page.get_by_role("link", name="Whole machine").count() == 0
    await page.get_by_role("link", name="phone").click()
    await expect(page.get_by_text("The service answered 503.").first).to_be_visible()
    await page.get_by_role("button", name="Requeue").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    async with at.database.connection() as connection:
        waits = await connection.fetchval("SELECT failed_at IS NULL FROM delivery WHERE 'd' || id = $1", letter)
    assert waits
    await page.get_by_role("button", name="Discard Sea").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.get_by_text("There are no dead letters.")).to_be_visible()
    assert len((await ada.get("/api/dead-letters"))["items"]) == 1


async def test_who_looks_after_the_machine_requeues_a_job(at: World) -> None:
    """The tab counts everybody's, a job is tried once more, and what comes meanwhile appears by itself."""
    ada = await at.town.first()
    bob = await at.town.invited(ada, "bob")
    await set_aside(at.town, bob, "of bob")
    await hold(at.town, "chore", "clean")
    window = await at.window(ada)
    page = window.page
    await window.go("/dead-letters")
    await expect(page.get_by_text("There are no dead letters.")).to_be_visible()
    await expect(page.locator("#held")).to_contain_text("2")
    await page.get_by_role("link", name="Whole machine").click()
    await page.get_by_role("button", name="Requeue clean").click()
    await expect(page.get_by_role("button", name="Requeue clean")).to_have_count(0)
    async with at.database.connection() as connection:
        assert await connection.fetchval("SELECT status FROM pgqueuer WHERE entrypoint = 'chore'") == "queued"
    await expect(page.locator("#held")).to_contain_text("1")
    await undelivered(at, bob.signed["personId"])
    await page.evaluate("document.body.dispatchEvent(new CustomEvent('live:health'))")
    await expect(page.locator("tbody tr")).to_have_count(2)
