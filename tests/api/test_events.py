"""Events: told over a real connection, resumed where it broke, ended when its reader may no longer or we stop."""

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import UUID

import httpx2
import pytest

from imprint.api import events as module
from imprint.store.db import Database
from imprint.work import live
from tests.api.visitor import Town, Visitor, town
from tests.waiting import until
from tests.work.serials import take_in

CUTS = 50
POST = {"title": "A lighthouse at dusk"}


@dataclass
class Watcher:
    """Reads a stream as a browser does, and remembers how far it came."""

    of: Visitor
    at: str | None = None
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    signs: int = 0

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[AsyncIterator[str]]:
        """Connect; go on where it broke."""
        headers = {"Last-Event-ID": self.at} if self.at else {}
        async with self.of.http.stream("GET", "/api/events", headers=headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"
            yield self._read(answer)

    async def _read(self, answer: httpx2.Response) -> AsyncIterator[str]:
        kind, position, data = "", None, ""
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            match name:
                case "event":
                    kind = value
                case "id":
                    position = value
                case "data":
                    data = value
                case "" if line:
                    self.signs += 1
                case "":
                    self.at = position or self.at
                    if data:
                        self.events.append((kind, json.loads(data)))
                    yield kind
                    kind, position, data = "", None, ""

    @property
    def seen(self) -> set[str]:
        """Give the ids of all that it was told of."""
        return {data["id"] for _, data in self.events}


async def test_a_page_is_told_what_happens(at: Town) -> None:
    """What is made, changed and moved over the API arrives, with the names of the JSON."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    watcher = Watcher(ada)
    async with watcher.watching() as stream:
        await anext(stream)
        await bob.post("/api/posts", POST, 201)
        post = (await ada.post("/api/posts", POST, 201))["id"]
        assert await anext(stream) == "post"
        await ada.patch(f"/api/posts/{post}", {"title": "At dawn"})
        assert await anext(stream) == "post"
    told = {"id": post, "status": "review"}
    assert watcher.events == [("post", {**told, "move": "create"}), ("post", {**told, "move": "edit"})]


async def test_whoever_has_a_series_or_a_batch_is_told_of_it(at: Town) -> None:
    """What has no lifecycle changes before one's eyes as well: its name, who follows it, what was read, its rules."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    hook = {"url": "https://hooks.example/", "secret": "whsec_Y2FuYXJ5LW9mLXRoZS12YXVsdC1jYW5hcnktb2Y="}
    account = (await ada.post("/api/accounts", {"platform": "webhook", "answers": hook}, 201))["account"]["id"]
    post = (await ada.post("/api/posts", {**POST, "kind": "article", "body": "Words."}, 201))["id"]
    await ada.post(f"/api/posts/{post}/ready")
    watcher, stranger = Watcher(ada), Watcher(bob)
    async with watcher.watching() as stream, stranger.watching() as theirs, asyncio.timeout(30):
        await anext(stream)
        await anext(theirs)

        async def told(kind: str, row: str, status: str, move: str = "edit") -> None:
            while (kind, {"id": row, "status": status, "move": move}) not in watcher.events:
                await anext(stream)
            watcher.events.clear()

        place = {"place": "https://serials.example/feed", "title": "A tale"}
        series = (await ada.post("/api/series", place, 201))["id"]
        source = (await ada.get(f"/api/series/{series}/sources"))["items"][0]["id"]
        await told("series", series, "follow")
        await ada.patch(f"/api/series/{series}", {"title": "Another tale"})
        await told("series", series, "series")
        await take_in(at.database, UUID(series), UUID(source), ["1", "2"], first=True)
        await ada.post(f"/api/library/{series}/read")
        await told("series", series, "chapter")
        await ada.post(f"/api/library/{series}/unread", {"chapters": ["2"]})
        await told("series", series, "chapter")
        await ada.post("/api/rules", {"seriesId": series, "accounts": [account]}, 201)
        await told("series", series, "rule")
        await ada.patch(f"/api/sources/{source}", {"priority": "COLD"})
        await told("series", series, "source")
        await ada.delete(f"/api/library/{series}")
        await told("series", series, "follow")
        batch = (await ada.post("/api/batches", {"posts": [post], "everyMinutes": 30}, 201))["id"]
        await told("batch", batch, "")
        await ada.delete(f"/api/batches/{batch}", 200)
        await told("batch", batch, "", "delete")
        await bob.post("/api/posts", POST, 201)
        assert await anext(theirs) == "post"
    assert [kind for kind, _ in stranger.events] == ["post"]


async def test_a_stream_cut_fifty_times_misses_nothing(at: Town) -> None:
    """Connections broken at any moment, while several programs write."""
    ada = await at.first()
    programs = [await at.program(ada, "posts:write") for _ in range(3)]
    dice = random.Random(6)  # noqa: S311 - when, not a secret
    watcher, made, done = Watcher(ada), set[str](), asyncio.Event()

    async def write(by: Visitor) -> None:
        while not done.is_set():
            made.add((await by.post("/api/posts", POST, 201))["id"])

    async with watcher.watching() as stream:
        await anext(stream)
        await ada.post("/api/posts", POST, 201)
        await anext(stream)
    watcher.events.clear()
    writers = [asyncio.create_task(write(each)) for each in programs]
    for _ in range(CUTS):
        async with watcher.watching() as stream:
            for _ in range(dice.randrange(5)):
                await anext(stream)
    done.set()
    await asyncio.gather(*writers)
    async with watcher.watching() as stream, asyncio.timeout(10):
        while not made <= watcher.seen:
            await anext(stream)
    assert watcher.seen == made
    assert "reset" not in {kind for kind, _ in watcher.events}


async def test_nobody_watches_without_a_sign_in(at: Town) -> None:
    """And a position that is none means to load everything anew."""
    ada = await at.first()
    assert await (await at.visitor()).refused("GET", "/api/events") == (401, "signed_out")
    watcher = Watcher(await at.program(ada, "posts:read"), at="garbage")
    async with watcher.watching() as stream:
        await anext(stream)
        assert await anext(stream) == "reset"


async def test_a_stream_ends_with_its_sign_in(at: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is ended and a key that is revoked are noticed at the next heartbeat."""
    monkeypatch.setattr(module, "HEARTBEAT", 0.05)
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    made = await ada.post("/api/api-keys", {"label": "x", "scopes": ["posts:read"]}, 201)
    keyed = Watcher(await at.visitor(Authorization=f"Bearer {made['secret']}"))
    signed = Watcher(bob)
    async with keyed.watching() as with_key, signed.watching() as with_session, asyncio.timeout(10):
        while not (keyed.signs and signed.signs and keyed.at):
            await anext(with_key)
            await anext(with_session)
        await ada.delete(f"/api/api-keys/{made['id']}")
        await bob.delete("/api/session")
        for ending in (with_key, with_session):  # they come to their end, or time is over
            async for _ in ending:
                pass


async def test_who_does_not_read_is_cut(at: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream is let go of, and what is kept for it has an end."""
    monkeypatch.setattr(live, "MOST_WAITING", 3)
    ada = await at.first()
    house = at.url.removeprefix("http://").split(":")
    cookie = "; ".join(f"{name}={value}" for name, value in ada.http.cookies.items())
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        await asyncio.to_thread(deaf.connect, (house[0], int(house[1])))
        deaf.sendall(f"GET /api/events HTTP/1.1\r\nHost: {':'.join(house)}\r\nCookie: {cookie}\r\n\r\n".encode())

        await until(lambda: _is(_watching() == 1))
        async with at.database.connection() as connection:

            async def cut() -> bool:
                await connection.execute(
                    "INSERT INTO post (title, owner) SELECT 'x', 'operator' FROM generate_series(1, 500)"
                )
                return _watching() == 0

            await until(cut)


async def test_open_streams_do_not_hold_up_the_stop(database: Database, database_url: str, home: Path) -> None:
    """The server ends in its usual time, and each reader sees a whole end."""
    async with town(database, database_url, home) as running:
        ada = await running.first()
        watchers = [Watcher(ada) for _ in range(20)]
        ends = [asyncio.create_task(_to_the_end(each)) for each in watchers]
        await until(lambda: _is(_watching() == len(watchers)))
        began = monotonic()
        running.stop.set()
        await asyncio.gather(*ends)
    assert monotonic() - began < 3


async def _to_the_end(watcher: Watcher) -> None:
    async with watcher.watching() as stream:
        async for _ in stream:
            pass


async def _is(value: bool) -> bool:  # noqa: FBT001 - what is looked at
    return value


def _watching() -> int:
    """Count the streams that are open, in this process."""
    return sum(getattr(task.get_coro(), "__qualname__", "") == "EventStream._tell" for task in asyncio.all_tasks())
