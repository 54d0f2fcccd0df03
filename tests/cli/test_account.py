"""Accounts and keys on the command line; a secret that is given is never printed."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from imprint.main import run
from imprint.problem import Exit
from imprint.sandbox.deviantart_tokens import CLIENT_ID, CLIENT_SECRET
from imprint.sandbox.server import sandbox

Captured = pytest.CaptureFixture[str]
CANARY = "whsec_Y2FuYXJ5LW9mLXRoZS12YXVsdC1jYW5hcnktb2Y="


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
    assert CANARY not in printed.out + printed.err
    return json.loads(printed.out if code in {Exit.OK, Exit.ATTENTION} else printed.err)


def said(capsys: Captured, *arguments: str, code: int = Exit.OK) -> str:
    """Run a command and give what it printed for a person."""
    assert run(list(arguments)) == code
    printed = capsys.readouterr()
    assert CANARY not in printed.out + printed.err
    return printed.out + printed.err


@contextmanager
def served() -> Iterator[str]:
    """Run a sandbox in a thread of its own, since a command has a loop of its own."""
    loop, ready, urls = asyncio.new_event_loop(), threading.Event(), list[str]()
    end = asyncio.Event()

    async def serve() -> None:
        async with sandbox() as running:
            urls.append(running.base_url("deviantart"))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(10)
        loop.close()


def test_the_life_of_an_account(home: Path, capsys: Captured) -> None:
    """Add with a secret from a file, list, default, disable, enable, reconnect, remove."""
    secret = home / "secret"
    secret.write_text(CANARY + "\n")
    answers = ("--set", "url=https://example.org/", "--set", f"secret=@{secret}")
    made = told(capsys, "account", "add", "webhook", "--name", "hook", *answers)
    assert (made["label"], made["status"], made["isDefault"]) == ("hook", "connected", True)
    folder = home / "gallery"
    folder.mkdir()
    assert "gallery is connected." in said(
        capsys, "account", "add", "folder", "--name", "gallery", "--set", f"folder={folder}"
    )
    assert [each["label"] for each in told(capsys, "account", "list")] == ["gallery", "hook"]
    assert told(capsys, "account", "default", "gallery")["isDefault"] is True
    assert "disabled" in said(capsys, "account", "disable", "hook")
    assert "disabled" in said(capsys, "account", "list")
    assert told(capsys, "account", "enable", made["id"][:8])["status"] == "connected"
    assert told(capsys, "account", "reconnect", "hook", *answers)["id"] == made["id"]
    assert told(capsys, "account", "remove", "hook")["removed"] is True
    assert told(capsys, "account", "disable", "hook", code=Exit.FAILED)["code"] == "account.missing"
    assert "gallery is removed." in said(capsys, "account", "remove", "gallery")
    assert "imprint account add" in said(capsys, "account", "list")


def test_through_a_browser(capsys: Captured) -> None:
    """The address is printed, and the one that was come back to is taken by another command."""
    with served() as url:
        answers = [f"client_id={CLIENT_ID}", f"client_secret={CLIENT_SECRET}", f"base_url={url}"]
        options = [part for answer in answers for part in ("--set", answer)]
        begun = told(capsys, "account", "add", "deviantart", "--name", "da", *options)
        assert set(begun) == {"url", "expiresAt"}
        back = httpx2.get(f"{begun['url']}&as=painter", follow_redirects=False).headers["location"]
        assert back.startswith("http://127.0.0.1:7600/accounts/return?")
        account = told(capsys, "account", "finish", back)
        assert (account["label"], account["name"]) == ("da", "painter")
        text = said(capsys, "account", "reconnect", "da", *options)
        assert "imprint account finish" in text
        assert CLIENT_SECRET not in text
        assert told(capsys, "account", "finish", back, code=Exit.FAILED)["code"] == "sign_in.not_begun"


def test_keys_rotate(home: Path, capsys: Captured) -> None:
    """Old keys stay unless they shall go; what cannot be opened is worth a look."""
    folder = home / "gallery"
    folder.mkdir()
    told(capsys, "account", "add", "folder", "--set", f"folder={folder}")
    assert told(capsys, "keys", "rotate") == {"resealed": 1, "unopenable": 0, "keys": 2}
    assert "1 keys are kept" in said(capsys, "keys", "rotate", "--forget-old")
    (home / "home" / "credential-keys").unlink()
    assert told(capsys, "keys", "rotate", code=Exit.ATTENTION)["unopenable"] == 1
    assert any(each["subject"] == "keys" for each in told(capsys, "doctor", code=Exit.ATTENTION))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["account", "add", "myspace"], "account.no_platform"),
        (["account", "add", "webhook", "--set", "url"], "account.bad_answer"),
        (["account", "add", "webhook", "--set", "url=@/nowhere"], "account.unreadable_answer"),
        (["account", "add", "webhook", "--set", "url=https://example.org"], "account.no_answer"),
        (["account", "remove", "nothing"], "account.missing"),
        (["account", "finish", "nonsense"], "sign_in.not_begun"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], code: str, capsys: Captured) -> None:
    """With a code that stays the same."""
    assert told(capsys, *arguments, code=Exit.FAILED)["code"] == code
