"""A world for a browser: the real server with its sandbox, a worker, and windows that notice whatever goes wrong."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response

import imprint
from imprint.api.server import serve
from imprint.engine.address import address, listen
from imprint.engine.clock import timers
from imprint.engine.worker import worker
from imprint.entrypoints import entrypoints
from imprint.main import house
from imprint.sandbox.standing import Standing
from imprint.settings import load
from imprint.store.db import Database
from imprint.work.derive import Deriver
from imprint.work.poll import Poller
from tests.api.visitor import Town, Visitor, answers
from tests.waiting import until

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",  # as phones do, or a picture of a whole page is cut by the width of one
)
AXE = Path(imprint.__file__).parents[2] / "build" / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 30_000  # milliseconds; a machine may be busy, and nobody waits longer than needed
SERIOUS = {"serious", "critical"}


def chromium() -> str | None:
    """Find a Chromium: the one that is named, or one of the machine."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def browsing(program: str, profile: Path) -> Iterator[str]:
    """Run one Chromium, and give the address at which it takes orders."""
    command = [program, *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.search(r"DevTools listening on (ws://\S+)", line):
                    # What it goes on to say is nobody's concern, and a full pipe would stop it.
                    with (profile / "said").open("w") as rest:
                        draining = subprocess.Popen(["cat"], stdin=process.stderr, stdout=rest)  # noqa: S607
                    yield found[1]
                    draining.terminate()
                    draining.wait()
                    break
            else:
                raise AssertionError("Chromium did not start")
        finally:
            process.terminate()
            process.wait(20)


@dataclass
class Window:
    """A page in a clean window, and everything that went wrong in it."""

    page: Page
    url: str
    wrong: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, *parts: str) -> None:
        """Say what may go wrong, since the test provokes it: parts of what the browser will say of it."""
        self.expected += parts

    async def go(self, path: str) -> None:
        """Open a page of ours."""
        await self.page.goto(self.url + path)

    def check(self) -> None:
        """Fail when something went wrong that nobody expected."""
        left = [each for each in self.wrong if not any(part in each for part in self.expected)]
        assert not left, "\n".join(left)

    async def accessible(self, *rules: str) -> None:
        """Fail when axe has a serious finding; with names of rules, by these alone."""
        await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        asked = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
        found: dict[str, Any] = await self.page.evaluate(f"axe.run(document, {json.dumps(asked)})")
        serious = [
            f"{each['id']}: {each['help']}: {node['html'][:200]}"
            for each in found["violations"]
            for node in each["nodes"][:4]
            if each["impact"] in SERIOUS
        ]
        assert not serious, "\n".join(serious)

    async def fits(self) -> None:
        """Fail when the page is wider than the window: nobody scrolls sideways on a phone."""
        page = "document.documentElement"
        wide: int = await self.page.evaluate(f"{page}.scrollWidth - {page}.clientWidth")
        assert wide <= 0, f"{self.page.url} is {wide} pixels too wide"

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.wrong.append(f"console {message.type}: {message.text} {message.location.get('url', '')}")

    def _failed(self, request: Request) -> None:
        if "ERR_ABORTED" not in (request.failure or ""):  # a page that is left lets its requests go
            self.wrong.append(f"lost: {request.method} {request.url} {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.wrong.append(f"refused: {response.status} {response.request.method} {response.url}")

    def watch(self) -> None:
        """Notice what goes wrong from now on."""
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)


@dataclass
class World:
    """A running Imprint and a browser to look at it with."""

    town: Town
    browser: Browser
    windows: list[Window] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.town.url

    @property
    def database(self) -> Database:
        """Its database."""
        return self.town.database

    async def window(self, who: Visitor | None = None, *, phone: bool = False, **options: Any) -> Window:
        """Open a clean window, signed in as somebody who has come by the API already."""
        # A language and a zone of their own, so that what is shown is not what the server wrote by chance.
        given = {"viewport": PHONE if phone else WIDE, "locale": "en-GB", "timezone_id": "Europe/Berlin", **options}
        context: BrowserContext = await self.browser.new_context(**given)
        await self.town.open.enter_async_context(_closing(context))
        if who is not None:
            session = who.http.cookies["imprint_session"]
            await context.add_cookies([{"name": "imprint_session", "value": session, "url": self.url}])
        window = Window(await context.new_page(), self.url)
        window.page.set_default_timeout(PATIENCE)
        window.watch()
        self.windows.append(window)
        return window

    def check(self) -> None:
        """Fail when something went wrong in any window."""
        for window in self.windows:
            window.check()

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        """Run a worker: what is due goes out."""
        settings, stop = self.town.settings, asyncio.Event()
        table = entrypoints(self.database, settings)
        built = worker(
            self.database,
            settings.home,
            entrypoints=table,
            timers=timers(settings.crashes_before_quarantine),
            concurrency=4,
            grace_seconds=5,
            embedded=False,
        )
        running = asyncio.create_task(built.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running
            # Those who make pictures or ask sources end with their process; here it goes on.
            for each in table:
                match getattr(each.handler, "__self__", None):
                    case Deriver() as deriver:
                        await deriver.maker.close()
                    case Poller() as poller:
                        await poller.fetcher.close()


@asynccontextmanager
async def _closing(context: BrowserContext) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await context.close()


@asynccontextmanager
async def world(database: Database, url: str, home: Path, browser: Browser, **variables: str) -> AsyncIterator[World]:
    """Run the server as `imprint up` does, with a sandbox that starts when a page wants it."""
    given = {"IMPRINT_HOME": str(home), "IMPRINT_DATABASE_URL": url, "IMPRINT_SANDBOX_PORT": "0", **variables}
    # Simulated sources are on this machine, and need no rest between two questions.
    settings = load({"IMPRINT_ALLOWED_HOSTS": "127.0.0.1", "IMPRINT_FETCH_GAP_MS": "1", **given})
    opened, stop = listen("127.0.0.1", 0), asyncio.Event()
    sandbox = Standing(settings.home, settings.sandbox_port)
    running = asyncio.create_task(serve(database, lambda: house(database, settings, sandbox), opened, stop))
    at = address(opened)
    try:
        await until(lambda: answers(at))
        async with AsyncExitStack() as stack:
            yield World(Town(at, database, settings, stack, stop), browser)
    finally:
        stop.set()
        await running
        await sandbox.close()
