"""Pages only read, are for those who may see them, and let no foreign script in."""

import asyncio
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from imprint.api.app import HEADERS
from imprint.api.house import NOUNS
from imprint.web import assets, page
from imprint.web.house import PAGES
from tests.api.visitor import Town

BROWSER = {"Accept": "text/html"}
SOURCE = Path(page.__file__).parent


def routes() -> list[APIRoute]:
    """Give the route of every page."""
    return [route for each in PAGES for route in each.routes.routes if isinstance(route, APIRoute)]


def test_pages_only_read() -> None:
    """No page can change anything, whatever is sent to it; and each says who may see it."""
    assert {method for route in routes() for method in route.methods or ()} == {"GET"}
    assert all((route.openapi_extra or {}).get("x-scope") for route in routes())
    ours = {route.path for route in routes()}
    assert not {path for path in ours if path.startswith("/api")}
    assert not ours & {getattr(route, "path", "") for noun in NOUNS for route in noun.routes.routes}


async def test_every_page_has_a_strict_policy(at: Town) -> None:
    """Only scripts of ours, no inline ones, and every other header that answers have; found and lost pages alike."""
    ada = await at.first()
    for path in ("/", "/posts", "/sign-in", "/invitation", "/nowhere", "/posts/new"):
        answer = await ada.http.get(path, headers=BROWSER, follow_redirects=True)
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert policy["script-src"] == "'self'", path
        assert "unsafe" not in str(policy), path
        nonce = re.search(r"'nonce-([\w-]+)'", policy["style-src"])
        assert nonce, path
        assert f'content="{nonce[1]}"' in answer.text
        others = {name: value for name, value in HEADERS.items() if name != "Content-Security-Policy"}
        assert {name.lower(): value for name, value in others.items()}.items() <= dict(answer.headers).items(), path
        assert not re.search(r"<script(?! src=)|\son\w+=|style=|javascript:|//(?!www\.w3)", answer.text), path


async def test_scripts_come_packed_to_who_can_unpack_them(at: Town) -> None:
    """The same bytes, a third of the way; who cannot unpack gets them as they are."""
    ada = await at.first()
    home = await ada.http.get("/", headers=BROWSER)
    (script,) = re.findall(r"/assets/calendar\.\w+\.js", home.text)
    packed = await ada.http.get(script, headers={"Accept-Encoding": "gzip"})
    plain = await ada.http.get(script, headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) * 3 < int(plain.headers["content-length"])


async def test_who_is_signed_out_comes_back_to_the_page_and_not_to_a_part_of_it(at: Town) -> None:
    """A fragment that is refused leads to the sign-in, and from there to the page it belongs to."""
    part = {"HX-Request": "true", "HX-Current-URL": f"{at.url}/posts?status=review"}
    answer = await (await at.visitor()).http.get("/posts/rows", headers=part)
    assert answer.headers["hx-redirect"] == "/sign-in?next=/posts"


async def test_somebody_who_is_nowhere_is_told_so_in_their_language(at: Town) -> None:
    """A person gets a page, a program JSON, and a fragment a sentence."""
    ada = await at.first()
    lost = await ada.http.get("/nowhere", headers=BROWSER)
    assert (lost.status_code, "There is nothing at this address." in lost.text) == (404, True)
    assert await ada.refused("GET", "/nowhere") == (404, "route.missing")
    assert await ada.refused("GET", "/api/nowhere") == (404, "route.missing")
    part = await ada.http.get("/posts/8f1d0c52-5d0e-4e62-8a8e-0f7a3f0c9b23/state", headers={"HX-Request": "true"})
    assert (part.status_code, part.text.strip()) == (404, '<p class="problem" role="alert">There is no such post.</p>')


async def test_who_is_not_signed_in_is_led_to_the_entrance(at: Town) -> None:
    """Also from within a page whose session has ended."""
    nobody = await at.visitor()
    for route in routes():
        if (route.openapi_extra or {})["x-scope"] == "open":
            continue
        path = route.path.replace("{post}", "8f1d0c52-5d0e-4e62-8a8e-0f7a3f0c9b23")
        answer = await nobody.http.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/sign-in"), path
        part = await nobody.http.get(path, headers={"HX-Request": "true"})
        assert part.headers["hx-redirect"] == "/sign-in"


async def test_assets_are_kept_for_ever_and_nothing_else_is_given(at: Town) -> None:
    """Their names change with what is in them; no path leads out of their folders."""
    nobody = await at.visitor()
    shown = (await nobody.http.get("/sign-in", headers=BROWSER, follow_redirects=True)).text
    found = set(re.findall(r'(?:src|href)="(/assets/[^"]+)"', shown))
    assert len(found) >= 6
    for path in found:
        answer = await nobody.http.get(path)
        assert answer.status_code == 200, path
        assert "immutable" in answer.headers["cache-control"]
    for path in ("manifest.json", "LICENCES.txt", "imprint.css", "..%2fpage.py", "%00"):
        assert (await nobody.http.get(f"/assets/{path}")).status_code == 404, path


async def test_missing_assets_are_one_sentence(at: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages say what to do, and the API works all the same."""
    monkeypatch.setattr(assets.Assets, "lacking", assets.LACKING)
    ada = await at.first()
    answer = await ada.http.get("/", headers=BROWSER)
    assert (answer.status_code, "make install" in answer.text) == (503, True)
    assert (await ada.get("/api/session"))["name"] == "ada"


def test_no_template_takes_a_text_as_markup() -> None:
    """Everything is escaped: a template that switches that off is found."""
    for template in (SOURCE / "templates").iterdir():
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup", text), template.name
        assert not re.search(r"<script(?! src)|<style|\son[a-z]+=|\sstyle=", text), template.name


async def test_nothing_falls_between_a_page_and_its_stream(at: Town) -> None:
    """A page says how far everything was told before it was read: what happens before it listens is told then."""
    ada = await at.first()
    shown = (await ada.http.get("/", headers=BROWSER)).text
    position = re.search(r'data-position="([0-9a-f]{8}-\d+)"', shown)
    assert position
    post = (await ada.post("/api/posts", {"title": "Meanwhile"}, 201))["id"]
    async with asyncio.timeout(20), ada.http.stream("GET", f"/api/events?after={position[1]}") as stream:
        async for line in stream.aiter_lines():
            if post in line:
                break
    part = await ada.http.get("/calendar/next", headers={"HX-Request": "true"})
    assert "data-position" not in part.text
