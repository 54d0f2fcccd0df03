"""An answer: every status is one of five failures, every wish is bounded, every fault of the wire is told."""

from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.sources.answer import LONGEST_WISH, Answer, ask, get
from imprint.sources.contract import Failure, Gone, NotYet, RateLimited, Refused, Unreadable
from tests.sources.canned import Canned, canned


@pytest.fixture
async def server() -> AsyncIterator[Canned]:
    """Give a server that answers as it is told."""
    async with canned() as one:
        yield one


def answer(status: int = 200, **headers: str) -> Answer:
    """Make an answer without a server."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, httpx2.Headers(named), b"", "http://x/", None)


@pytest.mark.parametrize(
    ("status", "failure"),
    [(429, RateLimited), (410, Gone), (500, NotYet), (502, NotYet), (503, NotYet), (504, NotYet), (408, NotYet),
     (522, NotYet), (301, Refused), (400, Refused), (401, Refused), (403, Refused), (404, Refused),
     (418, Refused), (204, Refused)],
)  # fmt: skip
def test_every_status_is_one_of_five_failures(status: int, failure: type[Failure]) -> None:
    """What passes by itself, what does not, and what is gone are told apart by the number alone."""
    with pytest.raises(Failure) as caught:
        answer(status).settle()
    assert type(caught.value) is failure
    assert caught.value.code.startswith("source.")


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({"retry_after": "120"}, timedelta(minutes=2)),
        ({"retry_after": "0"}, None),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "1e9"}, None),
        ({"retry_after": "999999999999"}, LONGEST_WISH),
        ({"retry_after": "99999999999999999999999"}, None),
        (
            {"retry_after": "Mon, 01 Jan 2024 00:01:00 GMT", "date": "Mon, 01 Jan 2024 00:00:00 GMT"},
            timedelta(minutes=1),
        ),
        ({"retry_after": "Mon, 01 Jan 1990 00:00:00 GMT", "date": "Mon, 01 Jan 2024 00:00:00 GMT"}, timedelta(0)),
        ({"x_ratelimit_retry_after": "1704067230", "date": "Mon, 01 Jan 2024 00:00:00 GMT"}, timedelta(seconds=30)),
        ({}, None),
    ],
)
def test_retry_after_is_understood_and_bounded(headers: dict[str, str], after: timedelta | None) -> None:
    """Seconds, dates and MangaDex's own header count from the server's clock; nonsense is no wish."""
    assert answer(429, **headers).retry_after() == after


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        ({"cache_control": "public, max-age=600"}, timedelta(minutes=10)),
        ({"cache_control": "max-age=600", "age": "100"}, timedelta(seconds=500)),
        ({"cache_control": "max-age=600", "age": "900"}, None),
        ({"cache_control": "max-age=600", "retry_after": "900"}, timedelta(minutes=15)),
        ({"cache_control": "no-cache"}, None),
        ({"cache_control": "max-age=0"}, None),
        ({"cache_control": "max-age=999999999999"}, LONGEST_WISH),
        ({"cache_control": "max-age=-1"}, None),
        ({"cache_control": "x-max-age=5"}, None),
    ],
)
def test_the_servers_wish_is_the_longer_of_its_two(headers: dict[str, str], after: timedelta | None) -> None:
    """Freshness minus age, or Retry-After, whichever is later."""
    assert answer(200, **headers).wish().after == after


LATIN = st.text(st.characters(max_codepoint=255), max_size=40) | st.from_regex(r"\A(max-age=)?[0-9]*\Z")


@given(LATIN, LATIN, LATIN)
def test_no_header_is_too_odd(retry: str, control: str, age: str) -> None:
    """Whatever the headers hold, there is a wish within bounds or none."""
    named = {"retry-after": retry, "cache-control": control, "age": age}
    headers = [(name.encode(), value.encode("latin-1")) for name, value in named.items()]
    odd = Answer(200, httpx2.Headers(headers), b"", "", None)
    for wish in (odd.wish().after, odd.retry_after()):
        assert wish is None or timedelta(0) <= wish <= LONGEST_WISH


async def test_a_body_is_read_up_to_the_bound(server: Canned) -> None:
    """One byte more than the bound is too large, whatever the server says of its length."""
    server.say(b"x" * 1000)
    assert len((await ask(server.http, get(server.http, server.base), 1000)).body) == 1000
    server.say(b"x" * 1001)
    with pytest.raises(Unreadable, match="larger"):
        await ask(server.http, get(server.http, server.base), 1000)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "http://",
        "http://[",
        "file:///etc/passwd",
        "ftp://a/",
        "http://a b/",
        "//",
        "http://h:port/",
        "\0",
        "mailto:x",
    ],
)
async def test_what_is_no_url_is_refused(server: Canned, url: str) -> None:
    """A place that cannot be asked is a refusal, never a crash."""
    with pytest.raises(Refused):
        await ask(server.http, get(server.http, url), 10)
    assert server.requests == []


async def test_nobody_there_is_a_fault_that_passes(server: Canned) -> None:
    """A refused connection is NotYet: the server may be back."""
    with pytest.raises(NotYet):
        await ask(server.http, get(server.http, "http://127.0.0.1:1/"), 10)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN', b"null null"])
def test_what_is_not_json_is_unreadable(body: bytes) -> None:
    """Broken, empty, wrongly encoded and bottomless JSON all have the same clear end."""
    with pytest.raises(Unreadable):
        Answer(200, httpx2.Headers(), body, "", None).json()
