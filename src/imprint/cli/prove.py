"""Proving: anyone can check on their own machine what Imprint promises."""

import random
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Protocol

import typer

from imprint import log
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.problem import Exit

Report = Mapping[str, Any]


class Proofs(Protocol):
    """What can be proved; who does it decides the caller, since doors do not see each other."""

    def kills(self, publishes: int, kills: int, workers: int, *, token: bool, seed: int) -> Report:
        """Kill workers while they publish."""
        ...


Open = Callable[[], Proofs]
Seed = Annotated[int | None, typer.Option("--seed", help="Let chance be the same again.", metavar="N")]


def register(app: typer.Typer, proofs: Open) -> None:
    """Add the commands."""
    group = typer.Typer(help="Check the promise on this machine, in a home of its own that is thrown away.")
    app.add_typer(group, name="prove", no_args_is_help=True)

    @group.command()
    def kills(
        *,
        publishes: Annotated[int, typer.Option(min=1, help="How many publications.", metavar="N")] = 300,
        kills: Annotated[
            int, typer.Option(min=0, help="How many workers are killed, half of them at named points.", metavar="N")
        ] = 100,
        workers: Annotated[int, typer.Option(min=1, max=64, help="How many at once.", metavar="N")] = 8,
        no_token: Annotated[
            bool, typer.Option("--no-token", help="On a platform that does not know our key and can only be looked at.")
        ] = False,
        seed: Seed = None,
        as_json: AsJson = False,
    ) -> None:
        """Publish while workers are killed at every step.

        What came out, and how often, is read from the sandbox's own log. Exit code 1 when anything is wrong.
        """
        _begin()
        seed = random.randrange(2**31) if seed is None else seed  # noqa: S311 - no secret
        if not as_json:
            say(f"{publishes} publications, {workers} workers, {kills} kills, seed {seed}. This takes a while.")
        _end(proofs().kills(publishes, kills, workers, token=not no_token, seed=seed), as_json=as_json)


def _begin() -> None:
    log.configure("human", "error")


def _end(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        _show(report)
    if report["wrong"] or report.get("proved_nothing"):
        raise typer.Exit(Exit.FAILED)


def _show(report: Report) -> None:
    plain = {name: value for name, value in report.items() if not isinstance(value, list | Mapping)}
    print_table("", ["", ""], [(name.replace("_", " "), value) for name, value in plain.items()])
    for name, value in report.items():
        if isinstance(value, Mapping):
            print_table(name.replace("_", " "), ["", ""], list(value.items()))
    for line in report["wrong"]:
        say(f"WRONG: {line}")
    if nothing := report.get("proved_nothing"):
        say(f"This run has proved nothing: {', '.join(nothing)}.")
    elif not report["wrong"]:
        say("Nothing is wrong.")
