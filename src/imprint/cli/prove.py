"""Proving: anyone can check on their own machine what Imprint promises."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol

import typer

from imprint import log
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.problem import Exit

Report = Mapping[str, Any]
# The parts of a report that are tables.
TABLES = ("table", "ablations")
# What is in the JSON and would fill a screen.
TOO_LONG = {"says", "example"}


class Proofs(Protocol):
    """What can be proved; who does it decides the caller, since doors do not see each other."""

    def kills(self, publishes: int, kills: int, workers: int, *, token: bool, seed: int) -> Report:
        """Kill workers while they publish."""
        ...

    def model(self) -> Report:
        """Explore every interleaving of a small world."""
        ...

    def database(self, stops: int, *, seed: int, server: str | None, stop: Sequence[str], start: str | None) -> Report:
        """Stop PostgreSQL hard while everybody works."""
        ...

    def soak(self, minutes: float, *, seed: int) -> Report:
        """Let everything happen at once."""
        ...

    def defects(self, only: Sequence[str]) -> Report:
        """Put mistakes back one at a time."""
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
        workers: Annotated[int, typer.Option(min=1, max=8, help="How many at once.", metavar="N")] = 8,
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
        seed = _seed(seed)
        if not as_json:
            say(f"{publishes} publications, {workers} workers, {kills} kills, seed {seed}. This takes a while.")
        _end(proofs().kills(publishes, kills, workers, token=not no_token, seed=seed), as_json=as_json)

    @group.command()
    def model(*, as_json: AsJson = False) -> None:
        """Explore every interleaving of two workers, a clock, a person and three faults.

        What to do next is decided by the code that is shipped. Three times something is taken out of the protocol, to
        see that the model would notice.
        """
        _begin()
        _end(proofs().model(), as_json=as_json)

    @group.command()
    def database(
        *,
        stops: Annotated[int, typer.Option(min=1, help="How many times it is stopped.", metavar="N")] = 20,
        server: Annotated[
            str | None,
            typer.Option("--server", help="A server that may be stopped, instead of one of our own.", metavar="URL"),
        ] = None,
        stop: Annotated[
            list[str] | None,
            typer.Option("--stop", help="The command that stops it hard; several take turns.", metavar="COMMAND"),
        ] = None,
        start: Annotated[
            str | None, typer.Option("--start", help="The command that starts it again.", metavar="COMMAND")
        ] = None,
        seed: Seed = None,
        as_json: AsJson = False,
    ) -> None:
        """Stop the database hard while everybody works.

        By turns it is killed and stopped at once, under publishing, uploading and ingesting; whatever was answered must
        be there afterwards, and everything must go on within 10 seconds. On a server that is given a database is made
        for the proof and dropped in the end.
        """
        _begin()
        seed = _seed(seed)
        _go_together(server, stop, start)
        if not as_json:
            say(f"{stops} stops, seed {seed}. This takes a while.")
        _end(proofs().database(stops, seed=seed, server=server, stop=stop or [], start=start), as_json=as_json)

    @group.command()
    def soak(
        *,
        minutes: Annotated[float, typer.Option(min=0.1, help="How long it goes on.", metavar="M")] = 10.0,
        seed: Seed = None,
        as_json: AsJson = False,
    ) -> None:
        """Let everything happen at once for a while, with faults.

        Publishing, uploading, polling, notices and reads, while workers are killed, platforms fail and the database is
        stopped. Nothing may come out twice or be lost, and memory, files and connections must not grow.
        """
        _begin()
        seed = _seed(seed)
        if not as_json:
            say(f"{minutes:g} minutes, seed {seed}.")
        _end(proofs().soak(minutes, seed=seed), as_json=as_json)

    @group.command()
    def defects(
        *,
        only: Annotated[
            list[str] | None, typer.Option("--only", help="Only this one; may be repeated.", metavar="NAME")
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Put mistakes back one at a time, and see which test notices.

        They are those of the programs that came before, each a small change of a copy of the source. Needs a checkout.
        """
        _begin()
        if not as_json:
            say("Each defect is put into a copy of the source. This takes some minutes.")
        _end(proofs().defects(only or []), as_json=as_json)


def _seed(given: int | None) -> int:
    return random.randrange(2**31) if given is None else given  # noqa: S311 - no secret


def _go_together(*given: object) -> None:
    if len({bool(each) for each in given}) != 1:
        raise typer.BadParameter("--server, --stop and --start go together.")


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
    for name in TABLES:
        if rows := report.get(name):
            columns = [column for column in rows[0] if column not in TOO_LONG]
            print_table(name, columns, [[_cell(row[column]) for column in columns] for row in rows])
    for line in report["wrong"]:
        say(f"WRONG: {line}")
    if nothing := report.get("proved_nothing"):
        say(f"This run has proved nothing: {', '.join(nothing)}.")
    elif not report["wrong"]:
        say("Nothing is wrong.")


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
