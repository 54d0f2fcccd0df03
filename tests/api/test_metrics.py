"""Metrics over HTTP: for this machine itself, and for who looks after it."""

from pathlib import Path

from imprint.store.db import Database
from tests.api.visitor import Town, town


async def test_this_machine_may_ask_without_a_key(at: Town) -> None:
    """In the format of Prometheus; not for whom a proxy asks."""
    anybody = await at.visitor()
    answer = await anybody.call("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "imprint_queue_depth" in answer.text
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        assert await anybody.refused("GET", "/metrics", None, **{name: "203.0.113.5"}) == (401, "signed_out")


async def test_a_name_that_leads_here_is_not_this_machine(at: Town) -> None:
    """A page of somebody else whose name leads here is refused; localhost and loopback addresses are not."""
    anybody = await at.visitor()
    for host in ("rebound.example:8400", "127.0.0.1.rebound.example", "localhost.example", "[::1", "192.0.2.1", ""):
        assert await anybody.refused("GET", "/metrics", None, Host=host) == (401, "signed_out"), host
    for host in ("localhost:8400", "LOCALHOST", "127.0.0.2", "[::1]:8400"):
        assert (await anybody.call("GET", "/metrics", None, Host=host)).status_code == 200, host


async def test_behind_an_address_of_its_own_it_takes_a_key(database: Database, database_url: str, home: Path) -> None:
    """With system:read, which only an administrator can give."""
    async with town(database, database_url, home, IMPRINT_PUBLIC_URL="https://art.example") as at:
        ada = await at.first()
        assert await (await at.visitor()).refused("GET", "/metrics") == (401, "signed_out")
        other = await at.program(ada, "posts:read")
        assert await other.refused("GET", "/metrics") == (403, "scope.lacking")
        allowed = await at.program(ada, "system:read")
        assert (await allowed.call("GET", "/metrics")).status_code == 200
