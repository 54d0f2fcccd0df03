"""Forgery: what a page of another site makes a browser send changes nothing."""

from imprint.api.openapi import UNSAFE, operations
from tests.api.test_walls import document, filled
from tests.api.visitor import Town

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
