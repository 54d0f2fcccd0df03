"""What the tests of the pages share: one Chromium for each test process, and for each test a clean window of it.

A test fails on whatever a person would not see but the browser does: an error in the console, a script that broke, a
request that was refused or lost. What a test provokes on purpose it says beforehand, with `window.expect`.
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from imprint.store.db import Database
from tests.browser.world import PATIENCE, World, browsing, chromium, world

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def browser_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the browser; on a machine without one these tests are left out, in CI that is a failure."""
    found = chromium()
    if found is None:
        sentence = "there is no Chromium here; install it (Debian: apt-get install chromium) or set CHROMIUM"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    with browsing(found, tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture
async def at(browser_address: str, database: Database, database_url: str, home: Path) -> AsyncIterator[World]:
    """Run Imprint with a browser before it; whatever went wrong in a window fails the test at its end."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(browser_address)
        async with world(database, database_url, home, browser) as running:
            yield running
        running.check()
        await browser.close()
