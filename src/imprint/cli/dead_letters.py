"""The commands about dead letters: look at what failed for good, try it once more, or let it go."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

import typer

from imprint.cli import session
from imprint.cli.consent import Yes, consent
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.log import hide_in_text
from imprint.problem import Exit, Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import bulk
from imprint.work import dead_letter as letters
from imprint.work.dead_letter import Letter, Shown
from imprint.work.person import OPERATOR

LONGEST_SHOWN = 80

Which = Annotated[str, typer.Argument(help="The id, as the list shows it.", metavar="ID")]
Several = Annotated[list[str] | None, typer.Argument(help="Ids, as the list shows them.", metavar="ID…")]
InQueue = Annotated[str | None, typer.Option("--queue", help="Only those of this queue.", metavar="QUEUE")]
Everything = Annotated[bool, typer.Option("--all", help="All of them, or all of one queue.")]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Look at what failed for good.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_)
    for command in (show, requeue, discard):
        group.command()(command)
    app.add_typer(group, name="dead-letters")


def list_(
    *,
    queue: InQueue = None,
    limit: Annotated[int, typer.Option(min=1, max=letters.MOST, help="How many at most.", metavar="N")] = 100,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the newest first."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> list[Letter]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await letters.listed(connection, queue, limit)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    if not found:
        say("There are no dead letters.")
        return
    rows = [
        (each.id, each.queue, each.about, each.attempts, on_wall(each.held_at, wall), _line(each.error))
        for each in found
    ]
    print_table("Dead letters", ["id", "queue", "about", "tries", "since", "error"], rows)


def show(which: Which, *, zone: Zone = None, as_json: AsJson = False) -> None:
    """Show one dead letter with its data, its error and its history."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> Shown:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await letters.show(connection, which)

    found = session.run(work())
    data = written(found.as_data(), wall)
    if as_json:
        print_json(data)
        return
    letter = found.letter
    say(f"{letter.id} in {letter.queue}, about {letter.about}; tried {letter.attempts} times.")
    say(hide_in_text(letter.error))
    print_table("Data", ["field", "value"], list(data["data"].items()))
    rows = [(on_wall(event.at, wall), event.what, _line(event.error or "")) for event in found.history]
    print_table("History", ["when", "what", "error"], rows)


def requeue(
    several: Several = None, *, everything: Everything = False, queue: InQueue = None, as_json: AsJson = False
) -> None:
    """Try dead letters once more.

    One that works then leaves nothing behind but a line in the audit.
    """
    _move(letters.requeue, "requeued", several or [], queue, everything=everything, as_json=as_json)


def discard(
    several: Several = None,
    *,
    everything: Everything = False,
    queue: InQueue = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Let dead letters go, for good."""
    consent(f"Discard {', '.join(several or ['all'])} for good?", yes=yes)
    _move(letters.discard, "discarded", several or [], queue, everything=everything, as_json=as_json)


def _move(
    act: Callable[[Database, str, str], Awaitable[Letter]],
    done: str,
    several: Sequence[str],
    queue: str | None,
    *,
    everything: bool,
    as_json: bool,
) -> None:
    """Do it for each and report on each; a problem with the only one is the command's own."""
    if bool(several) == everything:
        raise Problem("dead_letter.which", "Name the dead letters, or say --all, but not both.")
    if queue and several:
        raise Problem("dead_letter.which", "--queue goes with --all; what is named needs no queue.")
    settings = session.begin()
    outcomes = session.run(_each(settings, act, several, queue))
    if several and len(outcomes) == 1 and outcomes[0].problem:
        raise outcomes[0].problem
    if as_json:
        print_json([each.as_data(done) for each in outcomes])
    else:
        for each in outcomes:
            say(f"{each.id}: {each.problem.sentence if each.problem else f'{done}.'}")
        if not outcomes:
            say("There are no dead letters.")
    if any(each.problem for each in outcomes):
        raise typer.Exit(Exit.FAILED)


async def _each(
    settings: Settings,
    act: Callable[[Database, str, str], Awaitable[Letter]],
    several: Sequence[str],
    queue: str | None,
) -> list[bulk.Outcome[str, Letter]]:
    async with session.ready_database(settings) as database:
        named = list(several)
        if not named:
            async with database.connection() as connection:
                named = [letter.id for letter in await letters.listed(connection, queue)]
        return await bulk.each(named, partial(act, database, OPERATOR))


def _line(text: str) -> str:
    first = hide_in_text(next(iter(text.splitlines()), ""))
    return first if len(first) <= LONGEST_SHOWN else first[: LONGEST_SHOWN - 1] + "…"
