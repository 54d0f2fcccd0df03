"""Every command prints what it promises, as JSON too, and ends with an exit code that scripts can trust."""

import json
from pathlib import Path

import pytest

from imprint.main import run
from imprint.problem import Exit


@pytest.fixture
def on_server(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the program at a migrated database on a server and an empty home."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = Exit.OK) -> object:
    """Run a command with --json and give what it printed."""
    assert run([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("on_server")
def test_status_tells_what_waits(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty database has nothing waiting and no worker."""
    seen = told(capsys, "status")
    assert isinstance(seen, dict)
    assert seen["work"]["publications"] == {"waiting": 0, "running": 0, "late": 0, "stuck": 0}
    assert (seen["workers"], seen["sendsHeld"], seen["deadLetters"]) == ([], None, {})
    assert run(["status"]) == Exit.OK
    assert "No worker is alive" in capsys.readouterr().out


@pytest.mark.usefixtures("on_server")
def test_doctor_finds_nothing_bad_in_a_good_database(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is looked at; only the missing worker is worth a look."""
    findings = told(capsys, "doctor")
    assert isinstance(findings, list)
    assert {finding["subject"] for finding in findings if finding["level"] != "ok"} == {"workers"}
    assert all(finding["do"] for finding in findings if finding["level"] != "ok")


def test_migrate_brings_a_database_up_to_date(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--check says what is missing and changes nothing; without it everything is applied, once."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", empty_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    assert told(capsys, "migrate", "--check", code=Exit.ATTENTION)["upToDate"] is False  # type: ignore[index]
    assert run(["status"]) == Exit.VERSION
    assert "imprint migrate" in capsys.readouterr().err
    assert "foundation" in told(capsys, "migrate")["applied"]  # type: ignore[index]
    assert told(capsys, "migrate") == {"applied": [], "upToDate": True}
    assert told(capsys, "migrate", "--check")["upToDate"] is True  # type: ignore[index]


def test_backup_and_restore_and_accept(
    on_server: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A backup goes into an empty database, everything is held, doctor says what to do, and accepting ends it."""
    file = str(on_server / "b.dump")
    assert told(capsys, "incarnation")["sendsHeld"] is None  # type: ignore[index]
    assert told(capsys, "backup", file)["bytes"] > 0  # type: ignore[index]
    assert run(["backup", file]) == Exit.FAILED
    monkeypatch.setenv("IMPRINT_DATABASE_URL", empty_url)
    assert told(capsys, "restore", file)["sendsHeld"] is True  # type: ignore[index]
    found = told(capsys, "doctor", code=Exit.ATTENTION)
    assert isinstance(found, list)
    assert [f["do"] for f in found if f["subject"] == "incarnation"] == [
        "Check what has been sent since, then run `imprint incarnation --accept`."
    ]
    assert told(capsys, "incarnation", "--accept")["sendsHeld"] is None  # type: ignore[index]
    assert told(capsys, "incarnation")["sendsHeld"] is None  # type: ignore[index]


def test_lifecycles_as_data_and_as_diagrams(capsys: pytest.CaptureFixture[str]) -> None:
    """Seven lifecycles, each with its states and one entry for each arrow; and a diagram of each."""
    shown = told(capsys, "lifecycles")
    assert isinstance(shown, list)
    assert [entry["name"] for entry in shown] == [
        "post",
        "publication",
        "content",
        "object",
        "derivation",
        "source",
        "account",
    ]
    assert {"name", "states", "initial", "moves"} == set(shown[0])
    assert {"name", "from", "to", "why"} == set(shown[0]["moves"][0])
    assert run(["lifecycles", "--mermaid"]) == Exit.OK
    assert capsys.readouterr().out.count("stateDiagram-v2") == 7
    assert run(["lifecycles"]) == Exit.OK


def test_settings_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Each setting has a variable, a default and a sentence."""
    entries = told(capsys, "settings")
    assert isinstance(entries, list)
    assert all(entry["variable"].startswith("IMPRINT_") and entry["sentence"].endswith(".") for entry in entries)
    assert run(["settings"]) == Exit.OK
    capsys.readouterr()
    assert told(capsys, "version")


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "sentence"),
    [
        (["nonsense"], {}, Exit.USAGE, "No such command 'nonsense'"),
        (["backup"], {}, Exit.USAGE, "Missing argument"),
        (["status"], {"IMPRINT_PROT": "1"}, Exit.SETTINGS, "did you mean IMPRINT_PORT?"),
        (["status"], {"IMPRINT_PORT": "high"}, Exit.SETTINGS, "IMPRINT_PORT has a bad value"),
        (
            ["status"],
            {"IMPRINT_DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:1/x"},
            Exit.UNAVAILABLE,
            "cannot be reached",
        ),
        (["status"], {"IMPRINT_DATABASE_URL": "nonsense"}, Exit.SETTINGS, "IMPRINT_DATABASE_URL"),
        (["status"], {"IMPRINT_DATABASE_URL": "", "IMPRINT_HOME": "/dev/null"}, Exit.UNAVAILABLE, "/dev/null"),
        (["status"], {"IMPRINT_DATABASE_URL": "", "IMPRINT_HOME": "/proc/nowhere"}, Exit.UNAVAILABLE, "/proc"),
        (["restore", "missing.dump"], {}, Exit.FAILED, "There is no file"),
        (["worker", "--concurrency", "1"], {}, Exit.USAGE, "concurrency"),
    ],
)
def test_bad_input_is_one_sentence(
    on_server: Path,
    arguments: list[str],
    environment: dict[str, str],
    code: Exit,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever is wrong is said in one line on standard error, without a traceback or a password."""
    del on_server
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert printed.err.startswith("imprint: ")
    assert len(printed.err.strip().splitlines()) == 1
    assert "hunter2" not in printed.err
    assert run([*arguments, "--json"]) == code
    assert sentence in json.loads(capsys.readouterr().err)["error"] or code is Exit.USAGE
