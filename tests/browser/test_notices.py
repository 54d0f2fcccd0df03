"""Notices in a real browser: news come by themselves and are read; targets and webhooks are added and tried."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from imprint.store.db import Database
from tests.api.test_notices import told
from tests.browser.world import World, world
from tests.work.readers import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Run somebody to tell."""
    with receiving() as running:
        yield running


@pytest.fixture
async def inside(
    browser_address: str, database: Database, database_url: str, home: Path, receiver: Receiver
) -> AsyncIterator[World]:
    """Run Imprint with the operator's permission to tell the receiver, which is inside."""
    allowed = {"IMPRINT_ALLOWED_HOSTS": f"127.0.0.1:{receiver.port}"}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(browser_address)
        async with world(database, database_url, home, browser, **allowed) as running:
            yield running
        running.check()
        await browser.close()


async def test_news_come_by_themselves_and_are_read(at: World) -> None:
    """A chapter appears while the page is open, the count beside the entry follows; read, all read, muted."""
    ada = await at.town.first()
    window = await at.window(ada)
    page = window.page
    await window.go("/notices")
    await expect(page.get_by_text("Nothing is new.")).to_be_visible()
    series = await told(at.town, ada, "Chapter 1", "Chapter 2", "Chapter 3")
    await expect(page.get_by_role("heading", name="Ch.3")).to_be_visible()
    await expect(page.locator("#unread")).to_contain_text("3")
    await page.get_by_role("button", name="Mark as read Sea Ch.3").click()
    await expect(page.locator("#unread")).to_contain_text("2")
    await page.get_by_role("link", name="Not read", exact=True).click()
    await expect(page.locator(".news li")).to_have_count(2)
    await page.get_by_role("button", name="Mark all 2 as read").click()
    await expect(page.get_by_text("Everything is read.")).to_be_visible()
    await expect(page.locator("#unread")).to_be_empty()
    await page.get_by_role("link", name="All", exact=True).click()
    await page.get_by_role("button", name="Mute Sea").first.click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.get_by_role("status").filter(has_text="no more of this series")).to_be_visible()
    assert not (await ada.get(f"/api/series/{series}"))["notify"]


async def test_who_is_told_elsewhere_tries_it_first(inside: World, receiver: Receiver) -> None:
    """A target and a webhook are added, tried with a button and removed; the secret of the webhook is shown once."""
    ada = await inside.town.first()
    window = await inside.window(ada)
    page = window.page
    await window.go("/notices/delivery")
    await page.get_by_text("Add a target").click()
    await page.get_by_label("Address").first.fill(receiver.url)
    await page.get_by_label("Name").first.fill("phone")
    await page.get_by_role("button", name="Add the target").click()
    await page.get_by_role("button", name="Send a test to phone").click()
    await expect(page.get_by_role("status").filter(has_text="A test is out")).to_be_visible()
    assert receiver.heard[0]["title"] == "Imprint"
    await page.get_by_role("button", name="every day").click()
    await expect(page.get_by_role("button", name="every day")).to_have_attribute("aria-pressed", "true")
    await page.get_by_role("button", name="Mute phone").click()
    await expect(page.get_by_role("button", name="Unmute phone")).to_be_visible()
    receiver.status = 500
    window.expect("424", "/test")
    await page.get_by_role("button", name="Send a test to phone").click()
    await expect(page.locator(".message.bad")).to_be_visible()
    receiver.status = 200
    await page.get_by_text("Add a webhook").click()
    await page.get_by_label("Address").last.fill(f"http://127.0.0.1:{receiver.port}/hook")
    await page.get_by_label("Name").last.fill("program")
    await page.get_by_label("new chapter").uncheck()
    await page.get_by_role("button", name="Add the webhook").click()
    secret = await page.get_by_role("dialog").get_by_role("status").inner_text()
    assert secret.startswith("whsec_")
    await window.accessible()
    await page.get_by_role("button", name="I have it").click()
    await expect(page.locator("#once-value")).to_be_empty()
    assert secret not in await page.content()
    await page.get_by_role("button", name="Send a test to program").click()
    await expect(page.get_by_role("status").filter(has_text="took it")).to_be_visible()
    assert receiver.heard[-1]["type"] == "test"
    await page.get_by_role("button", name="Remove program").click()
    await page.get_by_role("button", name="Go on").click()
    await expect(page.get_by_text("No program is called.")).to_be_visible()
