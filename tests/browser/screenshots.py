"""`make screenshots`: a picture of every page, wide and narrow, light and dark, with believable data."""

import asyncio
import re
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

import imprint
from imprint.store.db import open_database
from imprint.store.embedded import running
from imprint.store.migrate import migrate
from tests.browser.scenery import ENTRANCE, PATHS, furnished
from tests.browser.world import World, browsing, chromium, world
from tests.conftest import quick_folder

FOLDER = Path(imprint.__file__).parents[2] / "build" / "screenshots"


async def draw(at: World) -> None:
    """Draw every page."""
    nobody = {path: path for path in ENTRANCE}
    await _draw(at, None, {"/first": "/first"})
    ada = await at.town.first()
    await _draw(at, ada, {"/empty": "/"})
    things = await furnished(at, ada)
    await _draw(at, None, {path: path for path in nobody if path != "/first"})
    await _draw(at, ada, {path: path.format(**things) for path in PATHS})


async def _draw(at: World, who: object, paths: dict[str, str]) -> None:
    for phone in (False, True):
        for theme in ("light", "dark"):
            window = await at.window(who, phone=phone, color_scheme=theme)  # type: ignore[arg-type] # a visitor or nobody
            for name, path in paths.items():
                await window.go(path)
                await window.page.wait_for_load_state("load")
                await window.page.evaluate("document.fonts.ready")
                # What a page asks the API for when it is loaded has come when nothing has been asked for a while;
                # the stream of events never ends, so that this cannot be seen by waiting for silence.
                await asyncio.sleep(0.5)
                words = re.sub(r"\W+", "-", re.sub(r"[{}]", "", name)).strip("-") or "calendar"
                drawn = FOLDER / f"{words}-{'phone' if phone else 'desktop'}-{theme}.png"
                await window.page.screenshot(path=drawn, full_page=True)
                sys.stdout.write(f"{drawn.name}\n")
            window.check()


async def main() -> None:
    """Start everything on an empty home, draw, and leave only the pictures."""
    found = chromium()
    if found is None:
        raise SystemExit("There is no Chromium here; install it (Debian: apt-get install chromium) or set CHROMIUM.")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    home = Path(tempfile.mkdtemp(prefix="imprint-", dir=quick_folder()))
    home.chmod(0o711)
    profile = home / "chromium"
    profile.mkdir()
    try:
        with browsing(found, profile) as address:
            async with running(home) as server, async_playwright() as playwright:
                await migrate(server.url)
                browser = await playwright.chromium.connect_over_cdp(address)
                async with open_database(server.url) as database, world(database, server.url, home, browser) as at:
                    await draw(at)
                await browser.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    asyncio.run(main())
