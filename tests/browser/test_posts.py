"""The list of posts in a real browser: found, chosen, planned together, taken out and brought in as CSV."""

import csv
from io import StringIO
from pathlib import Path

from playwright.async_api import FilePayload, Page, expect

from tests.api.visitor import Visitor
from tests.browser.world import World

EVIL = '=HYPERLINK("https://evil.example")'


async def written(who: Visitor, *titles: str) -> list[str]:
    """Write articles that are in review."""
    given = [{"title": title, "kind": "article", "body": "Words."} for title in titles]
    outcomes = (await who.post("/api/posts/bulk/create", {"posts": given}))["outcomes"]
    return [each["result"] for each in outcomes]


def sheet(*rows: str) -> FilePayload:
    """Give a CSV as a person chooses it."""
    text = "\r\n".join(["title,kind,body,account,time", *rows])
    return FilePayload(name="posts.csv", mimeType="text/csv", buffer=text.encode())


async def titles(page: Page) -> list[str]:
    """Read the titles of the list."""
    return await page.locator(".rows tbody th").all_inner_texts()


async def test_posts_are_found_chosen_and_planned_one_after_the_other(at: World) -> None:
    """Words and states narrow the list; what is chosen becomes a batch, and what is not wanted goes."""
    ada = await at.town.first()
    await ada.post("/api/sandbox-account", None, 201)
    await written(ada, "Low tide", "High tide", "Fog", "Snow")
    window = await at.window(ada)
    page = window.page
    await window.go("/posts")
    await page.get_by_label("Words of the title").fill("tide")
    await expect(page.locator(".rows tbody tr")).to_have_count(2)
    await page.get_by_label("Choose all on this page").check()
    await expect(page.get_by_text("2 posts chosen")).to_be_visible()
    await page.get_by_role("button", name="Schedule…").click()
    await page.get_by_label("Minutes between two").fill("30")
    await page.get_by_role("dialog").get_by_role("button", name="Schedule").click()
    await expect(page.get_by_text("2 posts are planned.")).to_be_visible()
    await expect(page.locator(".rows .badge.waiting")).to_have_count(2)  # still only those with the words
    (batch,) = (await ada.get("/api/batches"))["items"]
    members = (await ada.get(f"/api/batches/{batch['id']}"))["members"]
    assert (batch["everyMinutes"], sorted(each["title"] for each in members)) == (30, ["High tide", "Low tide"])
    await page.get_by_label("Words of the title").fill("")
    await page.get_by_label("State").select_option("review")
    await expect(page.locator(".rows tbody tr")).to_have_count(2)
    await page.get_by_label("Choose Fog").check()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.locator(".rows tbody tr")).to_have_count(1)
    assert await titles(page) == ["Snow"]
    async with at.worker():
        await page.get_by_label("Choose Snow").check()
        await page.get_by_role("button", name="Publish now").click()
        await page.get_by_role("dialog").get_by_role("checkbox").check()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_text("No post is like that.")).to_be_visible()
        await page.get_by_label("State").select_option("published")
        await expect(page.get_by_role("link", name="Snow")).to_be_visible()


async def test_a_sheet_comes_in_whole_or_not_at_all_and_goes_out_harmless(at: World) -> None:
    """A wrong row is shown before anything is made; what is taken out again runs nothing in a spreadsheet."""
    ada = await at.town.first()
    await ada.post("/api/sandbox-account", None, 201)
    window = await at.window(ada)
    page = window.page
    await window.go("/posts")
    await page.get_by_role("button", name="Import CSV").click()
    file = page.get_by_label("The file", exact=True)
    await file.set_input_files(sheet("Low tide,article,Words.,,", "Fog,article,Words.,Attic,2030-01-01T10:00"))
    await expect(page.get_by_text("There is no account called 'Attic'.")).to_be_visible()
    await expect(page.get_by_role("dialog").get_by_role("button", name="Import")).to_be_disabled()
    assert await ada.get("/api/posts/counts") == {}
    quoted = EVIL.replace('"', '""')
    await file.set_input_files(sheet("Low tide,article,Words.,,", f'"{quoted}",article,Words.,,'))
    await expect(page.get_by_text("2 posts, and nothing is wrong.")).to_be_visible()
    await page.get_by_role("dialog").get_by_role("button", name="Import").click()
    await expect(page.get_by_role("link", name="Low tide")).to_be_visible()
    assert await ada.get("/api/posts/counts") == {"review": 2}
    await page.get_by_label("Words of the title").fill("HYPER")
    await expect(page.locator(".rows tbody tr")).to_have_count(1)
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Export CSV").click()
    path = Path(await (await downloading.value).path())
    (row,) = csv.DictReader(StringIO(path.read_text(encoding="utf-8-sig")))
    assert (row["title"], row["state"]) == (f"'{EVIL}", "review")


async def test_a_long_list_has_pages(at: World) -> None:
    """Older posts are one click away, with the same filter, and the way back is there."""
    ada = await at.town.first()
    await written(ada, *[f"Tide {each}" for each in range(52)])
    window = await at.window(ada)
    page = window.page
    await window.go("/posts?status=review")
    await expect(page.locator(".rows tbody tr")).to_have_count(50)
    await page.get_by_role("link", name="Older posts").click()
    await expect(page.locator(".rows tbody tr")).to_have_count(2)
    await expect(page.get_by_label("State")).to_have_value("review")
    await page.get_by_role("link", name="The newest").click()
    await expect(page.locator(".rows tbody tr")).to_have_count(50)
