"""Traffic: what goes on in a soak beside publishing and uploading: chapters appear, sources are asked, people read."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
from pydantic import SecretStr

from imprint.proof.ground import OWNER, Ground
from imprint.sandbox import serial_faults
from imprint.sandbox.serial_world import Series, World
from imprint.store.db import Database
from imprint.store.query import Nothing, query
from imprint.work import api_key, first_code, person, series, source, target
from imprint.work.scope import Scope
from imprint.work.target import courier
from imprint.work.vault import Vault

SERIES, CHAPTERS = 3, 5
INBOX = "inbox"
PASSWORD = "a harbour in the morning"  # noqa: S105 - of somebody who lives as long as a proof
SCOPES = (Scope.POSTS_READ, Scope.CONTENT_READ, Scope.SYSTEM_READ)
READS = ("/readyz", "/api/posts?limit=20", "/api/posts/counts", "/api/content?limit=20", "/api/status")
READ_SECONDS = 5.0
OK = 200


@dataclass(frozen=True)
class Release:
    """A release, by its id at the source."""

    id: str


ASK = query("proof_ask", Nothing)
RELEASES = query("proof_all_releases", Release)


class Inbox:
    """Where people are told: an ASGI application that counts the messages it gets."""

    def __init__(self) -> None:
        self.messages = 0

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        """Take a message."""
        while (await receive()).get("more_body"):
            pass
        self.messages += 1
        await send({"type": "http.response.start", "status": OK, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


@dataclass
class Traffic:
    """The series of a world that grows, a person who follows them, and a program that reads."""

    ground: Ground
    database: Database
    world: World
    inbox: Inbox
    dice: random.Random
    api: str
    secret: str = ""
    carried: list[Series] = field(default_factory=list)
    chapters: int = 0
    reads: Counter[str] = field(default_factory=Counter)

    async def begin(self) -> None:
        """Let there be a person who follows a few series, is told of them, and has a program with a key."""
        settings = self.ground.loaded()
        async with self.database.connection() as connection:
            code = await first_code.required(connection)
        await person.first(self.database, code, "harbour", PASSWORD)
        self.secret = (await api_key.add(self.database, OWNER, OWNER, "a soak", SCOPES)).secret
        by = courier(settings)
        try:
            address = self.ground.box.url.replace("http://", "json://")
            await target.add(self.database, Vault.of(settings), by, OWNER, SecretStr(f"{address}/{INBOX}"))
        finally:
            await by.close()
        for number in range(SERIES):
            begun = self.world.add(f"The Lighthouse Keeper {number + 1}", CHAPTERS)
            self.carried.append(begun)
            feed = f"{self.ground.box.url}/feeds/{begun.serial}"
            added = await series.add(self.database, settings, OWNER, f"{feed}.rss", title=begun.title)
            await source.add(self.database, settings, OWNER, added.id, f"{feed}.json")
        self.world.faults.add(serial_faults.Fault(serial_faults.Kind.RESET, "/feeds", times=None, chance=0.05))

    async def write(self) -> None:
        """Let a chapter appear somewhere."""
        await asyncio.sleep(0)
        one = self.dice.choice(self.carried)
        self.world.publish(one, str(len(one.items) + 1))
        self.chapters += 1

    async def ask(self) -> None:
        """Let every source be asked now instead of in half an hour."""
        async with self.database.connection() as connection:
            await ASK.run(connection)

    async def read(self, client: httpx2.AsyncClient) -> None:
        """Look at something over HTTP; an answer that is none is no wonder while the database is away."""
        path = self.dice.choice(READS)
        with suppress(httpx2.HTTPError):
            answer = await client.get(path)
            self.reads["answered" if answer.status_code == OK else f"{answer.status_code} {path}"] += 1
            return
        self.reads["broken off"] += 1

    def client(self) -> httpx2.AsyncClient:
        """Give the program that reads."""
        headers = {"Authorization": f"Bearer {self.secret}"}
        return httpx2.AsyncClient(base_url=self.api, headers=headers, trust_env=False, timeout=READ_SECONDS)

    async def unseen(self) -> list[str]:
        """Name the chapters that appeared and were not taken in."""
        async with self.database.connection() as connection:
            seen = {each.id for each in await RELEASES.all(connection)}
        every = [(one.title, item) for one in self.carried for item in one.items.values()]
        return [f"chapter {item.number} of {title}" for title, item in every if item.id not in seen]
