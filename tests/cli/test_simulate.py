"""Simulating and other first steps on the command line: what a newcomer reads, names and is asked."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import asyncpg
import pytest

from imprint.cli import consent
from imprint.main import run
from imprint.problem import Exit
from tests.work.scene import PNG

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def desk(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home, a database, a folder to publish to and a picture."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IMPRINT_ZONE", "Europe/Berlin")
    (tmp_path / "a.png").write_bytes(PNG)
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


def account(capsys: Captured, desk: Path, name: str) -> None:
    """Connect a folder."""
    (desk / name).mkdir()
    told(capsys, "account", "add", "folder", "--name", name, "--set", f"folder={desk / name}")


def draft(capsys: Captured, desk: Path, title: str = "A lighthouse") -> str:
    """Write a post that is ready."""
    made = told(capsys, "post", "create", "--title", title, "--file", str(desk / "a.png"))
    told(capsys, "post", "ready", made["id"])
    return str(made["id"])


def soon(hours: float) -> str:
    """Give a moment as a person writes it, on the wall in Berlin."""
    return (datetime.now(UTC) + timedelta(hours=hours)).astimezone(ZoneInfo("Europe/Berlin")).strftime("%Y-%m-%dT%H:%M")


def test_when_everything_goes_out(desk: Path, capsys: Captured) -> None:
    """In order, with why, per account and all together; only one account, only until a time, only so many."""
    account(capsys, desk, "one")
    account(capsys, desk, "two")
    assert "Nothing is planned." in said(capsys, "simulate")
    first, second, third = (draft(capsys, desk, title) for title in ("Early", "Late", "Turn"))
    told(capsys, "post", "schedule", second, "--at", soon(50), "--account", "one")
    told(capsys, "post", "schedule", first, "--at", soon(30), "--account", "one", "--account", "two")
    told(capsys, "batch", "create", third, "--every", "1h30m", "--account", "one", "--account", "two", "--at", soon(70))
    text = said(capsys, "simulate")
    assert text.index("Early") < text.index("Late") < text.index("Turn")
    assert "its time" in text
    assert "about 20" in text
    assert "its turn in the batch" in text
    assert "5 go out, the last one on" in text
    assert "Every other time is an estimate" in text
    assert "No worker is alive" in text
    data = told(capsys, "simulate")
    assert [each["title"] for each in data["publications"]] == ["Early", "Early", "Late", "Turn", "Turn"]
    assert [each["estimated"] for each in data["publications"]] == [False, False, False, True, True]
    assert data["publications"][2]["expectedAt"] == data["publications"][2]["actualPublishAt"]
    assert {each["account"]: each["publications"] for each in data["accounts"]} == {"one": 3, "two": 2}
    assert data["lastAt"] == data["publications"][-1]["expectedAt"]
    assert len(told(capsys, "simulate", "--account", "two")["publications"]) == 2
    assert told(capsys, "simulate", "--until", soon(40))["goingOut"] == 2
    limited = told(capsys, "simulate", "--limit", "1")
    assert (len(limited["publications"]), limited["goingOut"]) == (1, 5)
    assert "And 4 more" in said(capsys, "simulate", "--limit", "1")
    assert "That time is over" in said(capsys, "simulate", "--until", "2001-01-01T00:00", code=Exit.FAILED)


def test_what_does_not_go_by_itself_comes_with_a_command(desk: Path, capsys: Captured) -> None:
    """A disabled account and a paused batch."""
    account(capsys, desk, "one")
    account(capsys, desk, "two")
    told(capsys, "post", "schedule", draft(capsys, desk), "--at", soon(30), "--account", "one")
    batch = told(capsys, "batch", "create", draft(capsys, desk), "--every", "5m", "--account", "two")["id"]
    told(capsys, "account", "disable", "one")
    told(capsys, "batch", "pause", batch)
    text = said(capsys, "simulate")
    assert "What does not go out by itself" in text
    assert "→ imprint account enable one" in text
    assert f"→ imprint batch resume {batch}" in text
    assert "its batch is paused" in text


def test_a_newcomer_is_told_what_the_states_mean_and_what_to_do_next(desk: Path, capsys: Captured) -> None:
    """From writing to planning: each answer leads to the next command; chance is not hidden in the help."""
    account(capsys, desk, "one")
    written = said(capsys, "post", "create", "--title", "A tower", "--file", str(desk / "a.png"))
    post = written.split()[1].rstrip(",")
    assert f"imprint post ready {post[:8]}" in written
    text = said(capsys, "explain", post[:8])
    assert "“A tower” is in review: it is not declared ready yet." in text
    assert f"→ imprint post ready {post}" in text
    told(capsys, "post", "ready", post)
    text = said(capsys, "explain", post[:8])
    assert "“A tower” is a draft: it is ready, but planned nowhere." in text
    assert "The post is a draft now" in text
    assert f"→ imprint post publish {post}" in text
    assert "a draft: it is ready" in said(capsys, "post", "show", post[:8])
    planned = said(capsys, "post", "schedule", post, "--at", soon(30))
    assert "up to 5 min more, by chance; IMPRINT_SCHEDULE_JITTER_SECONDS=0 ends that" in planned
    publication = told(capsys, "post", "show", post)["publications"][0]["id"]
    assert publication[:8] in said(capsys, "post", "show", post)
    assert f"publication {publication[:8]}" in said(capsys, "explain", publication[:8])


def test_several_that_could_be_meant_are_named(capsys: Captured, database_url: str) -> None:
    """Two posts whose ids begin alike: both are shown with their titles, and nothing is done."""

    async def alike() -> None:
        connection = await asyncpg.connect(database_url)
        for n in (1, 2):
            one = UUID(f"abcd1234-000{n}-4000-8000-000000000000")
            await connection.execute("INSERT INTO post (id, title) VALUES ($1, $2)", one, f"Tower {n}")
        await connection.close()

    asyncio.run(alike())
    refused = told_problem(capsys, "post", "show", "abcd")
    assert refused["code"] == "post.ambiguous"
    assert "abcd1234-0001 (Tower 1), abcd1234-0002 (Tower 2)" in refused["error"]
    assert "Tower 2" in said(capsys, "post", "show", "abcd12340002")


def told_problem(capsys: Captured, *arguments: str) -> Any:
    """Run a command that does not work, and give its problem."""
    assert run([*arguments, "--json"]) == Exit.FAILED
    return json.loads(capsys.readouterr().err)


def test_a_person_is_asked_before_something_is_deleted(
    desk: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a terminal, unless --yes; no is the default; a script is never asked."""
    account(capsys, desk, "one")
    account(capsys, desk, "two")
    post, other = draft(capsys, desk), draft(capsys, desk)
    asked: list[str] = []

    def answer(question: str, *, default: bool) -> bool:
        asked.append(question)
        return default

    monkeypatch.setattr("typer.confirm", answer)
    told(capsys, "post", "delete", other)
    assert asked == []
    monkeypatch.setattr(consent, "at_terminal", lambda: True)
    assert "Nothing was changed." in said(capsys, "post", "delete", post, code=Exit.FAILED)
    assert "Nothing was changed." in said(capsys, "account", "remove", "one", code=Exit.FAILED)
    assert asked == [f"Delete {post}, and cancel what waits of it?", "Remove one, and forget its sign-in?"]
    assert "deleted." in said(capsys, "post", "delete", post, "--yes")
    assert "is removed." in said(capsys, "account", "remove", "two", "-y")
    assert len(asked) == 2
