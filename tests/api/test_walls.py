"""Walls: every route, as the document lists them, for everybody who may not use it and for things of somebody else."""

import json
import re
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.api.app import HEADERS, MOST_BODY
from imprint.api.gate import Gate
from imprint.api.house import NOUNS
from imprint.api.openapi import UNSAFE, operations
from tests.api.visitor import Town, Visitor
from tests.work.posts import Author

OPEN = {
    ("post", "/api/session"),
    ("post", "/api/people/first"),
    ("post", "/api/invitations/accept"),
    ("put", "/api/uploads/bytes/{token}"),
}


async def document(at: Town) -> dict[str, Any]:
    """Read the document as anybody can."""
    found: dict[str, Any] = await (await at.visitor()).get("/api/openapi.json")
    return found


def filled(path: str, **things: object) -> str:
    """Put ids into a path: those that are given, and unknown ones."""
    return re.sub(r"{(\w+)}", lambda found: str(things.get(found[1], uuid4())), path)


def body(operation: dict[str, Any], made: dict[str, Any], **things: object) -> Any:
    """Make a body that the document allows, with ids of somebody else in it."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return None if schema is None else _example(schema, made, things)


def _example(schema: dict[str, Any], made: dict[str, Any], things: dict[str, Any]) -> Any:  # noqa: PLR0911 - a table
    if "$ref" in schema:
        return _example(made["components"]["schemas"][schema["$ref"].rpartition("/")[2]], made, things)
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], made, things)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            wanted = {name: part for name, part in schema.get("properties", {}).items() if name in _wanted(schema)}
            return {name: things.get(name) or _example(part, made, things) for name, part in wanted.items()}
        case "array":
            return [_example(schema["items"], made, things)]
        case "integer":
            return 1
        case "string":
            if schema.get("format") == "uuid":
                return str(things.get("uuid") or uuid4())
            return next(iter(schema.get("examples", ["x"])))
    return None


def _wanted(schema: dict[str, Any]) -> set[str]:
    return {*schema.get("required", ()), "contentId", "accountId", "fileId", "postId", "ids", "files", "at"}


async def test_every_route_says_who_may_use_it(at: Town) -> None:
    """Only a few are open, all others are behind the gate, and the document has an example and a sentence for each."""
    made = await document(at)
    assert made["openapi"].startswith("3.1")
    listed = {(method, path): operation for method, path, operation in operations(made)}
    assert {key for key, operation in listed.items() if operation["x-scope"] == "open"} == OPEN
    assert all(operation["description"].endswith(".") for operation in listed.values())
    routes = [route for noun in NOUNS for route in noun.routes.routes]
    assert [route for route in routes if not isinstance(route, Gate)][0:] == [
        route for route in routes if getattr(route, "path", "") == "/api/uploads/bytes/{token}"
    ]
    page = (await (await at.visitor()).http.get("/api/docs")).text
    assert all(path in page for _, path in listed)
    assert "//" not in re.sub(r"https?://[\w.-]*example", "", page)  # nothing is fetched from anybody


async def test_nobody_comes_in_without_a_sign_in(at: Town) -> None:
    """Every route that is not open refuses whoever has neither session nor key, before it looks at anything."""
    nobody = await at.visitor()
    for method, path, operation in operations(await document(at)):
        if operation["x-scope"] != "open":
            told = await nobody.refused(method.upper(), filled(path), {"nonsense": 1})
            assert told == (401, "signed_out"), (method, path)


async def test_a_role_does_what_it_may(at: Town) -> None:
    """A reader changes nothing, a member nothing of the machine; every such route says 403 and does nothing."""
    ada = await at.first()
    member, reader = await at.invited(ada, "bob"), await at.invited(ada, "eve", "reader")
    made = await document(at)
    for who, may in ((reader, {":read"}), (member, {"posts:", "content:", "accounts:"})):
        for method, path, operation in operations(made):
            scope = operation["x-scope"]
            if scope in {"open", "self", "signed-in"} or any(part in scope for part in may & {":read"}):
                continue
            answer = await who.call(method.upper(), filled(path), body(operation, made))
            allowed = any(scope.startswith(part) for part in may)
            assert (answer.status_code == 403) != allowed, (method, path, scope, answer.text)
    for scope in ("people:read", "system:read"):
        for method, path, operation in operations(made):
            if operation["x-scope"] == scope:
                for who in (reader, member):
                    assert await who.refused(method.upper(), filled(path)) == (403, "scope.lacking")


async def test_a_reader_sees_the_things_of_who_invited_them(at: Town) -> None:
    """And only those, and only to look at."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    eve = await at.invited(bob, "eve", "reader")
    mine = (await bob.post("/api/posts", {"title": "Bob's"}, 201))["id"]
    other = (await ada.post("/api/posts", {"title": "Ada's"}, 201))["id"]
    assert [each["id"] for each in (await eve.get("/api/posts"))["items"]] == [mine]
    assert await eve.refused("GET", f"/api/posts/{other}") == (404, "post.missing")
    assert await eve.refused("PATCH", f"/api/posts/{mine}", {"title": "x"}) == (403, "scope.lacking")
    told = await eve.refused("POST", "/api/api-keys", {"label": "x", "scopes": ["posts:write"]})
    assert told == (403, "scope.beyond")
    await (await at.program(eve, "posts:read")).get(f"/api/posts/{mine}")


async def test_nobody_sees_or_changes_the_things_of_somebody_else(at: Town) -> None:
    """Every route times somebody else's object: it is not there, nothing of it is said, nothing has changed."""
    ada = await at.first()
    author = Author(at.database, "operator")
    secret = "Only Ada knows this"  # noqa: S105 - not of the kind that opens doors
    post = await author.draft(title=secret)
    content, account = await author.content(), await author.account(label=secret, default=True)
    (file,) = (await ada.get(f"/api/posts/{post}"))["files"]
    session = (await ada.get("/api/sessions"))["items"][0]["id"]
    key = (await ada.post("/api/api-keys", {"label": secret, "scopes": ["posts:read"]}, 201))["id"]
    invitation = (await ada.post("/api/invitations", {"label": secret}, 201))["id"]
    bob = await at.invited(ada, "bob")
    before = await _everything(ada, post, content, account)
    things: dict[str, object] = {
        "post": post,
        "content": content,
        "account": account,
        "file": file["id"],
        "session": session,
        "key": key,
        "invitation": invitation,
        "person": "operator",
    }
    made = await document(at)
    bodies = {
        "ids": [str(post), str(content)],
        "contentId": str(content),
        "accountId": str(account),
        "fileId": str(content),
        "postId": str(post),
        "files": [file["id"]],
    }
    for method, path, operation in operations(made):
        if operation["x-scope"] == "open" or path in {"/api/session", "/api/sessions", "/api/session/password"}:
            continue
        answer = await bob.call(method.upper(), filled(path, **things), body(operation, made, **bodies))
        assert secret not in answer.text, (method, path)
        assert str(account) not in answer.text, (method, path)
        told = answer.json() if answer.content else {}
        if "{" in path:
            assert answer.status_code in {403, 404}, (method, path, answer.status_code, answer.text)
        for outcome in told.get("outcomes", ()):
            assert outcome["code"] in {"post.missing", "content.missing"}, (method, path, told)
    assert await _everything(ada, post, content, account) == before
    assert (await ada.get("/api/session"))["name"] == "ada"


async def _everything(who: Visitor, post: object, content: object, account: object) -> object:
    return [
        await who.get(f"/api/posts/{post}"),
        await who.get(f"/api/content/{content}"),
        await who.get(f"/api/accounts/{account}"),
        await who.get("/api/posts/counts"),
    ]


FORGED = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"X-CSRF-Token": ""},
    {"X-CSRF-Token": "x" * 43},
)


async def test_no_page_of_another_site_changes_anything(at: Town) -> None:
    """Every unsafe route times every way of forging it, with a good cookie: refused before it does anything."""
    ada = await at.first()
    for method, path, operation in operations(await document(at)):
        if method not in UNSAFE or path == "/api/uploads/bytes/{token}":
            continue
        for forged in FORGED:
            if operation["x-scope"] == "open" and "X-CSRF-Token" in forged:
                continue
            told = await ada.refused(method.upper(), filled(path), {}, **forged)
            assert told == (403, "csrf.refused"), (method, path, forged)
    ours = {"Origin": at.url, "Sec-Fetch-Site": "same-origin"}
    assert (await ada.call("POST", "/api/posts", {"title": "Ours"}, **ours)).status_code == 201


async def test_a_form_is_no_json(at: Town) -> None:
    """What a form can send without asking is not taken, whoever sends it."""
    program = await at.program(await at.first(), "posts:write")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = await program.http.post("/api/posts", content=b'{"title": "x"}', headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["code"]) == (415, "request.not_json")


async def test_bad_json_is_told_so(at: Town) -> None:
    """Torn, deep, huge or half a letter: a sentence, and never an error of ours."""
    program = await at.program(await at.first(), "posts:write")
    for sent, status, code in (
        (b"{", 400, "request.bad_json"),
        (b"\xff\xfe", 400, "request.bad_json"),
        (b"[" * 100_000, 400, "request.bad_json"),
        (b'{"title": ' + b"9" * 10_000 + b"}", 400, "request.bad_json"),
        (b'{"title": "\\ud800"}', 422, "request.invalid"),
        (b'{"\\ud800": 1}', 422, "request.invalid"),
        (b'{"title": NaN}', 422, "request.invalid"),
        (b'{"overrides": {"webhook": {"x": NaN}}}', 422, "request.invalid"),
        (b'{"overrides": {"webhook": {"x": "\\u0000"}}}', 422, "request.invalid"),
        (b"null", 422, "request.invalid"),
        (b"", 422, "request.invalid"),
    ):
        answer = await program.http.post("/api/posts", content=sent, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (status, code), (sent[:40], answer.text)


async def test_too_much_is_refused_as_it_comes(at: Town) -> None:
    """Whether a body says how large it is or not."""
    program = await at.program(await at.first(), "posts:write")

    async def endless() -> Any:
        for _ in range(MOST_BODY // 65536 + 2):
            yield b" " * 65536

    for content in (b" " * (MOST_BODY + 1), endless()):
        answer = await program.http.post("/api/posts", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "request.too_large")


async def test_every_answer_carries_its_headers(at: Town) -> None:
    """Good, refused and lost ones alike."""
    ada = await at.first()
    wanted = {name.lower(): value for name, value in HEADERS.items()}
    for path in ("/healthz", "/readyz", "/", "/api/docs", "/api/session", "/api/people", "/nowhere", "/api/posts/x"):
        for who in (ada, await at.visitor()):
            answer = await who.http.get(path)
            assert wanted.items() <= dict(answer.headers).items(), path
    assert await ada.refused("GET", "/nowhere") == (404, "route.missing")
    assert await ada.refused("PUT", "/api/posts") == (405, "route.method")
    for host in ("a b", "evil.example/x", "a" * 300, "x@y"):
        answer = await ada.http.post("/api/posts", json={}, headers={"Host": host})
        assert answer.status_code == 400


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ["\x00", "../..", "%00", "2030-05-01T18:00", "9999-12-31T23:59:59Z", "0001-01-01", "Europe/Berlin"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


async def test_junk_is_never_an_error_of_ours(at: Town) -> None:
    """Every route of the document, with junk in its path, its query, its headers and every field of its body."""
    ada = await at.first()
    await Author(at.database, "operator").account(default=True)
    post = (await ada.post("/api/posts", {"title": "A post", "kind": "article", "body": "x"}, 201))["id"]
    made = await document(at)
    spared = {"/api/session", "/api/sessions", "/api/session/password", "/api/people/first", "/api/invitations/accept"}
    calls = [each for each in operations(made) if each[1] not in spared]
    seen: set[int] = set()

    @settings(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def throw(data: st.DataObject) -> None:
        method, path, operation = data.draw(st.sampled_from(calls))
        things = st.sampled_from([post, str(uuid4()), "x", "%00", "..%2f..", "a" * 300])
        parts = re.sub(r"{\w+}", lambda _: data.draw(things), path)
        query = {
            each["name"]: data.draw(st.text(max_size=20) | st.sampled_from(["\x00", "-1", "true", "9" * 40]))
            for each in operation.get("parameters", ())
            if each["in"] == "query" and data.draw(st.booleans())
        }
        sent = body(operation, made, uuid=post)
        if isinstance(sent, dict) and data.draw(st.booleans()):
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            schema = schema.get("anyOf", [schema])[0]["$ref"].rpartition("/")[2]
            for name in made["components"]["schemas"][schema]["properties"]:
                if data.draw(st.booleans()):
                    sent[name] = data.draw(JUNK)
        elif data.draw(st.booleans()):
            sent = data.draw(JUNK)
        plan.append((method.upper(), parts, query, json.dumps(sent).encode()))

    plan: list[tuple[str, str, dict[str, str], bytes]] = []
    throw()
    for method, parts, query, sent in plan:
        headers = {"X-CSRF-Token": ada.signed["csrfToken"], "Content-Type": "application/json"}
        answer = await ada.http.request(method, parts, params=query, content=sent, headers=headers)
        seen.add(answer.status_code)
        assert answer.status_code < 500, (method, parts, query, sent, answer.text)
        if answer.status_code >= 400:
            assert {"status", "code", "title"} <= answer.json().keys(), (method, parts, sent)
    assert {200, 404, 422} <= seen


async def test_no_letter_of_a_secret_may_be_wrong(at: Town) -> None:
    """Each change of a cookie, a key or an upload address makes it good for nothing."""
    ada = await at.first()
    session = ada.http.cookies["imprint_session"]
    key = (await ada.post("/api/api-keys", {"label": "k", "scopes": ["posts:read"]}, 201))["secret"]
    asked = {"filename": "a.png", "contentType": "image/png", "fileSize": 8}
    upload = urlsplit((await ada.post("/api/uploads/presigned-url", asked, 201))["uploadUrl"]).path
    async with httpx2.AsyncClient(base_url=at.url, trust_env=False) as http:
        for changed in _changed(session):
            answer = await http.get("/api/session", headers={"Cookie": f"imprint_session={changed}"})
            assert answer.status_code == 401
        for changed in _changed(key):
            answer = await http.get("/api/session", headers={"Authorization": f"Bearer {changed}"})
            assert answer.status_code == 401
        for changed in _changed(upload.rpartition("/")[2]):
            answer = await http.put(f"/api/uploads/bytes/{changed}", content=b"12345678")
            assert answer.status_code in {403, 405}, changed


def _changed(secret: str) -> list[str]:
    """Change a secret here and there."""
    found = []
    for place in range(0, len(secret), 5):
        other = "A" if secret[place] != "A" else "B"
        found += [secret[:place] + other + secret[place + 1 :], secret[: place + 1], secret + secret[place]]
    return found
