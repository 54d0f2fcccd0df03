"""How a person names a row: the whole id, its first letters, or a name; what is not clear is said with choices."""

from uuid import UUID

import pytest

from imprint.problem import Problem
from imprint.work.prefix import Candidate, bounds, picked

ONE, TWO = UUID("1a2b3c4d-0000-4000-8000-000000000001"), UUID("1a2b3c4d-0000-4000-8000-000000000002")
MISSING = Problem("post.missing", "There is no such post.")


def candidates(*rows: UUID, exact: bool = False) -> list[Candidate]:
    """Make candidates of ids."""
    return [Candidate(row, f"Tower {str(row)[-1]}", exact) for row in rows]


@pytest.mark.parametrize("text", ["1a2b", " 1A2B3C4D ", str(ONE), ONE.hex, "1a2b3c4d-0000-4"])
def test_letters_lie_between_their_bounds(text: str) -> None:
    """However it is written, with or without dashes."""
    low, high = bounds(text)
    assert low <= ONE <= high


@pytest.mark.parametrize("text", ["", "1a2", "tower", "1a2b%", "1a2b" * 9])
def test_what_is_no_id_has_nothing_between_its_bounds(text: str) -> None:
    """Too short, no letters of an id, or too long."""
    low, high = bounds(text)
    assert low > high


def test_one_is_picked() -> None:
    """The only one, or the only one that is called exactly so."""
    assert picked("1a2b", candidates(ONE), MISSING) == ONE
    assert picked("bay", [*candidates(ONE, exact=True), *candidates(TWO)], MISSING) == ONE


def test_nothing_is_picked() -> None:
    """None is there, or the letters are so few that they were a slip of the hand."""
    for text, found in (("1a2b", []), ("1a2", candidates(ONE))):
        with pytest.raises(Problem) as refused:
            picked(text, found, MISSING)
        assert refused.value is MISSING


def test_several_are_told_apart() -> None:
    """Each with as much of its id as it takes, and its name."""
    with pytest.raises(Problem) as refused:
        picked("1a2b", candidates(ONE, TWO), MISSING)
    assert refused.value.code == "post.ambiguous"
    assert refused.value.sentence == (
        f"1a2b can mean several posts: {ONE} (Tower 1), {TWO} (Tower 2); write more of the id."
    )
    other = UUID("1a2b3c4f-0000-4000-8000-000000000003")
    with pytest.raises(Problem, match=r"keys: 1a2b3c4d \(Tower 1\), 1a2b3c4f \(Tower 3\);"):
        picked("1a2b", candidates(ONE, other), Problem("api_key.missing", "There is no such key."))
