"""The commands about content: each prints what it promises, as JSON too, and ends with an exit code one can trust."""

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from imprint.main import run
from imprint.problem import Exit
from tests.cli.test_commands import on_server
from tests.work.scene import JPEG, PNG, scene

__all__ = ["on_server"]


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = Exit.OK) -> Any:
    """Run a command with --json and give what it printed; nothing else may be on either stream."""
    assert run([*arguments, "--json"]) == code
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def work(url: str, home: Path) -> None:
    """Do the jobs that wait, as a worker would."""

    async def do() -> None:
        async with scene(url, home) as at:
            for job in await at.jobs():
                await at.derive(UUID(job))
            await at.forget_jobs()

    asyncio.run(do())


@pytest.fixture
def picture(on_server: Path) -> Path:
    """Give a file to add."""
    path = on_server / "Lighthouse [dusk].jpg"
    path.write_bytes(JPEG)
    return path


def test_from_a_file_to_its_variants_and_back(
    picture: Path, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Added, listed, shown, told of, gotten, archived, deleted, restored."""
    (added,) = told(capsys, "content", "add", str(picture))
    assert (added["status"], added["size"], added["contentType"]) == ("uploaded", len(JPEG), "image/jpeg")
    which = added["fileId"]
    assert told(capsys, "content", "list")["counts"] == {"uploaded": 1}
    work(database_url, tmp_path / "home")
    (listed,) = told(capsys, "content", "list", "--status", "processed")["contents"]
    assert (listed["id"], listed["name"], listed["width"]) == (which, picture.name, 400)
    shown = told(capsys, "content", "show", which[:8])
    assert sorted(each["variant"] for each in shown["variants"]) == ["full", "preview", "thumbnail"]
    assert [move["to"] for move in shown["moves"]] == ["processing", "archived"]
    assert len(told(capsys, "content", "history", which)) == 25
    out = tmp_path / "out.jpg"
    assert told(capsys, "content", "get", which, "--to", str(out))["size"] == len(JPEG)
    assert out.read_bytes() == JPEG
    assert run(["content", "get", which, "--to", str(out)]) == Exit.FAILED
    assert "--force" in capsys.readouterr().err
    told(capsys, "content", "get", which, "--to", str(out), "--force", "--variant", "thumbnail")
    assert out.read_bytes()[8:12] == b"WEBP"
    assert told(capsys, "content", "archive", which)["status"] == "archived"
    assert told(capsys, "content", "delete", which)["deletedAt"]
    assert told(capsys, "content", "list") == {"contents": [], "counts": {}}
    assert told(capsys, "content", "restore", which)["deletedAt"] is None
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_the_same_for_people(
    picture: Path, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences and tables; a name in square brackets is not taken for markup; no bar where there is no terminal."""
    assert run(["content", "add", str(picture), str(tmp_path / "none.png")]) == Exit.FAILED
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "verified" in printed.out
    assert "none.png cannot be read" in printed.out
    assert "imprint up" in printed.out
    work(database_url, tmp_path / "home")
    assert run(["content", "list"]) == Exit.OK
    line = next(line for line in capsys.readouterr().out.splitlines() if "dusk" in line)
    assert "Lighthouse [dusk].jpg" in line
    which = line.split()[0]
    for command, sentence in (
        (["show", which], "thumbnail"),
        (["history", which], "create"),
        (["get", which, "--to", str(tmp_path / "x.jpg")], "Wrote"),
        (["retry-failed"], "0 of 0"),
        (["delete", which], "kept until"),
        (["show", which], "deleted"),
        (["restore", which], "is back"),
        (["archive", which], "Archived"),
    ):
        assert run(["content", *command]) == Exit.OK, command
        assert sentence in capsys.readouterr().out


def test_some_files_are_added_and_some_are_not(on_server: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One bad file does not stop the others; the exit code says that something was left out."""
    good, bad, empty = on_server / "good.png", on_server / "bad.png", on_server / "empty.png"
    good.write_bytes(PNG)
    bad.write_bytes(b"<html><script>alert(1)</script>")
    empty.write_bytes(b"")
    added = told(capsys, "content", "add", str(bad), str(good), str(empty), code=Exit.FAILED)
    assert [each.get("code") for each in added] == ["upload.type_not_allowed", None, "upload.empty"]
    assert "text/html" in added[0]["error"]


def test_what_failed_is_tried_again(
    on_server: Path, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listed with its reason, and retried, all or by name."""
    half = on_server / "half.jpg"
    half.write_bytes(JPEG[: len(JPEG) // 2])
    (added,) = told(capsys, "content", "add", str(half))
    work(database_url, tmp_path / "home")
    (listed,) = told(capsys, "content", "list", "--status", "failed")["contents"]
    assert listed["errorCode"] == "image.truncated"
    (outcome,) = told(capsys, "content", "retry-failed")
    assert outcome["done"] is True
    (outcome,) = told(capsys, "content", "retry-failed", added["fileId"])
    assert (outcome["done"], outcome["code"]) == (False, "content.no_such_move")
    assert run(["content", "delete", added["fileId"]]) == Exit.FAILED
    assert "or force it" in capsys.readouterr().err
    assert told(capsys, "content", "delete", added["fileId"], "--force")["deletedAt"]


def test_backfill(picture: Path, database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to do; damage found by a dry run, repaired by a real one, gone in the third."""
    told(capsys, "content", "add", str(picture))
    work(database_url, tmp_path / "home")
    report = told(capsys, "backfill")
    assert (report["contents"], report["objects"], report["found"]) == (1, 4, 0)
    shown = told(capsys, "content", "show", report_id(capsys))
    key = next(each["key"] for each in shown["objects"] if each["variant"] == "full")
    (tmp_path / "home" / "blobs" / "objects" / key).write_bytes(b"gone")
    report = told(capsys, "backfill", "--dry-run", code=Exit.ATTENTION)
    assert [(each["variant"], each["code"]) for each in report["findings"]] == [("full", "blob.wrong_size")]
    assert run(["backfill", "--fix-status"]) == Exit.OK
    printed = capsys.readouterr()
    assert "made again" in printed.out
    assert printed.err == ""
    work(database_url, tmp_path / "home")
    assert run(["backfill"]) == Exit.OK
    assert "nothing to do" in capsys.readouterr().out


def report_id(capsys: pytest.CaptureFixture[str]) -> str:
    """Give the id of the one content there is."""
    (listed,) = told(capsys, "content", "list")["contents"]
    return str(listed["id"])


@pytest.mark.usefixtures("on_server")
@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["content", "show", "abcd1234"], Exit.FAILED, "There is no such content"),
        (["content", "list", "--status", "active"], Exit.FAILED, "Content is never active"),
        (["content", "get", "abcd1234"], Exit.FAILED, "There is no such content"),
        (["content", "add"], Exit.USAGE, "Missing argument"),
        (["backfill", "--fix"], Exit.USAGE, "--fix"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], code: Exit, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, in one line."""
    assert run(arguments) == code
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.strip().splitlines())) == ("", 1)
    assert sentence in printed.err


def test_a_store_that_is_not_set_up_is_one_sentence(
    picture: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says which setting is missing."""
    monkeypatch.setenv("IMPRINT_BLOB_STORE", "s3")
    assert run(["content", "add", str(picture)]) == Exit.SETTINGS
    assert "IMPRINT_S3_BUCKET" in capsys.readouterr().err
