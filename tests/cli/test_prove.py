"""Proving on the command line: what is asked for arrives, what is wrong is said, and scripts can tell."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
import typer

from imprint.cli import prove
from imprint.problem import Exit

GOOD = {"published": 3, "hits": {"intent_after": 2}, "wrong": [], "proved_nothing": []}


class Told:
    """Proofs that tell what they were asked for, and end as they were told to."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self.asked: list[tuple[Any, ...]] = []

    def kills(self, publishes: int, kills: int, workers: int, *, token: bool, seed: int) -> dict[str, Any]:
        """Kill nobody."""
        self.asked.append((publishes, kills, workers, token, seed))
        return self.report

    def model(self) -> dict[str, Any]:
        """Explore nothing."""
        return self.report

    def database(
        self, stops: int, *, seed: int, server: str | None, stop: Sequence[str], start: str | None
    ) -> dict[str, Any]:
        """Stop nothing."""
        self.asked.append((stops, seed, server, tuple(stop), start))
        return self.report

    def soak(self, minutes: float, *, seed: int) -> dict[str, Any]:
        """Let nothing happen."""
        self.asked.append((minutes, seed))
        return self.report

    def defects(self, only: Sequence[str]) -> dict[str, Any]:
        """Put nothing back."""
        self.asked.append(tuple(only))
        return self.report


def run(proofs: Told, *arguments: str) -> int:
    """Run a command with these proofs and give its exit code."""
    app = typer.Typer()
    app.callback()(lambda: None)
    prove.register(app, lambda: proofs)
    return int(app(["prove", *arguments], standalone_mode=False) or 0)


def test_what_is_asked_for_arrives(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers, the platform and the seed; without a seed there is one all the same."""
    proofs = Told(GOOD)
    options = ["--publishes", "5", "--kills", "2", "--workers", "3", "--no-token", "--seed", "9", "--json"]
    assert run(proofs, "kills", *options) == Exit.OK
    assert json.loads(capsys.readouterr().out) == GOOD
    assert run(proofs, "kills") == Exit.OK
    assert run(proofs, "database", "--stops", "4", "--seed", "1") == Exit.OK
    lent = ["--server", "postgresql://x/y", "--stop", "a b", "--stop", "c", "--start", "d"]
    assert run(proofs, "database", "--seed", "2", *lent) == Exit.OK
    assert run(proofs, "soak", "--minutes", "0.5", "--seed", "3") == Exit.OK
    assert run(proofs, "defects", "--only", "a", "--only", "b") == Exit.OK
    assert proofs.asked[0] == (5, 2, 3, False, 9)
    assert proofs.asked[1][:4] == (300, 100, 8, True)
    assert proofs.asked[2:] == [
        (4, 1, None, (), None),
        (20, 2, "postgresql://x/y", ("a b", "c"), "d"),
        (0.5, 3),
        ("a", "b"),
    ]
    assert "Nothing is wrong." in capsys.readouterr().out


@pytest.mark.parametrize("some", [["--server", "u"], ["--stop", "a"], ["--server", "u", "--start", "b"]])
def test_a_lent_server_needs_all_that_belongs_to_it(some: list[str]) -> None:
    """An address without the commands, or commands without an address, is a mistake."""
    with pytest.raises(typer.BadParameter, match="go together"):
        run(Told(GOOD), "database", *some)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"wrong": ["Harbour came out 2 times"]}, "WRONG: Harbour came out 2 times"),
        ({"proved_nothing": ["look_taken"]}, "This run has proved nothing: look_taken."),
    ],
)
def test_what_is_wrong_is_said(bad: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And the exit code is 1, also when a run was too short to prove anything."""
    assert run(Told({**GOOD, **bad}), "model") == Exit.FAILED
    assert said in capsys.readouterr().out


def test_tables_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Who noticed what, without the long explanations."""
    table = [{"name": "no-audit", "says": "It can be rewritten.", "caught_by": ["test_a", "test_b"]}]
    assert run(Told({**GOOD, "table": table}), "defects") == Exit.OK
    shown = capsys.readouterr().out
    assert "no-audit" in shown
    assert "test_a, test_b" in shown
    assert "rewritten" not in shown
