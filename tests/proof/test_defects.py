"""The proof by defects: the list fits the source, a defect is noticed, and what is none is not."""

from pathlib import Path

import pytest

import imprint
from imprint.problem import Problem
from imprint.proof.defects import Copy, Defect, Patch, defects, prove_defects, tried

ROOT = Path(imprint.__file__).parents[2]
DECISIONS = "src/imprint/decisions/publishing.py"
LOSE = "return Lose(policy.quiet) if known.intent else _again(known, None, roll, policy)"
PURE = "test_each_row_of_the_failure_table"


@pytest.mark.parametrize("defect", defects(), ids=lambda defect: defect.name)
def test_the_list_fits_the_source(defect: Defect) -> None:
    """What each defect changes is there once, and so are the tests that are to notice it."""
    here = Copy(ROOT)
    assert defect.says.endswith(".")
    for patch in defect.patches:
        assert (ROOT / patch.file).read_text(encoding="utf-8").count(patch.old) == 1, patch.file
        assert patch.old != patch.new
    assert [here.place(name) for name in defect.caught_by]


def test_there_are_thirty_and_each_has_a_name() -> None:
    """Every seed is represented, and no two are called the same."""
    known = defects()
    assert len({each.name for each in known}) == len(known) >= 30
    assert {each.seed for each in known} == {"000", "001", "002", "003", "004"}


def test_a_defect_is_noticed_and_a_harmless_change_is_not(home: Path) -> None:
    """The test fails with the defect, and passes before it, after it, and with a change that changes nothing."""
    copy = Copy.of(home)
    bad = Defect("bad", "001", "Unknown is called failed.", (PURE,), (Patch(DECISIONS, LOSE, 'return GiveUp("no")'),))
    none = Defect("none", "001", "Nothing.", (PURE,), (Patch(DECISIONS, LOSE, f"{LOSE}  # the same"),))
    assert tried(copy, bad)["caught_by"] == [PURE]
    assert tried(copy, none)["caught_by"] == []


def test_what_does_not_fit_is_said(home: Path) -> None:
    """A name that is none, a text that is not there, a test that is gone."""
    with pytest.raises(Problem, match="There is no defect 'x'"):
        prove_defects(["x"])
    (home / "tests").mkdir()
    (home / "a.py").write_text("one")
    copy = Copy(home)
    with (
        pytest.raises(Problem, match=r"a\.py does not have 'two' once"),
        copy.with_defect(Defect("stale", "000", "It.", (), (Patch("a.py", "two", "three"),))),
    ):
        pass
    with pytest.raises(Problem, match="There is no test test_nothing"):
        copy.tests(["test_nothing"])
