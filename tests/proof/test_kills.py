"""The proof by killing: its short form, in both kinds; and that it would see what it is there to see."""

import ast
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import imprint
from imprint.killpoint import POINTS
from imprint.proof.ground import Effect
from imprint.proof.hops import Hops
from imprint.proof.verdict import End, Intent, Verdict, judge
from tests.conftest import quick_folder

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("token", "publishes", "kills"), [(True, 300, 100), (False, 150, 50)])
def test_kills(token: bool, publishes: int, kills: int) -> None:  # noqa: FBT001
    """Workers die at named points and at random: nothing comes out twice or early, nothing is lost or stuck."""
    options = ["--publishes", str(publishes), "--kills", str(kills), "--seed", "7", "--json"]
    command = [sys.executable, "-m", "imprint", "prove", "kills", *options, *([] if token else ["--no-token"])]
    quick = {**os.environ, "TMPDIR": str(quick_folder())}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=700, check=False, env=quick)
    assert ran.stdout, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["wrong"], told["proved_nothing"], ran.returncode) == ([], [], 0)
    assert [told[name] for name in ("duplicates", "lost", "stuck", "early")] == [0, 0, 0, 0]
    # More than were asked for are planned when there is still dying to be done.
    assert told["published"] + told["unknown"] == told["publishes"] >= publishes
    assert told["unknown"] == 0 or not token
    assert told["named_kills"] == sum(told["hits"].values()) >= kills // 2
    assert told["random_kills"] >= kills // 2


def end(status: str = "success", on: str = "deviantart", **given: Any) -> End:
    """Give a publication that stands somewhere."""
    told = {"rests": True, "held_why": None, "error_code": None, **given}
    return End(uuid4(), "Harbour", on, status, NOW, **told)


def seen(seconds: float = 1) -> Effect:
    """Give what others can see, so many seconds after its time."""
    return Effect("Harbour", (NOW + timedelta(seconds=seconds)).timestamp(), "deviantart")


@pytest.mark.parametrize(
    ("of", "effects", "intents", "counted"),
    [
        (end(), [seen()], [], {"published": 1}),
        (end(), [seen(), seen(2)], [], {"published": 1, "duplicates": 1, "wrong": 1}),
        (end(), [seen(-1)], [], {"published": 1, "early": 1, "wrong": 1}),
        (end(), [], [], {"lost": 1, "wrong": 1}),
        (end("failed", error_code="exhausted"), [], [], {"lost": 1, "wrong": 1}),
        (end("pending"), [], [], {"stuck": 1, "wrong": 1}),
        (end("unknown", rests=False), [], [], {"stuck": 1, "wrong": 1}),
        # Unknown is honest when nobody can tell, and only then.
        (end("unknown"), [], [("killed", "died")], {"unknown": 1}),
        (end("unknown"), [], [("alive", "no_answer")], {"unknown": 1}),
        (end("unknown"), [], [("alive", "died")], {"unknown": 1, "wrong": 1}),
        (end("unknown"), [], [], {"unknown": 1, "wrong": 1}),
        (end("unknown"), [], [("killed", "refused")], {"unknown": 1, "wrong": 1}),
        (end("unknown"), [seen()], [("killed", "died")], {"unknown": 1, "published": 1, "wrong": 1}),
        # Where the platform knows our key it is sent again, seven times; where nothing can be looked up it may be out.
        (end("unknown", "webhook"), [], [("killed", "died")] * 6, {"unknown": 1, "wrong": 1}),
        (end("unknown", "webhook"), [seen()], [("killed", "died")] * 7, {"unknown": 1, "published": 1}),
        (end("unknown", "folder"), [seen()], [("killed", "died")] * 7, {"unknown": 1, "published": 1, "wrong": 1}),
    ],
)
def test_the_verdict_can_be_guilty(
    of: End, effects: list[Effect], intents: list[tuple[str, str]], counted: dict[str, int]
) -> None:
    """Each way of breaking the promise is counted and named; what is right is not complained about."""
    told = judge([of], effects, {of.id: [Intent(of.id, *each, None) for each in intents]}, {"killed"}, Hops())
    wrong = len(told.wrong)
    told.wrong = []
    assert ({**vars(told), "wrong": wrong}) == {**vars(Verdict()), "wrong": 0, **counted}


def test_what_nobody_planned_is_seen() -> None:
    """Something that comes out of nowhere is wrong as well."""
    assert judge([], [seen()], {}, set(), Hops()).wrong


def test_hops_are_accounted_for() -> None:
    """A moment before a hop is what it was; one after it is later by all that was skipped."""
    hops = Hops()
    hops.hop(60)
    hops.hop(40)
    assert (hops.count, hops.ahead) == (2, 100)
    assert hops.moment(1000) == 1000
    later = datetime.now(UTC).timestamp() + 5
    assert hops.moment(later) == later + 100


def test_every_kill_point_is_somewhere() -> None:
    """The list and the code name the same points, each in one place."""
    found: list[str] = []
    for module in Path(imprint.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "here":
                found += [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
    assert sorted(found) == sorted(POINTS)
