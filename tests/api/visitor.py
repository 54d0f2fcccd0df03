"""A town around the HTTP server: the server itself, on a free port, and the people who come by."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from imprint.api.server import serve
from imprint.engine.address import address, listen
from imprint.settings import Settings, load
from imprint.store.db import Database
from imprint.web.house import build
from imprint.work import first_code
from imprint.work.sandbox_account import Sandbox
from imprint.work.scope import Role
from tests.waiting import until

PASSWORD = "correct horse battery staple"  # noqa: S105 - of people who live as long as a test


@dataclass
class Visitor:
    """Somebody with a browser, or a program with a key."""

    http: httpx2.AsyncClient
    signed: dict[str, Any] = field(default_factory=dict)

    async def call(self, method: str, path: str, data: object = None, **headers: str) -> httpx2.Response:
        """Send a request as a page of ours does."""
        if self.signed.get("csrfToken"):
            headers.setdefault("X-CSRF-Token", self.signed["csrfToken"])
        return await self.http.request(method, path, json=data, headers=headers)

    async def get(self, path: str, code: int = 200, **headers: str) -> Any:
        """Look at something."""
        return await self._told("GET", path, None, code, headers)

    async def post(self, path: str, data: object = None, code: int = 200, **headers: str) -> Any:
        """Do something."""
        return await self._told("POST", path, data, code, headers)

    async def patch(self, path: str, data: object, code: int = 200) -> Any:
        """Change something."""
        return await self._told("PATCH", path, data, code, {})

    async def put(self, path: str, data: object, code: int = 200) -> Any:
        """Replace something."""
        return await self._told("PUT", path, data, code, {})

    async def delete(self, path: str, code: int = 204) -> Any:
        """Remove something."""
        return await self._told("DELETE", path, None, code, {})

    async def _told(self, method: str, path: str, data: object, code: int, headers: dict[str, str]) -> Any:
        answer = await self.call(method, path, data, **headers)
        assert answer.status_code == code, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    async def refused(self, method: str, path: str, data: object = None, **headers: str) -> tuple[int, str]:
        """Send what is to be refused, and give status and code."""
        answer = await self.call(method, path, data, **headers)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        told = answer.json()
        assert told["status"] == answer.status_code
        assert told["title"].endswith("."), told
        return answer.status_code, told["code"]


@dataclass
class Town:
    """A running server and whoever is there."""

    url: str
    database: Database
    settings: Settings
    open: AsyncExitStack
    stop: asyncio.Event

    async def visitor(self, **headers: str) -> Visitor:
        """Give somebody whom nobody knows yet."""
        client = httpx2.AsyncClient(base_url=self.url, trust_env=False, headers=headers, timeout=20)
        return Visitor(await self.open.enter_async_context(client))

    async def code(self) -> str:
        """Read the code that `imprint up` prints."""
        async with self.database.connection() as connection:
            return await first_code.required(connection)

    async def first(self, name: str = "ada") -> Visitor:
        """Give the first person, an administrator."""
        who = await self.visitor()
        given = {"code": await self.code(), "name": name, "password": PASSWORD}
        who.signed = await who.post("/api/people/first", given, 201)
        return who

    async def invited(self, by: Visitor, name: str, role: str = Role.MEMBER) -> Visitor:
        """Give somebody who was invited."""
        code = (await by.post("/api/invitations", {"role": role}, 201))["code"]
        who = await self.visitor()
        given = {"code": code, "name": name, "password": PASSWORD}
        who.signed = await who.post("/api/invitations/accept", given, 201)
        return who

    async def program(self, of: Visitor, *scopes: str) -> Visitor:
        """Give a program that has a key of somebody."""
        made = await of.post("/api/api-keys", {"label": "a program", "scopes": scopes}, 201)
        return await self.visitor(Authorization=f"Bearer {made['secret']}")


@asynccontextmanager
async def town(
    database: Database, url: str, home: Path, *, sandbox: Sandbox | None = None, **variables: str
) -> AsyncIterator[Town]:
    """Run the server."""
    settings = load({"IMPRINT_HOME": str(home), "IMPRINT_DATABASE_URL": url, **variables})
    opened = listen("127.0.0.1", 0)
    stop = asyncio.Event()
    running = asyncio.create_task(serve(database, lambda: build(database, settings, sandbox), opened, stop))
    at = address(opened)
    try:
        await until(lambda: answers(at))
        async with AsyncExitStack() as people:
            yield Town(at, database, settings, people, stop)
    finally:
        stop.set()
        await running


async def answers(at: str) -> bool:
    """Say whether there is a server."""
    try:
        async with httpx2.AsyncClient(trust_env=False) as http:
            return (await http.get(f"{at}/healthz")).status_code == 200
    except httpx2.TransportError:
        return False
