"""Canned answers: a real HTTP server on this machine that says exactly what a test wants it to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from imprint.engine.guard import Hosts, guarded
from imprint.sandbox.serials import serving


class Canned:
    """What will be answered, in order, the last for ever, and what was asked."""

    def __init__(self, base: str, http: httpx2.AsyncClient) -> None:
        self.base = base
        self.http = http
        self.answers: list[Response] = []
        self.requests: list[Request] = []

    def say(self, body: bytes | str, status: int = 200, **headers: str) -> None:
        """Answer this from now on."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers = [Response(body, status, named)]


@asynccontextmanager
async def canned() -> AsyncIterator[Canned]:
    """Serve for as long as the body lasts."""
    holder: list[Canned] = []

    async def answer(request: Request) -> Response:
        one = holder[0]
        await request.body()
        one.requests.append(request)
        return one.answers.pop(0) if len(one.answers) > 1 else one.answers[0]

    routes: list[Any] = [Route("/{path:path}", answer, methods=["GET", "POST"])]
    async with (
        serving(Starlette(routes=routes)) as base,
        guarded("test/1", Hosts(frozenset({"127.0.0.1"}))) as http,
    ):
        holder.append(Canned(base, http))
        yield holder[0]
