"""Walls: every route and every page, for everybody who may not use it and for things of somebody else.

The document lists the routes, and the router of the built application the pages that the document leaves out.
There are two checks of whose things somebody sees, one in the code and one in the database. Each must do alone.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI, Request
from httpx2 import Response

from imprint.api import gate, house, site
from imprint.api.gate import Gate
from imprint.api.house import NOUNS
from imprint.api.openapi import operations
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.web import page
from imprint.web.house import build as build_house
from imprint.work.caller import Caller
from imprint.work.scope import OF_MACHINE, Role, Scope
from tests.api import visitor
from tests.api.estate import WORD, Call, Estate, settle
from tests.api.visitor import Town, Visitor, town

OPEN = {
    ("post", "/api/session"),
    ("post", "/api/people/first"),
    ("post", "/api/invitations/accept"),
    ("put", "/api/uploads/bytes/{token}"),
    ("get", "/metrics"),  # which looks itself who asks
}
# What a stranger does to themselves: signs out, changes the password. A stream does not end; see test_events.
SPARED = {("DELETE", "/api/session"), ("POST", "/api/session/password"), ("GET", "/api/events")}
# Some of what tells everything when nothing stands in the way.
TELLING = {"/api/posts/{post}", "/api/accounts", "/api/api-keys", "/api/targets/{target}", "/api/people"}
TELLING_PAGES = {"/posts", "/posts/{post}", "/batches/rows", "/series/{series}", "/dead-letters/{letter}"}
INVITATIONS = ("/api/invitations", "/settings/invitations")
BROWSER = {"Accept": "text/html"}
PROGRAM, NOBODY = "program", "nobody"
UNKNOWN = Caller.of("", "", Role.READER, None, scopes=[])
EVERY_SCOPE = [each for each in Scope if each not in OF_MACHINE]


async def document(at: Town) -> dict[str, Any]:
    """Read the document as anybody can."""
    found: dict[str, Any] = await (await at.visitor()).get("/api/openapi.json")
    return found


def filled(path: str) -> str:
    """Put ids into a path that nothing has."""
    return re.sub(r"{(\w+)}", lambda _: str(uuid4()), path)


@dataclass
class Blindness:
    """When on, the code takes everybody for one person, asks for that one's things and lets everybody do anything."""

    sees: str | None = None

    def of(self, caller: Caller) -> Caller:
        """Give who asks, as the code sees it."""
        if self.sees is None:
            return caller
        return replace(caller, owner=self.sees, person=self.sees, role=Role.ADMINISTRATOR, scopes=frozenset(Scope))


@pytest.fixture
def blindness(monkeypatch: pytest.MonkeyPatch) -> Blindness:
    """Let the code's own checks be switched off, while the walls stand for who really asks."""
    blind = Blindness()
    refuse, who, view, real = gate.refuse_beyond, gate.who, page._view, build_house

    def unrefused(*given: Any) -> None:
        return None if blind.sees else refuse(*given)

    async def anybody(request: Request) -> Caller:
        try:
            return await who(request)
        except Problem:
            if blind.sees is None:
                raise
            return UNKNOWN

    def build(*given: Any) -> FastAPI:
        app = real(*given)

        async def caller(request: Request) -> Caller:
            return blind.of(request.state.caller)

        async def looking(request: Request) -> page.View:
            look = await view(request)
            return look if look.caller is None else replace(look, caller=blind.of(look.caller))

        app.dependency_overrides[site._caller] = caller
        app.dependency_overrides[page._view] = looking
        return app

    monkeypatch.setattr(visitor, "build", build)
    for module in (gate, page):
        monkeypatch.setattr(module, "refuse_beyond", unrefused)
        monkeypatch.setattr(module, "who", anybody)
    return blind


@pytest.fixture
async def blind_at(
    blindness: Blindness, database: Database, database_url: str, home: Path
) -> AsyncIterator[tuple[Town, Blindness]]:
    """Run the server so that the code's checks can be switched off."""
    async with town(database, database_url, home) as running:
        yield running, blindness


@dataclass
class Scene:
    """A person with an estate, and everybody who is not to see it."""

    estate: Estate
    strangers: dict[str, Visitor]
    calls: list[Call]


async def scene(at: Town) -> Scene:
    """Let a member have things; let there be an administrator, another member, their reader and program, and nobody."""
    ada = await at.first()
    bob, carol = await at.invited(ada, WORD), await at.invited(ada, "carol")
    eve = await at.invited(carol, "eve", Role.READER)
    program = await at.program(carol, *EVERY_SCOPE)
    estate = await settle(at, bob)
    strangers = {Role.ADMINISTRATOR: ada, Role.MEMBER: carol, Role.READER: eve, PROGRAM: program}
    calls = [*estate.calls(await document(at)), *estate.pages(build_house(at.database, at.settings))]
    return Scene(estate, {**strangers, NOBODY: await at.visitor()}, calls)


async def asked(who: Visitor, call: Call) -> Response:
    """Send a request as scripts of ours send it, or as a browser does that looks at a page."""
    headers = BROWSER if call.is_page else {}
    return await who.call(call.method, call.path, call.body, **headers)


def tells(of: Estate, call: Call, text: str) -> bool:
    """Say whether an answer holds anything of an estate: its word, or an id that was not asked for."""
    sent = f"{call.path} {call.body}"
    return WORD in text or any(each in text for each in of.ids if each not in sent)


async def leaks(at: Town, of: Estate, who: Visitor, calls: list[Call]) -> list[str]:
    """Send requests for somebody else's things, and say which told of them; then whether anything has changed."""
    found = []
    before = await of.seen(at)
    for call in calls:
        answer = await asked(who, call)
        assert answer.status_code < 500, (call, answer.text)
        if tells(of, call, answer.text):
            found.append(f"{call.method} {call.route}")
    after = await of.seen(at)
    return found + [f"changed {table}" for table in before if before[table] != after[table]]


def beyond(calls: list[Call], role: str) -> list[Call]:
    """Leave out what a role is for: an administrator looks after people and the machine, a program looks at no pages.

    Nobody is sent away from every other route before it looks at anything, as a test of its own shows.
    """
    office = role == Role.ADMINISTRATOR
    return [
        call
        for call in calls
        if (call.method, call.route) not in SPARED
        and not (office and (call.scope in OF_MACHINE or call.route.startswith(INVITATIONS)))
        and not (role == PROGRAM and call.is_page)
        and not (role == NOBODY and not call.is_page)
    ]


async def unwalled(database: Database) -> None:
    """Take the walls of the database down."""
    async with database.connection() as connection:
        for table in await connection.fetch("SELECT oid::regclass FROM pg_class WHERE relrowsecurity"):
            await connection.execute(f"ALTER TABLE {table[0]} DISABLE ROW LEVEL SECURITY")


async def test_every_route_says_who_may_use_it(at: Town) -> None:
    """Only a few are open, all others are behind the gate, and the document has a sentence for each."""
    made = await document(at)
    assert made["openapi"].startswith("3.1")
    listed = {(method, path): operation for method, path, operation in operations(made)}
    assert {key for key, operation in listed.items() if operation["x-scope"] == "open"} == OPEN
    assert all(operation["description"].endswith(".") for operation in listed.values())
    routes = [route for noun in NOUNS for route in noun.routes.routes]
    (bare,) = [route for route in routes if not isinstance(route, Gate)]
    assert getattr(bare, "path", "") == "/api/uploads/bytes/{token}"
    page = (await (await at.visitor()).http.get("/api/docs")).text
    assert all(path in page for _, path in listed)
    assert not re.search(
        r"(src|href|action|data)\s*=\s*['\"]?\s*(https?:)?//|url\(|@import", page
    )  # nothing is fetched


async def test_nobody_comes_in_without_a_sign_in(at: Town) -> None:
    """Every route that is not open refuses whoever has neither session nor key, before it looks at anything."""
    nobody = await at.visitor()
    for method, path, operation in operations(await document(at)):
        if operation["x-scope"] != "open":
            answer = await nobody.call(method.upper(), filled(path), {"nonsense": 1})
            assert answer.status_code == 401, (method, path)
            assert method == "head" or answer.json()["code"] == "signed_out", (method, path)  # which has no body


async def test_a_role_does_what_it_may(at: Town) -> None:
    """A reader changes nothing, a member nothing of the machine; every such route says 403 before it does anything."""
    ada = await at.first()
    member, reader = await at.invited(ada, "bob"), await at.invited(ada, "eve", Role.READER)
    for method, path, operation in operations(await document(at)):
        scope = operation["x-scope"]
        if scope in {"open", "self", "signed-in"}:
            continue
        if scope in OF_MACHINE:
            assert await member.refused(method.upper(), filled(path), {}) == (403, "scope.lacking"), (method, path)
        if scope in OF_MACHINE or scope.endswith(":write"):
            assert await reader.refused(method.upper(), filled(path), {}) == (403, "scope.lacking"), (method, path)


async def test_a_reader_sees_the_things_of_who_invited_them(at: Town) -> None:
    """And only those, and only to look at."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    eve = await at.invited(bob, "eve", Role.READER)
    mine = (await bob.post("/api/posts", {"title": "Bob's"}, 201))["id"]
    other = (await ada.post("/api/posts", {"title": "Ada's"}, 201))["id"]
    assert [each["id"] for each in (await eve.get("/api/posts"))["items"]] == [mine]
    assert await eve.refused("GET", f"/api/posts/{other}") == (404, "post.missing")
    assert await eve.refused("PATCH", f"/api/posts/{mine}", {"title": "x"}) == (403, "scope.lacking")
    told = await eve.refused("POST", "/api/api-keys", {"label": "x", "scopes": ["posts:write"]})
    assert told == (403, "scope.beyond")
    await (await at.program(eve, "posts:read")).get(f"/api/posts/{mine}")


async def test_nobody_sees_or_changes_the_things_of_somebody_else(at: Town) -> None:
    """Every route times every role times somebody else's object: it is not there, and nothing of it has changed."""
    there = await scene(at)
    for role, who in there.strangers.items():
        for call in beyond(there.calls, role):
            answer = await asked(who, call)
            assert not tells(there.estate, call, answer.text), (role, call)
            if there.estate.things.keys() & set(re.findall(r"{(\w+)}", call.route)):
                refused = {401, 303} if role == NOBODY else {403, 404}
                assert answer.status_code in refused, (role, call, answer.status_code, answer.text)
            is_json = answer.content and answer.headers.get("content-type") == "application/json"
            told = answer.json() if is_json else {}
            for outcome in told.get("outcomes", ()):
                assert str(outcome["code"]).endswith(".missing") or "create" in call.route, (role, call, answer.text)
        assert await leaks(at, there.estate, who, []) == []


async def test_their_owner_sees_and_changes_them(at: Town) -> None:
    """The same requests find something when they come from who they belong to: they are not refused for being wrong."""
    there = await scene(at)
    owner = await at.visitor()
    given = {"name": WORD, "password": visitor.PASSWORD}
    owner.signed = await owner.post("/api/session", given, 201)
    calls = beyond(there.calls, Role.MEMBER)
    reads = [each for each in calls if each.method == "GET" and each.scope not in {*OF_MACHINE, gate.OPEN}]
    shown = []
    for call in reads:
        answer = await asked(owner, call)
        assert answer.status_code != 404, (call, answer.text)
        shown += [call.route] if tells(there.estate, call, answer.text) else []
    assert len([call for call in reads if call.is_page and call.route in shown]) > 30
    found = await leaks(at, there.estate, owner, [each for each in calls if each not in reads])
    assert len([each for each in found if each.startswith("changed")]) > 10


async def test_the_database_alone_leaks_nothing(blind_at: tuple[Town, Blindness]) -> None:
    """The code asks for somebody else's things and lets everybody do everything: the walls give nothing away."""
    at, blindness = blind_at
    there = await scene(at)
    blindness.sees = there.estate.person
    for role, who in there.strangers.items():
        assert await leaks(at, there.estate, who, beyond(there.calls, role)) == [], role


async def test_the_code_alone_leaks_nothing(at: Town) -> None:
    """Nor does the code, with the walls of the database down."""
    there = await scene(at)
    before = await there.estate.seen(at)
    await unwalled(at.database)
    for role, who in there.strangers.items():
        for call in beyond(there.calls, role):
            assert not tells(there.estate, call, (await asked(who, call)).text), (role, call)
    async with at.database.connection() as connection:
        for table in before:
            await connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    assert await there.estate.seen(at) == before


async def test_without_both_there_would_be_leaks(blind_at: tuple[Town, Blindness]) -> None:
    """With neither check the same requests tell of things and change them, so that the tests above mean something."""
    at, blindness = blind_at
    there = await scene(at)
    await unwalled(at.database)
    blindness.sees = there.estate.person
    reads, of = [each for each in there.calls if each.method == "GET"], there.estate

    async def told(role: str) -> set[str]:
        who = there.strangers[role]
        return {each.route for each in beyond(reads, role) if tells(of, each, (await asked(who, each)).text)}

    member, nobody = await told(Role.MEMBER), await told(NOBODY)
    assert member >= TELLING | TELLING_PAGES
    assert nobody >= TELLING_PAGES
    assert (len(member) > 70, len(nobody) > 35) == (True, True)


def test_nothing_passes_the_walls_but_what_is_named() -> None:
    """The stream, which reads for everybody and tells each of their own; the metrics; who looks after the machine."""
    rooms = [Path(str(house.__file__)).parent, Path(str(house.__file__)).parent.parent / "web"]
    texts = {file.name: file.read_text() for room in rooms for file in room.glob("*.py")}
    assert sorted(name for name, text in texts.items() if ".whole()" in text) == ["metrics.py", "site.py"]
    assert sorted(name for name, text in texts.items() if "site.machine()" in text) == [
        "health.py",
        "settings_audit.py",
        "status.py",
    ]
    assert not [name for name, text in texts.items() if "database.url" in text]
