"""The sandbox: one real HTTP server on this machine with every simulated site, its faults and its log.

Every module of this package that names a class in `SITE` is served under its name; there is no list to keep.
"""

import asyncio
import importlib
import pkgutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import uvicorn
from uvicorn.server import ServerState

from imprint.engine.address import address, listen
from imprint.sandbox import __path__ as package
from imprint.sandbox.connection import Connection, cut
from imprint.sandbox.control import Control
from imprint.sandbox.exchange import Call, Reply
from imprint.sandbox.faults import Fault, Faults, Rule
from imprint.sandbox.log import Log
from imprint.sandbox.site import Site

ASGI: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

# Answered in place of the site; resets apart, all other faults come after the effect.
INSTEAD = {Fault.RATE_LIMIT, Fault.FORBIDDEN, Fault.ERROR_BEFORE, Fault.EXPIRED, Fault.REFUSE}
BLANK = b" " * 20
SECRET_HEADERS = {"authorization", "cookie", "webhook-signature"}


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox."""

    url: str
    log: Log
    faults: Faults
    sites: dict[str, Site]

    def base_url(self, site: str) -> str:
        """Say where a site is."""
        return f"{self.url}/{site}"

    def login(self, site: str, account: str) -> str:
        """Make an account at a site and give its login, ready to be sealed or read by the platform's login type."""
        return self.sites[site].login(self.base_url(site), account)


def sites(log: Log) -> dict[str, Site]:
    """Make every site there is."""
    names = sorted(found.name for found in pkgutil.iter_modules(package))
    modules = (importlib.import_module(f"imprint.sandbox.{name}") for name in names)
    return {made.name: made for module in modules if (made := _made(module, log)) is not None}


def _made(module: object, log: Log) -> Site | None:
    site = getattr(module, "SITE", None)
    return site(log) if isinstance(site, type) and issubclass(site, Site) else None


@asynccontextmanager
async def sandbox(
    *,
    port: int = 0,
    log: Path | None = None,
    seed: int = 0,
    opened: socket.socket | None = None,
    beside: Mapping[str, ASGI] | None = None,
) -> AsyncIterator[Sandbox]:
    """Run a sandbox for as long as the body lasts; connections that are left are cut at its end.

    `beside` are applications of their own, each for the paths that begin with its name.
    """
    opened = listen("127.0.0.1", port) if opened is None else opened
    kept = Log(log)
    running = Sandbox(address(opened), kept, Faults(seed), sites(kept))
    application = _Application(running, beside or {})
    # Without its log: a connection that was cut on purpose is nothing to complain about.
    config = uvicorn.Config(
        application, log_config=None, log_level="critical", access_log=False, lifespan="off", http=Connection
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(config, state, {}), sock=opened, backlog=1024)
    try:
        yield running
    finally:
        server.close()
        for connection in list(state.connections):
            if isinstance(connection, Connection):
                connection.transport.abort()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        kept.close()


class _Application:
    """The ASGI application: reads a call, lets the faults have their way, and hands it to its site."""

    def __init__(self, running: Sandbox, beside: Mapping[str, ASGI]) -> None:
        self._sandbox = running
        self._beside = beside
        self._control = Control(running.log, running.faults, running.sites)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        first, _, rest = scope["path"].lstrip("/").partition("/")
        if first in self._beside:
            await self._beside[first](scope, receive, send)
            return
        site = self._sandbox.sites.get(first)
        if site is None:
            call = _call(scope, scope["path"], await _body(receive), self._sandbox.url)
            await _send(send, await self._control.handle(call))
            return
        rules = self._sandbox.faults.pick(site.name, "/" + rest)
        fault = next((rule for rule in rules if rule.does is not Fault.LATENCY), None)
        if fault is not None and fault.does is Fault.RESET_DURING:
            await receive()  # some of the body is here, the rest is on its way
            self._faulted(site, fault)
            cut(scope)
            return
        body = await _body(receive)
        if body is None:
            return  # the client broke off: nothing has been asked
        call = _call(scope, "/" + rest, body, self._sandbox.base_url(site.name), fault)
        self._sandbox.log.add(
            site.name,
            "request",
            method=call.method,
            path=call.path,
            query=scope["query_string"].decode("latin-1"),
            headers={name: value for name, value in call.headers.items() if name not in SECRET_HEADERS},
            digest=sha256(call.body).hexdigest(),
            size=len(call.body),
        )
        for rule in rules:
            if rule.does is Fault.LATENCY:
                await asyncio.sleep(rule.seconds)
        await self._answer(scope, send, site, call, fault)

    async def _answer(self, scope: Any, send: Any, site: Site, call: Call, fault: Rule | None) -> None:
        if fault is None or fault.does is Fault.LAG:
            await _send(send, await site.handle(call))
            return
        self._faulted(site, fault)
        if fault.does is Fault.RESET_BEFORE:
            cut(scope)
        elif fault.does in INSTEAD:
            await _send(send, _instead(site, fault))
        else:
            applied = await site.handle(call)
            match fault.does:
                case Fault.RESET_AFTER:
                    cut(scope)
                case Fault.HALF_ANSWER:
                    await _send(send, applied, half=True)
                    cut(scope)
                case Fault.ERROR_AFTER:
                    await _send(send, site.broken(fault.status))
                case _:
                    await _send(send, Reply(200, BLANK, {"Content-Type": "application/json"}))

    def _faulted(self, site: Site, fault: Rule) -> None:
        self._sandbox.log.add(site.name, "fault", does=str(fault.does))


def _instead(site: Site, fault: Rule) -> Reply:
    match fault.does:
        case Fault.RATE_LIMIT:
            reply = site.rate_limited()
        case Fault.FORBIDDEN:
            reply = Reply(403, b"", {"Content-Type": "text/html"})
        case Fault.EXPIRED:
            reply = site.expired()
        case Fault.REFUSE:
            reply = site.refused(fault.code)
        case _:
            reply = site.broken(fault.status)
    return reply if fault.retry_after is None else reply.with_headers(Retry_After=fault.retry_after)


def _call(scope: Any, path: str, body: bytes | None, base_url: str, fault: Rule | None = None) -> Call:
    pairs = tuple(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    return Call(
        scope["method"],
        path,
        dict(pairs),
        pairs,
        {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
        body or b"",
        base_url,
        fault.seconds if fault is not None and fault.does is Fault.LAG else 0,
    )


async def _body(receive: Any) -> bytes | None:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _send(send: Any, reply: Reply, *, half: bool = False) -> None:
    headers = {"Content-Length": str(len(reply.body)), **reply.headers}
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    body = reply.body[: len(reply.body) // 2] if half else reply.body
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": half})
