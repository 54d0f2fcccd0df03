"""Answers: every one carries its headers, whatever was asked; what is wrong is said so, and never an error of ours."""

import asyncio
import json
import re
from copy import deepcopy
from typing import Any
from uuid import uuid4

import httpx2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.api.app import HEADERS, MOST_BODY
from imprint.api.openapi import operations
from tests.api.estate import settle
from tests.api.test_content import sent as put
from tests.api.test_content import uploaded
from tests.api.test_walls import document, filled
from tests.api.visitor import Town
from tests.work.posts import Author
from tests.work.scene import PNG


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
    """Every route, known and unknown addresses, pages and their files: good answers, refused and lost ones alike."""
    ada = await at.first()
    estate = await settle(at, ada)
    made = await document(at)
    asked = [(each.method, each.path) for each in estate.calls(made) if each.method == "GET"]
    asked += [(method.upper(), filled(path)) for method, path, _ in operations(made)]
    asked += [("GET", each) for each in ("/healthz", "/readyz", "/", "/sign-in", "/api/docs", "/nowhere", "/assets/x")]
    asked += [("PUT", "/api/posts"), ("GET", "/api/posts/x"), ("POST", "/healthz"), ("OPTIONS", "/api/posts")]
    nobody, seen = await at.visitor(), set()
    for method, path in asked:
        if path.startswith("/api/events"):  # which does not end
            continue
        for who in (ada, nobody) if method == "GET" else (nobody,):
            answer = await who.http.request(method, path, json={} if method in {"POST", "PUT", "PATCH"} else None)
            _is_dressed(answer, f"{method} {path}")
            seen.add(answer.status_code)
    large = await ada.http.post("/api/posts", content=b" " * (MOST_BODY + 1))
    _is_dressed(large, "too large")
    assert large.status_code == 413
    assert {200, 303, 401, 404, 405, 422} <= seen


def _is_dressed(answer: httpx2.Response, what: str) -> None:
    given = dict(answer.headers)
    policy = given.get("content-security-policy", "")
    assert "default-src 'none'" in policy, what
    kept = {"content-security-policy", "cache-control"}  # which a route may say more strictly, or for its own bytes
    assert {n.lower(): v for n, v in HEADERS.items() if n.lower() not in kept}.items() <= given.items(), what
    assert given.get("cache-control"), what
    kind = given.get("content-type", "").partition(";")[0]
    if kind not in {
        "application/json",
        "application/problem+json",
        "text/html",
        "text/plain",
        "",
    }:  # what people have uploaded is never a page of ours
        assert given["content-disposition"].startswith("attachment;"), what
        assert policy.startswith("sandbox;"), what


async def test_what_people_upload_is_never_a_page_of_ours(at: Town) -> None:
    """Whatever its name and bytes say, it is an attachment that may run nothing."""
    ada = await at.first()
    evil = PNG + b"<script>alert(1)</script>"
    for name in ("a.html", 'x";\r\nSet-Cookie: a=b.png', "../../etc/passwd", "\u202egnp.exe", "\u2028.svg"):
        content = await uploaded(ada, evil, filename=name)
        answer = await ada.http.get(f"/api/content/{content}/download")
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, evil, "image/png")
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        assert "set-cookie" not in answer.headers
        assert "/" not in answer.headers["content-disposition"]


async def test_an_address_to_send_bytes_to_is_good_once(at: Town) -> None:
    """Used, it is used up; and so it is for another method, another size and another path."""
    ada = await at.first()
    asked = {"filename": "a.png", "contentType": "image/png", "fileSize": len(PNG)}
    url = (await ada.post("/api/uploads/presigned-url", asked, 201))["uploadUrl"]
    assert (await put(url, PNG)).status_code == 201
    assert (await put(url, PNG)).json()["code"] == "upload.used"
    for method in ("GET", "POST", "DELETE", "PATCH"):
        assert (await ada.http.request(method, url)).status_code in {403, 405}


async def test_lines_and_paths_that_are_none_are_refused(at: Town) -> None:
    """What would be two lines, two requests or another path is refused, or taken for what it is; nothing breaks."""
    host = at.url.removeprefix("http://").encode()
    for line in (
        b"GET /api/posts/%0d%0aSet-Cookie:%20a=b HTTP/1.1",
        b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
        b"GET /../../etc/passwd HTTP/1.1",
        b"GET //evil.example/%2f.. HTTP/1.1",
        b"GET /api/posts/%00 HTTP/1.1",
        b"GET http://evil.example/ HTTP/1.1",
        b"GET /healthz\x0b HTTP/1.1",
        b"GET /\xff\xfe HTTP/1.1",
        b"CONNECT evil.example:443 HTTP/1.1",
    ):
        told = await _raw(at, line + b"\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
        assert not re.search(rb"(?i)set-cookie|root:|HTTP/1.1 5", told), (line, told)
    for more in (
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Content-Length: -1",
        b"Content-Length: 99999999999999999999999",
        b"Transfer-Encoding: chunked, identity",
        b"X-Evil: a\rb",
        b"X Evil: a",
        b" folded: a",
    ):
        head = b"POST /api/session HTTP/1.1\r\nHost: " + host + b"\r\nContent-Type: application/json\r\n" + more
        told = await _raw(at, head + b"\r\nConnection: close\r\n\r\n{}\r\n\r\n")
        assert re.match(rb"HTTP/1.1 4\d\d|$", told), (more, told)
        assert told.count(b"HTTP/1.1") <= 1, (more, told)
    ada = await at.first()
    for wrong in ("a b", "evil.example/x", "a" * 300, "x@y"):
        answer = await ada.http.post("/api/posts", json={}, headers={"Host": wrong})
        assert answer.status_code == 400


async def _raw(at: Town, sent_: bytes) -> bytes:
    host, _, port = at.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(sent_)
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


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
    spared = {
        "/api/events",
        "/api/session",
        "/api/sessions",
        "/api/session/password",
        "/api/people/first",
        "/api/invitations/accept",
    }
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
        told = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        sent = deepcopy(told.get("example"))
        if isinstance(sent, dict) and data.draw(st.booleans()):
            for name in list(sent):
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
        if answer.status_code >= 400 and method != "HEAD":  # which is answered without a body
            assert {"status", "code", "title"} <= answer.json().keys(), (method, parts, sent)
    assert {200, 404, 422} <= seen
