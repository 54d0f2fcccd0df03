"""The sandbox on the command line: what it prints can be typed, and Ctrl-C ends it."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from imprint.main import run
from imprint.problem import Exit
from tests.cli.test_account import Captured, told

PROGRAM = [sys.executable, "-m", "imprint"]


@contextmanager
def started(*options: str) -> Iterator[dict[str, str]]:
    """Run a sandbox as people do, and end it with Ctrl-C."""
    child = subprocess.Popen(
        [*PROGRAM, "sandbox", "--port", "0", *options, "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            lines.append(child.stdout.readline())
            assert lines[-1], "it ended before it was ready"
        yield json.loads("".join(lines))
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == Exit.OK
    finally:
        child.kill()
        child.communicate()


def test_what_is_printed_can_be_typed(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Each account is connected by the one line that is printed for it, without a browser, and anew by --follow."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    log = tmp_path / "sandbox.log"
    with started("--log", str(log), "--seed", "7") as signs:
        for name in ("deviantart", "webhook"):
            program, *arguments = shlex.split(signs[name])
            assert program == "imprint"
            made = told(capsys, *arguments)
            assert (made["platform"], made["status"]) == (name, "connected")
        assert {each["label"]: each["name"] for each in told(capsys, "account", "list")} == {
            "painter": "painter",
            "receiver": "127.0.0.1",
        }
        options = shlex.split(signs["deviantart"])[6:]
        assert told(capsys, "account", "reconnect", "painter", *options)["status"] == "connected"
        asked = [part.replace("/~painter", "") for part in options]
        refused = told(capsys, "account", "reconnect", "painter", *asked, code=Exit.FAILED)
        assert refused["code"] == "sign_in.wants_a_person"
        assert httpx2.get(signs["gallery"], trust_env=False).status_code == 200
        gone = told(capsys, "account", "remove", "painter")
        assert (gone["revoked"], gone["trouble"]) == (True, None)
    assert '"/oauth2/revoke"' in log.read_text()
    assert told(capsys, "account", "remove", "receiver")["revoked"] is False


def test_an_account_whose_platform_is_gone_is_removed_all_the_same(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The person is told that the platform was not, and what to do."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    with started() as signs:
        told(capsys, *shlex.split(signs["deviantart"])[1:])
    assert run(["account", "remove", "painter"]) == Exit.OK
    text = capsys.readouterr().out
    assert "painter is removed." in text
    assert "take Imprint's access away" in text


def test_what_is_wrong_is_one_sentence(capsys: Captured) -> None:
    """A bad fault, and an address that is taken."""
    assert run(["sandbox", "--port", "0", "--fault", "explode"]) == Exit.FAILED
    assert "'explode' is not a fault" in capsys.readouterr().err
    with started() as signs:
        port = signs["url"].rpartition(":")[2]
        assert run(["sandbox", "--port", port]) == Exit.UNAVAILABLE
        assert "--port" in capsys.readouterr().err
