"""People and their keys on the command line; what is secret is printed once, and only what was asked for."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest

from imprint.main import run
from imprint.problem import Exit
from imprint.store.db import open_database
from imprint.work import invitation, person, session

Captured = pytest.CaptureFixture[str]
PASSWORD = "correct horse battery staple"  # noqa: S105 - of people who live as long as a test


@pytest.fixture(autouse=True)
def home(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home and a database."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    return tmp_path


def told(capsys: Captured, *arguments: str, code: int = Exit.OK) -> Any:
    """Run a command with --json and give what it printed."""
    assert run([*arguments, "--json"]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out if code == Exit.OK else printed.err)


def first(url: str, code: str) -> None:
    """Make the first account, as a browser does."""

    async def make() -> None:
        async with open_database(url) as database:
            await person.first(database, code, "ada", PASSWORD)

    asyncio.run(make())


def test_from_the_code_to_people_and_back(capsys: Captured, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A code for the first, invitations for others; disabled, enabled, and given a new password."""
    assert told(capsys, "person", "list") == []
    assert told(capsys, "person", "invite", code=Exit.FAILED)["code"] == "first.missing"
    old, new = told(capsys, "code")["code"], told(capsys, "code")["code"]
    with pytest.raises(Exception, match="not the code"):
        first(database_url, old)
    first(database_url, new)
    assert told(capsys, "code", code=Exit.FAILED)["code"] == "first.done"
    made = told(capsys, "person", "invite", "--role", "reader", "--for", "Eve")

    async def come_in() -> None:
        async with open_database(database_url) as database:
            await invitation.accept(database, made["code"], "eve", PASSWORD)
            await session.sign_in(database, "eve", "another good password", address="127.0.0.1")

    with pytest.raises(Exception, match="do not belong together"):
        asyncio.run(come_in())
    assert [(each["name"], each["looksAt"]) for each in told(capsys, "person", "list")] == [
        ("ada", None),
        ("eve", "operator"),
    ]
    assert told(capsys, "person", "disable", "EVE")["disabledAt"] is not None
    assert told(capsys, "person", "enable", "eve")["disabledAt"] is None
    assert told(capsys, "person", "disable", "ada", code=Exit.FAILED)["code"] == "person.last_administrator"
    assert told(capsys, "person", "disable", "nobody", code=Exit.FAILED)["code"] == "person.missing"
    monkeypatch.setattr("sys.stdin", io.StringIO("another good password\n"))
    assert run(["person", "password", "eve"]) == Exit.OK
    assert "another" not in capsys.readouterr().out

    async def with_the_new_one() -> None:
        async with open_database(database_url) as database:
            await session.sign_in(database, "eve", "another good password", address="127.0.0.1")

    asyncio.run(with_the_new_one())
    assert run(["person", "list"]) == Exit.OK
    assert "reader" in capsys.readouterr().out


def test_keys_are_made_listed_and_revoked(capsys: Captured, database_url: str) -> None:
    """The secret is printed once and never listed; revoked, it is so at once."""
    first(database_url, told(capsys, "code")["code"])
    made = told(capsys, "api-key", "add", "my script", "--scope", "posts:write")
    secret = made["secret"]
    assert (made["scopes"], secret.startswith(made["prefix"])) == (["posts:write"], True)
    assert told(capsys, "api-key", "add", "x", "--scope", "x", code=Exit.FAILED)["code"] == "scope.unknown"
    assert run(["api-key", "list"]) == Exit.OK
    printed = capsys.readouterr().out
    assert made["prefix"] in printed
    assert secret not in printed
    assert told(capsys, "api-key", "revoke", made["prefix"])["revoked"]
    assert told(capsys, "api-key", "revoke", made["id"], code=Exit.FAILED)["code"] == "api_key.missing"
    assert told(capsys, "api-key", "revoke", "zzzz", code=Exit.FAILED)["code"] == "api_key.missing"


def test_the_audit_is_read_and_checked(capsys: Captured, database_url: str) -> None:
    """Lines are listed, an untouched audit is in order, and a touched one is exit code 7."""
    post = told(capsys, "post", "create", "--title", "A lighthouse")["id"]
    (line,) = told(capsys, "audit", "list", "--row", post)
    assert (line["move"], line["actor"]) == ("create", "operator")
    assert told(capsys, "audit", "verify")["findings"] == []

    async def touch() -> None:
        async with open_database(database_url) as database, database.connection() as connection:
            await connection.execute("ALTER TABLE audit DISABLE TRIGGER ALL; UPDATE audit SET actor = 'somebody else'")

    asyncio.run(touch())
    assert run(["audit", "verify"]) == Exit.ATTENTION
    assert post in capsys.readouterr().out
    assert run(["audit", "list"]) == Exit.OK
