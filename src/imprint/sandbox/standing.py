"""A standing sandbox: beside Imprint, started when somebody first wants it, and from then on at every start."""

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import structlog

from imprint.engine.address import listen
from imprint.problem import Unavailable

if TYPE_CHECKING:
    from imprint.work.sandbox_account import Place

log = structlog.get_logger()

HOST = "127.0.0.1"
NOTE = "sandbox.json"
PATIENCE = 2.0


class Standing:
    """The sandbox of a home; `close` ends it with the process."""

    def __init__(self, home: Path, port: int) -> None:
        self._note = home / NOTE
        self._port = port
        self._url: str | None = None
        self._starting = asyncio.Lock()
        self._open = AsyncExitStack()

    async def place(self, name: str) -> "Place":
        """Start it if it does not run, and give a place in it: a blog, whose password outlives a restart."""
        from imprint.sandbox import wordpress  # noqa: PLC0415 - see the top: whoever never wants it carries nothing of it
        from imprint.work.sandbox_account import Place  # noqa: PLC0415

        url = await self._running()
        answers = {"site": f"{url}/wordpress", "username": name, "app_password": wordpress.APP_PASSWORD}
        return Place("wordpress", answers, f"{url}/")

    async def resume(self) -> None:
        """Start it again where it was, if it was ever wanted."""
        if self._note.exists():
            with suppress(Unavailable):  # somebody else has the port; who publishes there is told
                await self._running()

    async def close(self) -> None:
        """End it."""
        await self._open.aclose()

    async def _running(self) -> str:
        async with self._starting:
            if self._url is None:
                self._url = await self._start()
            return self._url

    async def _start(self) -> str:
        from imprint.sandbox.town import town  # noqa: PLC0415

        port = self._known_port()
        try:
            opened = listen(HOST, port)
        except Unavailable as taken:
            if await asyncio.to_thread(_is_sandbox, f"http://{HOST}:{port}"):
                return f"http://{HOST}:{port}"  # one that a person started, or another process of ours
            raise Unavailable(
                "sandbox.port_taken",
                f"The sandbox cannot listen on port {port}; set IMPRINT_SANDBOX_PORT to a free one.",
            ) from taken
        running = await self._open.enter_async_context(town(opened))
        self._note.write_text(json.dumps({"port": opened.getsockname()[1]}), encoding="utf-8")
        log.info("the sandbox listens", at=running.url)
        return running.url

    def _known_port(self) -> int:
        """Give the port it had before, since accounts remember it; else the one that is set."""
        try:
            return int(json.loads(self._note.read_text(encoding="utf-8"))["port"])
        except (OSError, ValueError, KeyError, TypeError):
            return self._port


def _is_sandbox(url: str) -> bool:
    with suppress(URLError, OSError, ValueError), urlopen(f"{url}/_sandbox/log", timeout=PATIENCE) as answer:  # noqa: S310 - loopback
        return bool(answer.status == 200)  # noqa: PLR2004
    return False
