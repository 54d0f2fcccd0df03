"""Notices, targets and rules on the command line; an address that is given is never printed."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from imprint.main import run
from imprint.problem import Exit
from imprint.store.db import Database, open_database
from tests.work.posts import Author
from tests.work.readers import Receiver, receiving
from tests.work.serials import OWNER, add_series, add_source, follow, take_in

Captured = pytest.CaptureFixture[str]
CANARY = "C4nary-of-the-vault"


@pytest.fixture(autouse=True)
def receiver(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Give a home, a database and somebody to tell."""
    with receiving() as running:
        monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
        monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("IMPRINT_ALLOWED_HOSTS", f"127.0.0.1:{running.port}")
        yield running


def told(capsys: Captured, *arguments: str, code: int = Exit.OK) -> Any:
    """Run a command with --json and give what it printed."""
    assert run([*arguments, "--json"]) == code
    printed = capsys.readouterr()
    assert CANARY not in printed.out + printed.err
    return json.loads(printed.out or printed.err)


def said(capsys: Captured, *arguments: str) -> str:
    """Run a command and give what it printed for a person."""
    assert run(list(arguments)) == Exit.OK
    printed = capsys.readouterr()
    assert CANARY not in printed.out + printed.err
    return printed.out


def meanwhile(url: str, act: Callable[[Database], Awaitable[UUID]]) -> UUID:
    """Do something in the database while no command runs."""

    async def work() -> UUID:
        async with open_database(url) as database:
            return await act(database)

    return asyncio.run(work())


def test_targets(receiver: Receiver, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add from the line, a file or standard input; list, try out, change, remove."""
    address = f"{receiver.url}/{CANARY}"
    (tmp_path / "address").write_text(address + "\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(address + "\n"))
    assert "told nowhere" in said(capsys, "notice", "target", "list")
    assert told(capsys, "notice", "target", "add", f"@{tmp_path / 'address'}", "--name", "phone")["service"] == "JSON"
    assert "at json (JSON)" in said(capsys, "notice", "target", "add", address, "--digest", "daily")
    assert told(capsys, "notice", "target", "add", "-")["label"] == "json-2"
    assert "Sent a message to phone." in said(capsys, "notice", "target", "test", "phone")
    assert receiver.heard[0]["title"] == "Imprint"
    receiver.status = 500
    assert told(capsys, "notice", "target", "test", "phone", code=Exit.FAILED)["code"] == "notice.not_sent"
    assert told(capsys, "notice", "target", "digest", "phone", "hourly")["digest"] == "hourly"
    assert "muted" in said(capsys, "notice", "target", "mute", "json")
    listed = told(capsys, "notice", "target", "list")
    assert [(each["label"], each["digest"], each["muted"]) for each in listed] == [
        ("json", "daily", True),
        ("json-2", "off", False),
        ("phone", "hourly", False),
    ]
    assert told(capsys, "notice", "target", "unmute", "json")["muted"] is False
    assert "phone" in said(capsys, "notice", "target", "list")
    assert told(capsys, "notice", "target", "remove", listed[0]["id"])["removed"] is True
    assert "phone is removed." in said(capsys, "notice", "target", "remove", "phone")


WRONG = [
    (["notice", "target", "add", f"{CANARY}"], "notice.bad_target"),
    (["notice", "target", "add", "@/nowhere"], "notice.unreadable_address"),
    (["notice", "target", "remove", "nothing"], "notice.no_target"),
    (["notice", "read"], "notice.which"),
    (["notice", "read", "77"], "notice.missing"),
    (["rule", "remove", "nothing"], "rule.missing"),
    (["rule", "add", "nothing", "--delay", "soon"], "rule.bad_delay"),
    (["rule", "add", "nothing", "--body-file", "/nowhere"], "rule.unreadable_body"),
    (["rule", "add", "nothing", "--body-file", "/nowhere", "--body", "b"], "rule.two_bodies"),
    (["rule", "add", "nothing", "--account", "x"], "series.missing"),
]


def test_what_is_wrong_is_one_sentence(capsys: Captured) -> None:
    """With a code that stays the same."""
    for arguments, code in WRONG:
        assert told(capsys, *arguments, code=Exit.FAILED)["code"] == code


def test_notices(database_url: str, capsys: Captured) -> None:
    """What is new is listed and read."""
    assert "nothing new" in said(capsys, "notice", "list")

    async def news(database: Database) -> UUID:
        async with database.connection() as connection:
            series = await add_series(connection, "Sea")
            source = await add_source(connection, series)
            await follow(connection, series, OWNER)
        await take_in(database, series, source, ["Chapter 1", "Chapter 2"])
        return series

    meanwhile(database_url, news)
    listed = told(capsys, "notice", "list")
    assert {each["number"] for each in listed} == {"1", "2"}
    assert "Ch.2" in said(capsys, "notice", "list")
    assert told(capsys, "notice", "read", str(listed[0]["id"])) == {"read": [listed[0]["id"]]}
    assert len(told(capsys, "notice", "list", "--unread")) == 1
    assert "Marked 1 as read." in said(capsys, "notice", "read", "--all")


def test_rules(database_url: str, tmp_path: Path, capsys: Captured) -> None:
    """Made with a template, listed, turned off and on, removed; a wrong field is refused."""

    async def begin(database: Database) -> UUID:
        await Author(database, OWNER).account("gallery")
        async with database.connection() as connection:
            return await add_series(connection, "Sea")

    series = str(meanwhile(database_url, begin))
    (tmp_path / "body.md").write_text("Read {title} at {url}")
    options = ("--account", "gallery", "--delay", "2h", "--tag", "{series}")
    made = told(capsys, "rule", "add", series, "--body-file", str(tmp_path / "body.md"), *options)
    assert (made["title"], made["delaySeconds"], made["accounts"]) == ("{series} {number}", 7200, ["gallery"])
    assert made["body"] == "Read {title} at {url}"
    assert "becomes a post on gallery" in said(capsys, "rule", "add", "Sea", "--account", "gallery")
    bad = told(capsys, "rule", "add", series, "--account", "gallery", "--title", "{nope}", code=Exit.FAILED)
    assert bad["code"] == "rule.unknown_field"
    assert "disabled" in said(capsys, "rule", "disable", made["id"][:8])
    assert [each["enabled"] for each in told(capsys, "rule", "list")] == [False, True]
    assert "off" in said(capsys, "rule", "list")
    assert told(capsys, "rule", "enable", made["id"])["enabled"] is True
    assert told(capsys, "rule", "remove", made["id"])["removed"] is True
    assert len(told(capsys, "rule", "list")) == 1
