"""Posts on the command line: from a file on the disk to a schedule, one or many, as text and as JSON."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from imprint.main import run
from imprint.problem import Exit
from tests.work.scene import JPEG, PNG

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def desk(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home, a database, a folder to publish to and a picture."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IMPRINT_ZONE", "Europe/Berlin")
    (tmp_path / "gallery").mkdir()
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.jpg").write_bytes(JPEG)
    return tmp_path


def told(capsys: Captured, *arguments: str, code: int = Exit.OK) -> Any:
    """Run a command with --json and give what it printed."""
    assert run([*arguments, "--json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def said(capsys: Captured, *arguments: str, code: int = Exit.OK) -> str:
    """Run a command and give what it printed for a person."""
    assert run(list(arguments)) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


def account(capsys: Captured, desk: Path, name: str = "gallery") -> Any:
    """Connect a folder."""
    folder = desk / name
    folder.mkdir(exist_ok=True)
    return told(capsys, "account", "add", "folder", "--name", name, "--set", f"folder={folder}")


def draft(capsys: Captured, desk: Path) -> str:
    """Write a post that is ready."""
    made = told(capsys, "post", "create", "--title", "A lighthouse", "--file", str(desk / "a.png"))
    told(capsys, "post", "ready", made["id"])
    return str(made["id"])


def soon(hours: float = 30) -> str:
    """Give a moment as a person writes it, on the wall in Berlin."""
    from zoneinfo import ZoneInfo

    at = datetime.now(UTC) + timedelta(hours=hours)
    return at.astimezone(ZoneInfo("Europe/Berlin")).strftime("%Y-%m-%dT%H:%M")


def test_from_a_file_to_a_schedule_and_back(desk: Path, capsys: Captured) -> None:
    """Create, ready, schedule, reschedule, unschedule, delete; every time comes back in the zone it was given in."""
    account(capsys, desk)
    made = told(
        capsys, "post", "create", "--title", "A lighthouse", "--tag", "sea", "--file", str(desk / "a.png"),
        "--set", "isMature=true", "--set", "matureLevel=moderate", "--set", "categoryPath=paintings",
    )  # fmt: skip
    assert (made["status"], made["tags"], made["isMature"], made["zone"]) == ("review", ["sea"], True, "Europe/Berlin")
    assert made["files"][0]["confirmed"] is True
    assert "storageKey" not in json.dumps(made)
    post = made["id"]
    assert told(capsys, "post", "ready", post) == [{"id": post, "ok": True, "result": None}]
    at = soon()
    (outcome,) = told(capsys, "post", "schedule", post[:8], "--at", at)
    assert outcome["id"] == post
    shown = told(capsys, "post", "show", post)
    (publication,) = shown["publications"]
    assert publication["scheduledAt"].startswith(at)
    assert publication["scheduledAt"][-6:] in {"+01:00", "+02:00"}
    assert publication["zone"] == "Europe/Berlin"
    late = datetime.fromisoformat(publication["actualPublishAt"]) - datetime.fromisoformat(publication["scheduledAt"])
    assert late == timedelta(seconds=publication["jitterSeconds"])
    later = soon(60)
    told(capsys, "post", "reschedule", post, "--at", later)
    assert told(capsys, "post", "show", post)["publications"][0]["scheduledAt"].startswith(later)
    told(capsys, "post", "unschedule", post)
    assert told(capsys, "post", "show", post)["status"] == "draft"
    told(capsys, "post", "delete", post)
    assert told(capsys, "post", "list")["posts"] == []


def test_edit_files_and_copies(desk: Path, capsys: Captured) -> None:
    """Attach, arrange, describe, detach, edit, duplicate."""
    post = told(capsys, "post", "create", "--title", "One")["id"]
    shown = told(capsys, "post", "attach", post, str(desk / "a.png"), str(desk / "b.jpg"), "--alt", "A tower")
    assert [(file["name"], file["alt"]) for file in shown["files"]] == [("a.png", "A tower"), ("b.jpg", "A tower")]
    assert [file["name"] for file in told(capsys, "post", "arrange", post, "2", "1")["files"]] == ["b.jpg", "a.png"]
    assert told(capsys, "post", "describe", post, "1", "The sea")["files"][0]["alt"] == "The sea"
    assert [file["name"] for file in told(capsys, "post", "detach", post, "2")["files"]] == ["b.jpg"]
    body = desk / "body.txt"
    body.write_text("Once upon a time", encoding="utf-8")
    edited = told(capsys, "post", "edit", post, "--set", "kind=article", "--body-file", str(body), "--tag", "x")
    assert (edited["kind"], edited["body"], edited["tags"], edited["title"]) == (
        "article",
        "Once upon a time",
        ["x"],
        "One",
    )
    (copied,) = told(capsys, "post", "duplicate", post)
    assert told(capsys, "post", "show", copied["result"])["body"] == "Once upon a time"
    assert "in review" in said(capsys, "post", "create", "--title", "Two")


def test_publish_cancel_retry_for_people(desk: Path, capsys: Captured) -> None:
    """What a person reads is a sentence; the table names account, state and time."""
    account(capsys, desk)
    post = draft(capsys, desk)
    assert "goes out now." in said(capsys, "post", "publish", post)
    shown = said(capsys, "post", "show", post)
    assert "gallery" in shown
    assert "pending" in shown
    assert "cancelled." in said(capsys, "post", "cancel", post)
    assert "Nothing of this post has failed." in said(capsys, "post", "retry", post, code=Exit.FAILED)
    listed = said(capsys, "post", "list")
    assert "A lighthouse" in listed
    assert "1 draft" in listed
    assert "taken back." in said(capsys, "post", "reopen", post)


def test_accounts_with_times_of_their_own(desk: Path, capsys: Captured) -> None:
    """ACCOUNT=TIME beside the common time; one account can be taken out."""
    account(capsys, desk, "one")
    account(capsys, desk, "two")
    post, at, other = draft(capsys, desk), soon(), soon(50)
    told(capsys, "post", "schedule", post, "--at", at, "--account", "one", "--account", f"two={other}")
    times = {p["label"]: p["scheduledAt"][:16] for p in told(capsys, "post", "show", post)["publications"]}
    assert times == {"one": at, "two": other}
    told(capsys, "post", "unschedule", post, "--account", "two")
    states = {p["label"]: p["status"] for p in told(capsys, "post", "show", post)["publications"]}
    assert states == {"one": "pending", "two": "cancelled"}


def test_several_in_turn(desk: Path, capsys: Captured) -> None:
    """One every second day at the same time on the wall."""
    account(capsys, desk)
    posts = [draft(capsys, desk) for _ in range(3)]
    told(capsys, "post", "schedule", *posts, "--at", soon(), "--every", "day", "--interval", "2")
    times = [
        datetime.fromisoformat(told(capsys, "post", "show", post)["publications"][0]["scheduledAt"]) for post in posts
    ]
    assert [time.date() - times[0].date() for time in times] == [timedelta(days=n) for n in (0, 2, 4)]
    assert len({time.time() for time in times}) == 1


def test_many_are_reported_one_by_one(desk: Path, capsys: Captured) -> None:
    """Exit 1 when one of them failed; the others are done."""
    account(capsys, desk)
    good, nobody = draft(capsys, desk), str(uuid4())
    unready = told(capsys, "post", "create", "--title", "Not yet")["id"]
    outcomes = told(capsys, "post", "publish", good, unready, nobody, code=Exit.FAILED)
    assert [(each["ok"], each.get("code")) for each in outcomes] == [
        (True, None),
        (False, "post.not_schedulable"),
        (False, "post.missing"),
    ]
    assert told(capsys, "post", "show", good)["status"] == "scheduled"
    assert "There is no such post." in said(capsys, "post", "ready", unready, nobody, code=Exit.FAILED)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["show", "ffff0000"], "post.missing", "There is no such post."),
        (["create", "--set", "titel=x"], "post.invalid", "titel: is not a field of a post."),
        (["create", "--set", "title"], "post.invalid", "title: write FIELD=VALUE."),
        (["create", "--zone", "Mars/Olympus"], "schedule.no_zone", "There is no time zone"),
        (["schedule", "ffff0000", "--at", "tomorrow"], "schedule.bad_time", "'tomorrow' is not a time"),
        (["schedule", "ffff0000", "--every", "day"], "schedule.no_time", "Say with --at"),
        (["schedule", "ffff0000"], "post.missing", "There is no such post."),
        (["list", "--status", "done"], "post.no_such_state", "A post is never 'done'"),
        (["create", "--file", "missing.png"], "content.missing", "There is no such content."),
        (["create", "--body-file", "missing.txt"], "post.unreadable_body", "cannot be read"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], code: str, error: str, capsys: Captured) -> None:
    """With a code that stays the same."""
    assert run(["post", *arguments, "--json"]) == Exit.FAILED
    told_ = json.loads(capsys.readouterr().err)
    assert told_["code"] == code
    assert error in told_["error"]


def test_lead_and_horizon_on_the_command_line(desk: Path, capsys: Captured) -> None:
    """The sentence names the limit."""
    account(capsys, desk)
    post = draft(capsys, desk)
    assert "at least 1 hour ahead" in said(capsys, "post", "schedule", post, "--at", soon(0.2), code=Exit.FAILED)
    assert "at most 365 days" in said(capsys, "post", "schedule", post, "--at", soon(24 * 400), code=Exit.FAILED)
