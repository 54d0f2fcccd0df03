"""Problems: a stable code, one sentence, and an exit code that scripts can trust."""

import pytest

from imprint.problem import BadSettings, Busy, Exit, Problem, Unavailable, WrongVersion


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Problem, Exit.FAILED),
        (BadSettings, Exit.SETTINGS),
        (Busy, Exit.BUSY),
        (Unavailable, Exit.UNAVAILABLE),
        (WrongVersion, Exit.VERSION),
    ],
)
def test_each_kind_of_problem_has_its_own_exit_code(kind: type[Problem], code: Exit) -> None:
    """What a script sees tells apart what a person would do about it."""
    problem = kind("some.code", "Something is wrong.")
    assert (problem.code, problem.sentence, str(problem), problem.exit) == (
        "some.code",
        "Something is wrong.",
        "Something is wrong.",
        code,
    )


def test_exit_codes_never_change() -> None:
    """Scripts in the world depend on these numbers."""
    assert {code.name: code.value for code in Exit} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "SETTINGS": 3,
        "BUSY": 4,
        "UNAVAILABLE": 5,
        "VERSION": 6,
        "ATTENTION": 7,
    }
