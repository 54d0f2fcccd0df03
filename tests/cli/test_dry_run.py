"""The dry run on the command line."""

import shlex
from pathlib import Path

import pytest

from imprint.main import run
from imprint.problem import Exit
from tests.cli.test_account import Captured, told
from tests.cli.test_sandbox import started
from tests.work.scene import PNG


def test_a_dry_run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """Before and after it is planned, as text and as data; what does not fit ends with another exit code."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    picture = tmp_path / "harbour.png"
    picture.write_bytes(PNG)
    log = tmp_path / "log"
    with started("--log", str(log)) as signs:
        told(capsys, *shlex.split(signs["deviantart"])[1:])
        told(capsys, *shlex.split(signs["webhook"])[1:])
        before = log.read_text()
        post = told(capsys, "post", "create", "--title", "Harbour", "--tag", "sea", "--file", str(picture))["id"]
        told(capsys, "post", "ready", post)
        (alone,) = told(capsys, "dry-run", post)
        assert (alone["platform"], alone["publicationId"], len(alone["requests"])) == ("deviantart", None, 2)
        on = ("--account", "painter", "--account", "receiver")
        told(capsys, "post", "publish", post, *on)
        art, hook = told(capsys, "dry-run", post)
        assert art["requests"][1]["body"][0] == ["itemid", "(the item id that the upload gives)"]
        assert hook["requests"][0]["headers"]["webhook-id"] == hook["publicationId"]
        assert run(["dry-run", post[:8], "--account", "painter"]) == Exit.OK
        text = capsys.readouterr().out
        assert "POST " in text
        assert "harbour.png goes as it is." in text
        assert "Authorization: **********" in text
        assert "title = Harbour" in text
        assert text.endswith("Nothing was sent.\n")
        long = told(capsys, "post", "create", "--title", "x" * 99, "--file", str(picture))["id"]
        assert run(["dry-run", long]) == Exit.ATTENTION
        assert "It would not go out: The title has 99 characters" in capsys.readouterr().out
        assert told(capsys, "dry-run", "ffff", code=Exit.FAILED)["code"] == "post.missing"
        assert log.read_text() == before
