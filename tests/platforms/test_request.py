"""Requests: known before they leave, the same every time, and shown without secrets."""

from dataclasses import replace
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from imprint.platforms.request import HIDDEN, Body, Form, Multipart, Raw, Request, Text
from imprint.sandbox.multipart import parts
from tests.platforms.works import picture

NAMES = st.text(max_size=30)


async def whole(body: Body) -> bytes:
    """Read a body to its end."""
    return b"".join([chunk async for chunk in body.stream(lambda _: None)])


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8), NAMES)
async def test_a_multipart_is_as_long_as_it_says_and_reads_back(fields: list[tuple[str, str]], name: str) -> None:
    """Whatever the fields and the filename, the size is known beforehand and nothing leaks from one part to another."""
    file = picture(5_000, name=name)
    body = Multipart(tuple(fields), "file", file, "key")
    data = await whole(body)
    assert len(data) == body.size
    found = parts(body.type, data)
    assert [part.text for part in found[:-1]] == [value.encode("utf-8", "replace").decode() for _, value in fields]
    assert sha256(found[-1].data).hexdigest() == file.sha256
    assert found[-1].filename
    assert len(found) == len(fields) + 1


async def test_the_same_request_is_the_same_bytes() -> None:
    """A preview can be compared with what is sent, since nothing in it is drawn by lot."""
    one, other = (Request("up", "POST", "http://x", body=Multipart((), "f", picture(), "key")) for _ in range(2))
    assert await one.digest() == await other.digest()
    assert one == other
    third = replace(one, body=Multipart((), "f", picture(), "other"))
    assert await third.digest() != await one.digest()


async def test_bodies_know_their_size() -> None:
    """Each kind of body says how long it is before it is read."""
    bodies: list[Body] = [Text(b"{}"), Form((("a", "ü &="), ("b[]", SecretStr("s")))), Raw(picture(70_000))]
    for body in bodies:
        assert len(await whole(body)) == body.size
        assert body.type
    assert await whole(bodies[1]) == b"a=%C3%BC+%26%3D&b%5B%5D=s"
    assert await Request("look", "GET", "http://x").digest() == sha256(b"").hexdigest()


def test_nothing_secret_is_shown() -> None:
    """Secrets in headers, in forms and in addresses appear in no repr and in no preview."""
    canary = "canary-0815"
    request = Request(
        "post",
        "POST",
        f"https://user:{canary}@hook.example/{canary}?k={canary}",
        (("Authorization", SecretStr(f"Bearer {canary}")),),
        Form((("client_secret", SecretStr(canary)), ("title", "Harbour"))),
        secret_path=True,
    )
    shown = request.shown()
    assert canary not in repr(request)
    assert canary not in str(shown)
    assert shown["url"] == f"https://hook.example/{HIDDEN}"
    assert "Harbour" in str(shown)
    assert (("Authorization", f"Bearer {canary}")) in request.sent_headers()
