"""The door tells health to everybody, loads the rest when somebody comes, and rides out those who misbehave."""

import socket
import subprocess
import sys

import asyncpg
import httpx2
import pytest

from tests.api.visitor import Town, answers
from tests.waiting import until

LIGHT = """
import sys
import imprint.api.server
import imprint.main
import imprint.sandbox.standing
heavy = {"fastapi", "jinja2", "argon2", "obstore", "httpx2", "pyvips"} & set(sys.modules)
print(sorted(heavy))
"""


async def test_health_is_for_everybody(at: Town) -> None:
    """Monitors may ask with GET and HEAD."""
    async with httpx2.AsyncClient(base_url=at.url, trust_env=False) as http:
        for path in ("/healthz", "/readyz"):
            for answer in (await http.get(path), await http.head(path)):
                assert answer.status_code == 200
        assert (await http.post("/healthz")).status_code == 404


def test_an_idle_server_carries_no_framework() -> None:
    """What only people need is not loaded before the first of them comes."""
    told = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"


async def test_what_is_torn_is_turned_away(at: Town, caplog: pytest.LogCaptureFixture) -> None:
    """A client that leaves in the middle, or speaks another language, is no error of ours."""
    host, port = at.url.removeprefix("http://").split(":")
    for torn in (
        b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nname=",
        b"POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        b"POST /sign-in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"\x00\xff garbage\r\n\r\n",
    ):
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(torn)
    assert await answers(at.url)
    assert "Traceback" not in caplog.text


async def test_a_database_that_is_away_is_said(at: Town, server_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Not ready, a sentence, no traceback; and ready again when it is back."""
    ada = await at.first()
    name = at.database.url.partition("?")[0].rpartition("/")[2]
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
    for path in ("/readyz", "/api/status", "/", "/api/posts"):
        assert await ada.refused("GET", path) == (503, "database.away")
    given = {"name": "ada", "password": "x"}
    assert await ada.refused("POST", "/api/session", given) == (503, "database.away")
    await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    await admin.close()

    async def ready() -> bool:
        return (await ada.http.get("/readyz")).status_code == 200

    await until(ready)
    assert (await ada.get("/api/status"))["unknown"] == 0
    assert "ASGI" not in caplog.text
