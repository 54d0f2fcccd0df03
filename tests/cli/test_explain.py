"""Explaining and resolving on the command line: a person reads why, and says what nobody else can tell."""

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

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
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "gallery").mkdir()
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


def due(capsys: Captured, desk: Path) -> tuple[str, str]:
    """Write a post that is due on a folder; give it and its publication."""
    told(capsys, "account", "add", "folder", "--name", "gallery", "--set", f"folder={desk / 'gallery'}")
    post = told(capsys, "post", "create", "--title", "A [red] lighthouse", "--file", str(desk / "a.png"))["id"]
    told(capsys, "post", "ready", post)
    ((outcome),) = told(capsys, "post", "publish", post, "--account", "gallery")
    return post, outcome["result"][0]["id"]


def make_unknown(url: str, publication: str) -> None:
    """Let a worker take it and never be heard of again after its request left."""

    async def raw() -> None:
        connection = await asyncpg.connect(url)
        try:
            for change in (
                "status = 'running', phase = 'uploading', lease_until = imprint_now()",
                "phase = 'publishing', intent_at = imprint_now()",
                "status = 'unknown', phase = NULL, lease_until = NULL, held_why = 'person', error_code = 'unknown'",
            ):
                await connection.execute(f"UPDATE publication SET {change} WHERE id = $1", UUID(publication))
        finally:
            await connection.close()

    asyncio.run(raw())


def test_why_it_has_not_gone_out_yet(desk: Path, capsys: Captured) -> None:
    """A post that is due where no worker runs: the story, the reason and the command that helps; and as data."""
    post, publication = due(capsys, desk)
    text = said(capsys, "explain", post[:8])
    assert "“A [red] lighthouse”" in text
    assert "times in Europe/Berlin" in text
    assert "On gallery (folder): pending" in text
    assert "It was planned: publish it now." in text
    assert "But no worker is alive." in text
    assert "→ imprint up" in text
    data = told(capsys, "explain", publication)
    assert data["post"]["id"] == post
    (only,) = data["publications"]
    assert (only["id"], only["status"], only["next"]["needsPerson"]) == (publication, "pending", True)
    assert only["next"]["at"][-6:] in {"+01:00", "+02:00"}
    assert [step["what"] for step in only["story"]] == ["create"]


def test_nothing_is_planned(desk: Path, capsys: Captured) -> None:
    """A post that nobody scheduled says so."""
    del desk
    post = told(capsys, "post", "create", "--title", "One")["id"]
    assert "Next: Nothing by itself: it is in review" in said(capsys, "explain", post)


def test_a_person_says_that_it_is_out(desk: Path, capsys: Captured, database_url: str) -> None:
    """Explain asks, doctor asks, resolve answers, and everybody shows where it is."""
    post, publication = due(capsys, desk)
    make_unknown(database_url, publication)
    assert f"→ imprint resolve {publication} --published URL" in said(capsys, "explain", post)
    assert "1 publications wait for you to say" in said(capsys, "status")
    assert told(capsys, "status")["askingPerson"] == 1
    assert "a person must decide" in said(capsys, "post", "show", post)
    assert "It is out, as you say." in said(capsys, "resolve", post, "--published", "https://a.example/1")
    shown = told(capsys, "post", "show", post)["publications"][0]
    assert (shown["url"], shown["status"], bool(shown["publishedAt"])) == ("https://a.example/1", "success", True)
    assert "https://a.example/1" in said(capsys, "post", "show", post)
    explained = said(capsys, "explain", publication)
    assert "A person (operator) says that it is out: https://a.example/1" in explained
    assert "Next: Nothing: it is out: https://a.example/1" in explained
    assert "It is known to be out" in said(capsys, "resolve", publication, "--not-published", code=Exit.FAILED)


@pytest.mark.parametrize(
    ("option", "became", "state"), [([], "sent again", "pending"), (["--drop"], "dropped", "failed")]
)
def test_a_person_says_that_it_is_not_out(
    desk: Path, capsys: Captured, database_url: str, option: list[str], became: str, state: str
) -> None:
    """It is sent again, or not at all."""
    post, publication = due(capsys, desk)
    make_unknown(database_url, publication)
    answer = told(capsys, "resolve", publication, "--not-published", *option)
    assert answer == {"id": publication, "became": became, "url": None}
    assert told(capsys, "post", "show", post)["publications"][0]["status"] == state


@pytest.mark.parametrize(
    ("arguments", "exit_", "sentence"),
    [
        (["explain", "ffff0000"], Exit.FAILED, "There is no such post."),
        (["resolve", "ffff0000", "--not-published"], Exit.FAILED, "There is no such publication."),
        (["resolve", "ffff0000"], Exit.USAGE, "either --published URL or --not-published"),
        (["resolve", "ffff0000", "--published", "u", "--not-published"], Exit.USAGE, "either --published"),
        (["resolve", "ffff0000", "--published", "u", "--drop"], Exit.USAGE, "--drop goes with --not-published"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], exit_: int, sentence: str, capsys: Captured) -> None:
    """With an exit code that scripts can trust."""
    assert sentence in said(capsys, *arguments, code=exit_)
