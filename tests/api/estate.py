"""An estate: everything that one person can have, each with a word in it that nobody else may ever read."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from imprint.api.gate import OPEN
from imprint.api.openapi import operations
from imprint.sources.contract import Fetched, SetAside
from imprint.store.wall import Wall
from imprint.work.ingest import Carrier, ingest
from tests.api.test_content import uploaded
from tests.api.visitor import Town, Visitor
from tests.work.posts import Author
from tests.work.scene import PNG
from tests.work.serials import take_in

WORD = "Kittiwake7f3a91"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# What stays the same whoever asks, or is everybody's: a queue, and the circuits of hosts.
SHARED = {"pgqueuer", "pgqueuer_log", "circuit"}
# What pages have in their addresses that is nobody's.
EVERYBODYS = {"platform": "deviantart", "name": "imprint.css"}


@dataclass(frozen=True)
class Call:
    """A request that a route takes, with ids of somebody's things wherever it takes one."""

    method: str
    route: str
    path: str
    scope: str
    body: Any
    is_page: bool = False


@dataclass(frozen=True)
class Estate:
    """Somebody's things, by the names that paths, queries and bodies have for them."""

    person: str
    things: dict[str, Any]

    @property
    def ids(self) -> set[str]:
        """Give the ids that only this person's things have; who somebody is they are told themselves."""
        return {each for each in map(str, self.things.values()) if _UUID.fullmatch(each)} - {self.person}

    def calls(self, made: dict[str, Any]) -> Iterator[Call]:
        """Give a request for each route of the document that is not open; raise where one names what nobody made."""
        for method, path, operation in operations(made):
            if operation["x-scope"] == "open":
                continue
            filled = re.sub(r"{(\w+)}", lambda found: str(self.things[found[1]]), path)
            query = [
                f"{each['name']}={self.things[each['name']]}"
                for each in operation.get("parameters", ())
                if each["in"] == "query" and '"uuid"' in json.dumps(each["schema"])
            ]
            told = operation.get("requestBody", {}).get("content", {}).get("application/json")
            body = None if told is None else self._owned(told["example"], path)
            yield Call(
                method.upper(), path, "?".join(filter(None, [filled, "&".join(query)])), operation["x-scope"], body
            )

    def pages(self, app: FastAPI) -> Iterator[Call]:
        """Give a request for each route that the document leaves out: the pages; raise where one names what is not."""
        named = {**self.things, **EVERYBODYS}
        for route in iter_route_contexts(app.routes):
            if route.include_in_schema or route.path is None:
                continue
            path = re.sub(r"{(\w+)}", lambda found: str(named[found[1]]), route.path)
            asked = [each.alias for each in route.dependant.query_params if each.alias in self.things]
            query = "&".join(f"{name}={self.things[name]}" for name in asked)
            scope = (route.openapi_extra or {}).get("x-scope", OPEN)
            for method in route.methods or ():
                yield Call(method, route.path, "?".join(filter(None, [path, query])), scope, None, is_page=True)

    def _owned(self, example: Any, path: str, name: str = "") -> Any:
        """Put ids of this person's things in the place of those of an example."""
        if name in {"ids", "letters"} and isinstance(example, list):
            kind = next(each for each in ("dead-letters", "posts", "content", "notices", "") if each in path)
            return [self.things[kind]]
        if isinstance(example, dict):
            return {key: self._owned(value, path, key) for key, value in example.items()}
        if isinstance(example, list):
            return [self._owned(each, path, name.removesuffix("s")) for each in example]
        if isinstance(example, str) and _UUID.fullmatch(example):
            return self.things[name.removesuffix("Id")]
        return example

    async def seen(self, at: Town) -> dict[str, list[str]]:
        """Give every row that this person sees, of every table that has a wall."""
        walled = at.database.behind(Wall(self.person, self.person))
        async with walled.connection() as connection:
            tables = await connection.fetch(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity ORDER BY 1"
            )
            return {
                table[0]: sorted(row[0] for row in await connection.fetch(f"SELECT t::text FROM {table[0]} t"))
                for table in tables
                if table[0] not in SHARED
            }


async def settle(at: Town, who: Visitor) -> Estate:
    """Let somebody have something of every kind; all of it carries the word."""
    person = who.signed["personId"]
    author = Author(at.database, person)
    account = await author.account(label=WORD, platform="webhook", default=True)
    files = await author.draft(title=WORD)
    failed, unknown = await author.brought("failed", title=WORD), await author.brought("unknown", title=WORD)
    batch = await who.post("/api/batches", {"posts": [str(await author.draft(title=WORD))], "everyMinutes": 0}, 201)
    series = (await who.post("/api/series", {"place": f"https://serials.example/{person}", "title": WORD}, 201))["id"]
    (source,) = (await who.get(f"/api/series/{series}/sources"))["items"]
    await take_in(at.database, UUID(series), UUID(source["id"]), ["Chapter 1"])
    async with at.database.transaction("test") as connection:
        carrier = Carrier(UUID(source["id"]), UUID(series), first=False)
        await ingest(connection, carrier, Fetched(set_aside=(SetAside(WORD, "It has no number.", WORD),)))
        await connection.execute("UPDATE content SET name = $1 WHERE owner = $2", WORD, person)
        target, webhook = [await _target(connection, person, kind) for kind in ("message", "webhook")]
        delivery = await connection.fetchval(
            "INSERT INTO delivery (target_id, next_at, closed_at, failed_at, error) "
            "VALUES ($1, imprint_now(), imprint_now(), imprint_now(), $2) RETURNING id",
            target,
            WORD,
        )
    rule = await who.post(
        "/api/rules", {"seriesId": series, "accounts": [str(account)], "title": WORD + "{number}"}, 201
    )
    key = await who.post("/api/api-keys", {"label": WORD, "scopes": ["posts:read"]}, 201)
    invitation = await who.post("/api/invitations", {"label": WORD, "role": "reader"}, 201)
    shown = (await who.get(f"/api/posts/{files}"))["files"][0]
    content = await uploaded(who, PNG + WORD.encode())
    (notice,) = (await who.get("/api/notices"))["items"]
    (chapter,) = (await who.get(f"/api/series/{series}/chapters"))["items"]
    things = {
        "post": str(files),
        "posts": str(failed),
        "publication": str(await author.publication(unknown)),
        "batch": batch["id"],
        "account": str(account),
        "content": content,
        "file": shown["id"],
        "series": series,
        "source": source["id"],
        "preferredSource": source["id"],
        "chapter": chapter["id"],
        "rule": rule["id"],
        "notice": notice["id"],
        "notices": notice["id"],
        "target": str(target),
        "webhook": str(webhook),
        "letter": f"d{delivery}",
        "dead-letters": f"d{delivery}",
        "session": (await who.get("/api/sessions"))["items"][0]["id"],
        "key": key["id"],
        "invitation": invitation["id"],
        "person": person,
        "row": str(files),
        "": str(files),
    }
    return Estate(person, things)


async def _target(connection: Any, person: str, kind: str) -> UUID:
    added: UUID = await connection.fetchval(
        "INSERT INTO target (person, label, service, kind, key_id, nonce, sealed) "
        "VALUES ($1, $2, 'ntfy', $3, $4, $5, $6) RETURNING id",
        person,
        f"{WORD} {kind}",
        kind,
        uuid4().hex[:16],
        bytes(12),
        bytes(32),
    )
    return added
