"""The page on reliability: every platform is in it, its tests exist, and what went wrong is not hidden."""

import json
from pathlib import Path
from typing import Any

import pytest
from docs import generate, record, reliability

import imprint
from imprint.platforms.registry import PLATFORMS
from imprint.proof.defects import Copy

GOOD = {"published": 10, "duplicates": 0, "lost": 0, "stuck": 0, "early": 0, "unknown": 1, "oldest_s": 0.4, "kills": 9}
HITS = {"hits": {"intent_after": 50}, "seed": 7, "wrong": [], "proved_nothing": []}


def page(folder: Path, **reports: dict[str, Any]) -> str:
    """Write the page with these runs as the last ones."""
    about = {"command": "imprint prove it", "commit": "abc1234", "date": "2026-01-01", "cores": 2, "minutes": 3.0}
    for name, report in reports.items():
        path = folder / f"{name.replace('_', '-')}.json"
        path.write_text(json.dumps({**about, "report": report}), encoding="utf-8")
    return "\n\n".join(reliability.page(generate._table, folder))


def test_every_platform_and_its_promise_is_there(tmp_path: Path) -> None:
    """Whoever adds a platform has its promise on the page."""
    written = page(tmp_path)
    for name, platform in PLATFORMS.items():
        assert f"| `{name}` |" in written
        assert platform.once.promise in written
    assert written.count("no run is kept yet") == 6


def test_the_tests_that_are_named_exist() -> None:
    """A figure that is shown by a test names one that can be found."""
    here = Copy(Path(imprint.__file__).parents[2])
    assert [here.place(test) for figure in reliability.FIGURES for test in figure.tests]
    assert all(figure.where or figure.tests for figure in reliability.FIGURES)


def test_a_run_is_shown_with_its_seed_and_commit(tmp_path: Path) -> None:
    """The figure says the outcome in short, and below is all of it."""
    written = page(tmp_path, kills={**GOOD, **HITS})
    assert "9 kills, 10 published, 0 duplicates" in written
    assert "0.4 s (kills)" in written
    assert "commit abc1234" in written
    assert "| seed | 7 |" in written
    assert "| hits | intent after 50 |" in written


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ({**GOOD, **HITS, "wrong": ["Harbour came out 2 times"]}, "**wrong**: Harbour came out 2 times"),
        ({**GOOD, **HITS, "proved_nothing": ["look_taken"]}, "**has proved nothing**: look_taken"),
    ],
)
def test_what_went_wrong_is_said_first(tmp_path: Path, report: dict[str, Any], said: str) -> None:
    """A run that failed is shown as one."""
    assert said in page(tmp_path, kills=report)


def test_who_noticed_which_mistake_is_a_table(tmp_path: Path) -> None:
    """One that nobody notices stands out."""
    rows = [
        {"name": "a", "says": "One.", "caught_by": ["test_a"]},
        {"name": "b", "says": "Two.", "caught_by": []},
    ]
    written = page(tmp_path, defects={"defects": 2, "caught": 1, "table": rows, "wrong": ["nobody notices b"]})
    assert "| `a` | One. | `test_a` |" in written
    assert "| `b` | Two. | **nobody** |" in written


def test_a_report_is_kept_whatever_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the command printed is in the file, with how it was called; one that says nothing leaves nothing."""
    monkeypatch.setattr(record, "RUNS", tmp_path)
    assert record.main(["about", "lifecycles"]) == 0
    told = json.loads((tmp_path / "about.json").read_text())
    assert told["command"] == "imprint lifecycles"
    assert told["report"]
    assert "right" in capsys.readouterr().out
    assert record.main(["none", "prove", "defects", "--only", "nothing-like-it"]) != 0
    assert not (tmp_path / "none.json").exists()
    assert record.main(["alone"]) == 2
