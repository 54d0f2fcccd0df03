"""Webhooks on the command line: the secret is printed once, the address never."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from imprint.main import run
from imprint.problem import Exit
from tests.work.readers import Receiver, receiving

Captured = pytest.CaptureFixture[str]
CANARY = "C4nary-of-the-hook"


@pytest.fixture(autouse=True)
def receiver(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Give a home, a database and somebody to call."""
    with receiving() as running:
        monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
        monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
        yield running


def told(capsys: Captured, *arguments: str, code: int = Exit.OK) -> Any:
    """Run a command with --json and give what it printed."""
    assert run(["webhook", *arguments, "--json"]) == code
    printed = capsys.readouterr()
    assert CANARY not in printed.out + printed.err
    return json.loads(printed.out or printed.err)


def said(capsys: Captured, *arguments: str) -> str:
    """Run a command and give what it printed for a person."""
    assert run(["webhook", *arguments]) == Exit.OK
    printed = capsys.readouterr()
    assert CANARY not in printed.out + printed.err
    return printed.out


def test_a_webhook_lives_its_life(receiver: Receiver, capsys: Captured) -> None:
    """Add, list, try out, change, disable, enable, remove."""
    address = f"http://127.0.0.1:{receiver.port}/{CANARY}"
    assert "There is no webhook" in said(capsys, "list")
    made = told(capsys, "add", address, "--name", "site", "--event", "failed")
    assert (made["label"], made["events"], made["secret"][:6]) == ("site", ["failed"], "whsec_")
    assert "shown this once: whsec_" in said(capsys, "add", address, "--name", "other")
    listed = told(capsys, "list")
    assert [each["label"] for each in listed] == ["other", "site"]
    assert made["secret"] not in json.dumps(listed)
    assert "site has taken it." in said(capsys, "test", "site")
    assert (receiver.heard[0]["type"], "webhook-signature" in receiver.headers[0]) == ("test", True)
    assert told(capsys, "events", "site", "published", "chapter")["events"] == ["published", "chapter"]
    assert told(capsys, "disable", made["id"])["disabled"] is True
    assert "site is called again." in said(capsys, "enable", "site")
    turned = told(capsys, "rotate", "site")
    assert (turned["secret"] != made["secret"], turned["secret"][:6]) == (True, "whsec_")
    assert turned["oldUntil"] > made["createdAt"]
    assert "Its new secret, shown this once: whsec_" in said(capsys, "rotate", "site")
    receiver.status = 410
    assert told(capsys, "test", "site", code=Exit.FAILED)["code"] == "webhook.gone"
    assert "disabled" in said(capsys, "list")
    assert told(capsys, "remove", "site")["removed"] is True


def test_what_is_wrong_is_one_sentence(receiver: Receiver, capsys: Captured) -> None:
    """With a code that stays the same, and without the address."""
    for arguments, code in (
        (["add", f"ftp://{CANARY}"], "webhook.bad_address"),
        (["add", f"http://127.0.0.1:{receiver.port}/{CANARY}", "--event", "nothing"], "webhook.bad_events"),
        (["remove", "nothing"], "webhook.missing"),
    ):
        assert told(capsys, *arguments, code=Exit.FAILED)["code"] == code
