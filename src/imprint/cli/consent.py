"""Consent: a person at a terminal is asked before something goes that does not come back; scripts never are."""

import sys
from typing import Annotated

import typer

from imprint.problem import Exit

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first; without a terminal nothing is asked.")]


def consent(question: str, *, yes: bool) -> None:
    """Ask a person, if one is there; end the command when the answer is no."""
    if yes or not at_terminal():
        return
    if not typer.confirm(question, default=False):
        typer.echo("Nothing was changed.")
        raise typer.Exit(Exit.FAILED)


def at_terminal() -> bool:
    """Say whether a person is there to read a question and to answer it."""
    return sys.stdin.isatty() and sys.stdout.isatty()
