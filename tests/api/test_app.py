"""The HTTP server tells health to everybody, the status to the operator, and nothing to those who misbehave."""

import asyncio
import socket
from collections.abc import AsyncIterator

import asyncpg
import httpx2
import pytest

from imprint.api.app import HEADERS, MOST_FORM
from imprint.api.server import serve
from imprint.engine.address import address, listen
from imprint.store.db import Database
from tests.waiting import until

KEY = "a-key-that-is-long-enough"


@pytest.fixture
async def site(database: Database) -> AsyncIterator[str]:
    """Run the real server on a free port."""
    opened = listen("127.0.0.1", 0)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(database, KEY, opened, stop))
        at = address(opened)
        await until(lambda: _answers(at))
        yield at
        stop.set()


async def _answers(at: str) -> bool:
    try:
        async with httpx2.AsyncClient(trust_env=False) as http:
            return (await http.get(f"{at}/healthz")).status_code == 200
    except httpx2.TransportError:
        return False


async def test_health_is_for_everybody(site: str) -> None:
    """Monitors may ask with HEAD, and every answer carries its headers."""
    async with httpx2.AsyncClient(base_url=site, trust_env=False) as http:
        for path in ("/healthz", "/readyz"):
            for answer in (await http.get(path), await http.head(path)):
                assert answer.status_code == 200
        for path in ("/healthz", "/", "/api/status", "/nowhere"):
            answer = await http.get(path)
            assert HEADERS.items() <= {k.title(): v for k, v in answer.headers.items()}.items()


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", KEY, f"Basic {KEY}", f"Bearer {KEY}x"])
async def test_only_the_key_opens(site: str, given: str) -> None:
    """Nothing but the key, as a bearer, is the key."""
    async with httpx2.AsyncClient(base_url=site, trust_env=False) as http:
        answer = await http.get("/api/status", headers={"Authorization": given})
        assert (answer.status_code, answer.json()["code"]) == (401, "signed_out")
        assert (await http.get("/api/status", headers={"Authorization": f"bearer {KEY}"})).status_code == 200


async def test_a_browser_signs_in_and_stays_so(site: str) -> None:
    """The form gives a session that a script cannot read; a wrong key gives none."""
    async with httpx2.AsyncClient(base_url=site, trust_env=False, follow_redirects=True) as http:
        assert "Operator's key" in (await http.get("/")).text
        assert (await http.post("/sign-in", data={"key": "wrong"})).status_code == 401
        assert (await http.get("/")).status_code == 401
        assert "worker" in (await http.post("/sign-in", data={"key": f" {KEY} "})).text
        assert (await http.get("/api/status")).status_code == 200
        cookie = next(iter(http.cookies.jar))
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert KEY not in str(cookie.value)


async def test_what_is_too_large_or_torn_is_turned_away(site: str, caplog: pytest.LogCaptureFixture) -> None:
    """A huge form is refused as it comes, and a client that leaves is no error of ours."""
    async with httpx2.AsyncClient(base_url=site, trust_env=False) as http:
        assert (await http.post("/sign-in", content=b"key=" + b"x" * MOST_FORM)).status_code == 413
    host, port = site.removeprefix("http://").split(":")
    for torn in (
        b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nkey=",
        b"POST /sign-in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x00\xff garbage\r\n\r\n",
    ):
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(torn)
    assert await _answers(site)
    assert "Traceback" not in caplog.text
    assert KEY not in caplog.text


async def test_a_database_that_is_away_is_said(
    site: str, database: Database, server_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not ready, a sentence, no traceback; and ready again when it is back."""
    name = database.url.partition("?")[0].rpartition("/")[2]
    admin = await asyncpg.connect(server_url)
    async with httpx2.AsyncClient(base_url=site, trust_env=False, headers={"Authorization": f"Bearer {KEY}"}) as http:
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        for path in ("/readyz", "/api/status", "/"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["code"]) == (503, "database.away")
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await admin.close()
        await until(lambda: _ready(http))
    assert "ASGI" not in caplog.text


async def _ready(http: httpx2.AsyncClient) -> bool:
    return (await http.get("/readyz")).status_code == 200
