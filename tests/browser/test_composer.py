"""The composer in a real browser: files that survive a cut, words that keep themselves, two windows."""

import struct
import zlib
from collections.abc import Awaitable, Callable
from functools import partial

from playwright.async_api import FilePayload, Page, Route, expect

from tests.api.visitor import PASSWORD
from tests.browser.belongings import connected
from tests.browser.world import Window, World
from tests.waiting import until


def png(number: int, size: int = 24) -> bytes:
    """Draw a small picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colour = bytes((number * 12 % 256, 90, 200 - number * 5))
    lines = (b"\x00" + colour * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def pictures(count: int) -> list[FilePayload]:
    """Give files as a person drops them."""
    return [FilePayload(name=f"tide-{each:02}.png", mimeType="image/png", buffer=png(each)) for each in range(count)]


async def saved(page: Page) -> None:
    """Wait until everything is kept."""
    await expect(page.locator("[data-saved]")).to_have_text("Saved")


async def edited(page: Page) -> str:
    """Give the id of the post that is being written."""
    await page.wait_for_url("**/edit")
    return page.url.rsplit("/", 2)[-2]


async def test_twenty_files_come_in_order_though_a_connection_is_cut(at: World) -> None:
    """The one that was cut goes on by itself with a new address; a reload loses nothing, and pictures appear."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    await window.go("/posts/new")
    cut: list[str] = []

    async def scissors(route: Route) -> None:
        if len(cut) == 6:
            cut.append(route.request.url)
            await route.abort("connectionreset")
            return
        cut.append("")
        await route.continue_()

    window.expect("ERR_CONNECTION_RESET", "409")  # cut; and the question whether it had arrived after all
    await page.route("**/api/uploads/bytes/**", scissors)
    await page.get_by_label("choose files").set_input_files(pictures(20))
    await expect(page.locator(".file")).to_have_count(20)
    await expect(page.locator(".file progress:visible")).to_have_count(0)
    post = await edited(page)
    files = (await ada.get(f"/api/posts/{post}/files"))["items"]
    assert [each["name"] for each in files] == [f"tide-{each:02}.png" for each in range(20)]
    assert all(each["confirmed"] for each in files)
    assert len(cut) == 21
    assert cut[6]
    await page.reload()
    await expect(page.locator(".file .name")).to_have_text([f"tide-{each:02}.png" for each in range(20)])
    async with at.worker():
        await expect(page.locator(".file .picture img").first).to_be_visible()


async def test_files_are_put_in_order_and_described_by_keyboard(at: World) -> None:
    """Arrows move a file, words about it are kept, one can be removed, all while they come in; a mouse can drag."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    await window.go("/posts/new")
    await page.get_by_label("choose files").set_input_files(pictures(3))
    await page.get_by_role("button", name="Move tide-02.png up").press("Enter")
    await page.get_by_role("button", name="Remove tide-01.png").click()
    await expect(page.locator(".file .name")).to_have_text(["tide-00.png", "tide-02.png"])
    await page.get_by_label("What can be seen in it").first.fill("A calm sea.")
    post = await edited(page)
    await page.locator(".picture").nth(1).drag_to(page.locator(".picture").nth(0), target_position={"x": 5, "y": 5})
    await expect(page.locator(".file .name")).to_have_text(["tide-02.png", "tide-00.png"])

    async def kept() -> list[tuple[str, str]]:
        return [(each["name"], each["alt"]) for each in (await ada.get(f"/api/posts/{post}/files"))["items"]]

    await until(lambda: _is(kept, [("tide-02.png", ""), ("tide-00.png", "A calm sea.")]))


async def _is(found: Callable[[], Awaitable[object]], wanted: object) -> bool:
    return await found() == wanted


async def test_an_account_has_words_of_its_own(at: World) -> None:
    """Where a platform has several accounts, each can have its own title; what is sent shows it there alone."""
    ada = await at.town.first()
    shop, _ = await connected(ada, "Shop"), await connected(ada, "My blog")
    window = await at.window(ada)
    page = window.page
    await window.go("/posts/new")
    await page.get_by_role("radio", name="Article").check()
    await page.get_by_label("Title", exact=True).fill("A lighthouse at dusk")
    await page.get_by_label("Text of the article").fill("Words about a picture.")
    await page.get_by_role("checkbox", name="Shop").check()
    await page.get_by_role("checkbox", name="My blog").check()
    await page.get_by_text("Other words for Shop").click()
    await page.get_by_label("Title on Shop").fill("A print for your wall")
    await saved(page)
    written = await ada.get(f"/api/posts/{await edited(page)}")
    assert written["overrides"] == {shop: {"title": "A print for your wall"}}
    sent = page.locator("#sent pre")
    await expect(sent.filter(has_text="A print for your wall")).to_have_count(1)
    await expect(sent.filter(has_text="A lighthouse at dusk")).to_have_count(1)


async def test_a_post_is_written_tried_on_and_published(at: World) -> None:
    """From the first letter to its page where it is out: kept by itself, and what would be sent is seen."""
    ada = await at.town.first()
    await ada.post("/api/sandbox-account", None, 201)
    window = await at.window(ada)
    page = window.page
    await window.go("/posts/new")
    await page.get_by_role("radio", name="Article").check()
    await page.get_by_label("Text of the article").fill("Words about a picture.")
    await saved(page)
    await expect(page.get_by_text("A post needs a title.")).to_be_visible()
    await page.get_by_label("Title", exact=True).fill("A lighthouse at dusk")
    await page.get_by_label("Tags").fill("sea, light, sea")
    await saved(page)
    await expect(page.get_by_text("Nothing stands in the way.")).to_be_visible()
    await page.locator("#sent summary").click()
    await expect(page.locator("#sent pre").last).to_contain_text("Words about a picture.")
    await page.get_by_text("Other words for WordPress").click()
    await page.get_by_label("Title on WordPress").fill("At dusk")
    await expect(page.locator("#sent pre").last).to_contain_text("At dusk")
    await saved(page)
    post = await edited(page)
    written = await ada.get(f"/api/posts/{post}")
    assert (written["title"], written["tags"]) == ("A lighthouse at dusk", ["sea", "light"])
    assert (written["overrides"], written["zone"]) == ({"wordpress": {"title": "At dusk"}}, "Europe/Berlin")
    await page.reload()
    await expect(page.get_by_label("Title on WordPress")).to_have_value("At dusk")
    window.expect("422")
    for at_field, told in (("", "Say when"), ("2020-01-01T10:00", "at least 1 hour ahead")):
        await page.get_by_label("Goes out").fill(at_field)
        await page.get_by_role("button", name="Schedule").click()
        await expect(page.locator(".field-problem")).to_contain_text(told)
        await expect(page.locator(".field-problem")).to_have_count(1)  # the mistake before is forgotten
    async with at.worker():
        await page.get_by_role("button", name="Publish now").click()
        await page.wait_for_url(f"**/posts/{post}")
        await expect(page.get_by_role("link", name="See it there")).to_be_visible()
    await expect(page.locator("h1 + .badge")).to_contain_text("published")
    await window.go(f"/posts/{post}/edit")
    await expect(page.get_by_role("heading", name="A lighthouse at dusk")).to_be_visible()  # its page: it is out


async def _two(at: World) -> tuple[str, Window, Window]:
    ada = await at.town.first()
    post: str = (await ada.post("/api/posts", {"title": "Low tide"}, 201))["id"]
    one, other = await at.window(ada), await at.window(ada)
    for each in (one, other):
        await each.go(f"/posts/{post}/edit")
    return post, one, other


async def _held(page: Page, title: str, route: Route) -> None:
    """Hold what a window sends on its way until another one has kept something else."""
    if route.request.method == "PATCH":
        await page.get_by_label("Title", exact=True).fill(title)
        await saved(page)
    await route.continue_()


async def test_two_windows_never_overwrite_each_other(at: World) -> None:
    """What only one changed is put together; for what both changed the second is asked, and either answer is done."""
    post, one, other = await _two(at)
    await one.page.get_by_label("Description").fill("Nets in the sun.")
    await saved(one.page)
    await expect(other.page.get_by_label("Description")).to_have_value("Nets in the sun.")  # seen without a reload
    other.expect("409")
    for mine, answer, stays in (("Mine", "Load the other version", "Theirs 1"), ("Mine", "Keep mine", "Mine")):
        number = stays[-1] if stays != "Mine" else "2"

        await other.page.route(f"**/api/posts/{post}", partial(_held, one.page, f"Theirs {number}"), times=1)
        await other.page.get_by_label("Title", exact=True).fill(mine)
        await expect(other.page.get_by_text("This post was changed in another window")).to_be_visible()
        await other.page.get_by_role("button", name=answer).click()
        await saved(other.page)
        await expect(other.page.get_by_label("Title", exact=True)).to_have_value(stays)
        await expect(one.page.get_by_label("Title", exact=True)).to_have_value(stays)


async def test_what_cannot_be_kept_is_said_and_kept_later(at: World) -> None:
    """While Imprint cannot be reached the page says so and tries again; what is refused is told at its field."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    window.expect("ERR_INTERNET_DISCONNECTED", "ERR_CONNECTION_REFUSED", "ERR_FAILED")
    await window.go("/posts/new")
    lost = 0

    async def away(route: Route) -> None:
        nonlocal lost
        lost += 1
        await (route.abort("failed") if lost == 1 else route.continue_())

    await page.route("**/api/posts/*", away)
    await page.get_by_label("Title", exact=True).fill("Low tide")
    await expect(page.locator("[data-saved]")).to_contain_text("cannot be reached")
    await saved(page)
    post = await edited(page)
    assert (await ada.get(f"/api/posts/{post}"))["title"] == "Low tide"
    await page.get_by_role("button", name="Ready").click()
    window.expect("409")
    await expect(page.get_by_text("A post needs at least one file.")).to_be_visible()
    window.expect("422", "401")
    await page.get_by_label("Tags").fill(f"sea, {'long' * 100}")
    await expect(page.locator("#tags + .field-problem")).to_contain_text("at most 200")
    await page.get_by_label("Tags").fill("sea")
    await saved(page)
    await ada.delete("/api/session")
    await page.get_by_label("Description").fill("Written after the session had ended.")
    await page.wait_for_url("**/sign-in?next=**")
    await page.get_by_label("Name").fill("ada")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"**/posts/{post}/edit")
    await expect(page.get_by_label("Description")).to_have_value("Written after the session had ended.")
    await saved(page)
