"""The program: a command that is known beforehand is loaded alone, and is the same as among all others."""

from functools import cache

import pytest
import typer
from typer.main import get_command

from imprint.cli.program import GROUPS, program
from imprint.main import entrypoints, proofs, serve, town


@cache
def commands(command: str | None) -> dict[str, str]:
    """Give the commands that are there, and the help of each."""
    built = get_command(program(entrypoints, serve, town, proofs, command=command))
    return {name: each.get_help(typer.Context(each, info_name=name)) for name, each in built.commands.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_the_same_alone(group: str) -> None:
    """Whoever asks for one group gets it whole."""
    everything, alone = commands(None), commands(group)
    assert alone.items() <= everything.items()
    assert len(alone) < len(everything)
    name = group.replace("_", "-")
    assert name not in everything or name in alone


def test_whatever_has_another_name_is_there() -> None:
    """A command that is not named like its module is found among all."""
    assert {"status", "code", "migrate", "demo"} <= commands("status").keys()
