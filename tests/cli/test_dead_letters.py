"""Dead letters on the command line."""

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from imprint.main import run
from imprint.problem import Exit

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def url(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a home and a database."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    return database_url


def told(capsys: Captured, *arguments: str, code: int = Exit.OK) -> Any:
    """Run a command with --json and give what it printed."""
    assert run(["dead-letters", *arguments, "--json"]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out or printed.err)


def said(capsys: Captured, *arguments: str) -> str:
    """Run a command and give what it printed for a person."""
    assert run(["dead-letters", *arguments]) == Exit.OK
    return capsys.readouterr().out


def held(url: str, *letters: tuple[str, str]) -> list[str]:
    """Put dead letters there as the queue leaves them, and give their numbers."""

    async def work() -> list[str]:
        connection = await asyncpg.connect(url)
        numbers = []
        for queue, key in letters:
            number = await connection.fetchval(
                "INSERT INTO pgqueuer (priority, status, entrypoint, dedupe_key, payload, attempts) "
                "VALUES (0, 'failed', $1, $1 || ':' || $2, convert_to($2, 'UTF8'), 2) RETURNING id",
                queue,
                key,
            )
            await connection.execute(
                "INSERT INTO pgqueuer_log (job_id, status, priority, entrypoint, traceback) "
                "VALUES ($1, 'failed', 0, $2, "
                """'{"exception_type": "OSError", "exception_message": "at ftp://me:hush@host"}')""",
                number,
                queue,
            )
            numbers.append(str(number))
        await connection.close()
        return numbers

    return asyncio.run(work())


def test_list_show_requeue_discard(url: str, capsys: Captured) -> None:
    """By name, by queue and all at once, with a sentence for what is refused; no password is shown."""
    assert "no dead letters" in said(capsys, "list")
    assert told(capsys, "list") == []
    first, second, third = held(url, ("poll", "a"), ("poll", "b"), ("derive", "c"))
    listed = told(capsys, "list", "--queue", "poll")
    assert {each["id"] for each in listed} == {first, second}
    assert "derive" in said(capsys, "list")
    shown = told(capsys, "show", third)
    assert (shown["about"], shown["attempts"], shown["data"]["key"]) == ("c", 3, "c")
    assert [event["what"] for event in shown["history"]] == ["failed"]
    text = said(capsys, "show", third)
    assert "OSError" in text
    assert "hush" not in text + json.dumps(shown) + json.dumps(listed) + said(capsys, "list")
    assert told(capsys, "requeue", first) == [{"id": first, "ok": True, "result": "requeued"}]
    assert told(capsys, "requeue", first, code=Exit.FAILED)["code"] == "dead_letter.missing"
    outcomes = told(capsys, "requeue", second, "999999", code=Exit.FAILED)
    assert [each["ok"] for each in outcomes] == [True, False]
    assert told(capsys, "discard", "--all", "--queue", "poll") == []
    assert "discarded" in said(capsys, "discard", "--all")
    assert "no dead letters" in said(capsys, "requeue", "--all")


@pytest.mark.parametrize("arguments", [["requeue"], ["discard", "1", "--all"], ["requeue", "1", "--queue", "poll"]])
def test_what_is_meant_must_be_said(arguments: list[str], capsys: Captured) -> None:
    """Nothing is not everything, and names and --all exclude each other."""
    assert told(capsys, *arguments, code=Exit.FAILED)["code"] == "dead_letter.which"
