"""The door: health, headers and limits for every request; what people use is loaded when the first of them comes.

An Imprint that nobody looks at carries no web framework: it publishes and follows, and weighs less.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from imprint import __version__
from imprint.problem import Problem
from imprint.store.db import FACTS, TROUBLE, Database

PATIENCE = 3.0
MOST_BODY = 8 * 1024 * 1024  # an article of a million letters, however they are written
UPLOADS = "/api/uploads/bytes/"  # each of these says itself how much it takes
STOP = "imprint.stop"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
HTTPS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
# Puts together what is behind the door: the API and the pages. Who that is says the caller, since this is what weighs.
Build = Callable[[], Application]


class Door:
    """Answers every request, the simple ones itself."""

    def __init__(self, database: Database, build: Build, stop: asyncio.Event) -> None:
        self._database = database
        self._stop = stop
        self._build = build
        self._house: Application | None = None
        self._building = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; one that is cut off when we stop ends quietly, since nobody is there any more."""
        try:
            await self._let_in(scope, receive, send)
        except asyncio.CancelledError:
            if not self._stop.is_set():
                raise

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there are no web sockets here: the server closes it
        scope[STOP] = self._stop  # what would go on without an end must know when it is to end
        send = _with_headers(send, https=scope["scheme"] == "https")
        path, simple = scope["path"], scope["method"] in {"GET", "HEAD"}
        if simple and path == "/healthz":
            await _answer(send, 200, {"status": "ok", "version": __version__})
        elif simple and path == "/readyz":
            await self._ready(send)
        elif path.startswith(UPLOADS):
            await (await self.house())(scope, receive, send)
        elif _length(scope) > MOST_BODY:
            await _answer(send, 413, {"status": 413, "code": "request.too_large", "title": _TOO_LARGE}, problem=True)
        else:
            await (await self.house())(scope, _limited(receive), send)

    async def house(self) -> Application:
        """Give everything behind the door; the first who comes waits until it is loaded."""
        async with self._building:
            if self._house is None:
                self._house = await asyncio.to_thread(self._build)
            return self._house

    async def _ready(self, send: Send) -> None:
        try:
            async with asyncio.timeout(PATIENCE), self._database.connection() as connection:
                await FACTS.one(connection)
        except TROUBLE:
            told = {"status": 503, "code": "database.away", "title": "The database does not answer."}
            await _answer(send, 503, told, problem=True)
        else:
            await _answer(send, 200, {"status": "ready"})


_TOO_LARGE = f"A request has {MOST_BODY // 1024 // 1024} megabytes at most."


def _length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else MOST_BODY + 1  # noqa: PLR2004 - digits of any size
    return 0


def _limited(receive: Receive) -> Receive:
    """Stop reading a body that is larger than it said."""
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MOST_BODY:
            raise Problem("request.too_large", _TOO_LARGE)
        return message

    return limited


def _with_headers(send: Send, *, https: bool) -> Send:
    """Give every answer its headers; a route may set one of them otherwise."""
    wanted = {**HEADERS, **(HTTPS_HEADERS if https else {})}

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            there = {name.lower() for name, _ in headers}
            headers += [(n.lower().encode(), v.encode()) for n, v in wanted.items() if n.lower().encode() not in there]
            message = {**message, "headers": headers}
        await send(message)

    return sending


async def _answer(send: Send, status: int, data: dict[str, object], *, problem: bool = False) -> None:
    body = json.dumps(data).encode()
    kind = b"application/problem+json" if problem else b"application/json"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
