"""An account of the sandbox by one request."""

from pathlib import Path

from imprint.sandbox.standing import Standing
from imprint.store.db import Database
from tests.api.visitor import Town, town


async def test_a_sandbox_account_is_one_request(database: Database, database_url: str, home: Path) -> None:
    """Nobody registers anywhere; asked again, by whoever clicks twice, it is the same account."""
    standing = Standing(home, 0)
    async with town(database, database_url, home, sandbox=standing) as at:
        ada = await at.first()
        bob = await at.invited(ada, "bob")
        made = await ada.post("/api/sandbox-account", None, 201)
        assert (made["account"]["label"], made["account"]["status"]) == ("Sandbox", "connected")
        assert made["account"]["isDefault"]
        assert (await ada.post("/api/sandbox-account", None, 201))["account"]["id"] == made["account"]["id"]
        assert (await bob.post("/api/sandbox-account", None, 201))["account"]["id"] != made["account"]["id"]
    await standing.close()


async def test_an_imprint_without_a_sandbox_says_so(at: Town) -> None:
    """A server can run without one."""
    ada = await at.first()
    assert await ada.refused("POST", "/api/sandbox-account") == (409, "sandbox.none")
