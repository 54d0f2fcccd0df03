"""Simulating on the command line: when everything that is planned will go out."""

from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say, short
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.decisions.schedule import parse
from imprint.settings import Settings
from imprint.work import account as accounts
from imprint.work import simulate as simulates
from imprint.work.person import OPERATOR
from imprint.work.simulate import SENTENCES, Simulation


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)


def simulate(
    *,
    on: Annotated[
        list[str] | None, typer.Option("--account", help="Only on this account; may be repeated.", metavar="ACCOUNT")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help="Only what goes out up to then, such as 2030-05-01T18:00.", metavar="TIME"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many are listed at most.", metavar="N")] = 100,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Tell when everything will go out.

    Everything that is planned, in order: its time, its turn in a batch, the pace of its account, circuits that are
    open, accounts that wait for you, and what will be too late. Nothing is changed. What waits only for its own time
    goes then; every other time is an estimate.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    told = session.run(_simulated(settings, on or [], until, wall))
    if as_json:
        print_json(written(told.as_data(limit), wall))
        return
    if not told.forecasts:
        say("Nothing is planned." if until is None else "Nothing goes out until then.")
        return
    _going(told, limit, wall)
    _staying(told, limit)
    for note in told.notes:
        say(f"\n{note}")


async def _simulated(settings: Settings, on: list[str], until: str | None, wall: ZoneInfo) -> Simulation:
    moment = parse(until, wall) if until else None
    async with session.ready_database(settings) as database:
        async with database.connection() as connection:
            named = [await accounts.find(connection, OPERATOR, each) for each in on]
        told = await simulates.simulate(database, OPERATOR, late_hours=settings.late_hours)
    if moment is not None:
        simulates.refuse_past(told.world, moment)
        told = told.until(moment)
    return told.on(named) if named else told


def _going(told: Simulation, limit: int, wall: ZoneInfo) -> None:
    going = told.going
    if not going:
        return
    rows = [
        (
            ("about " if each.estimated else "") + on_wall(each.at, wall, seconds=True),
            each.of.title,
            told.name(each),
            short(each.of.id),
            SENTENCES[each.why],
        )
        for each in going[:limit]
    ]
    print_table(f"What goes out (times in {wall.key})", ["when", "post", "account", "publication", "why then"], rows)
    if len(going) > limit:
        say(f"And {len(going) - limit} more; --limit shows more of them.")
    shares = [
        (
            each.lane.account,
            each.goes,
            on_wall(each.first_at, wall),
            on_wall(each.last_at, wall),
            each.stays or "",
        )
        for each in told.shares
    ]
    print_table("\nAccounts", ["account", "go out", "first", "last", "stay"], shares)
    go = "1 goes out" if len(going) == 1 else f"{len(going)} go out, the last one"
    say(f"\n{go} on {on_wall(going[-1].at, wall)}.")


def _staying(told: Simulation, limit: int) -> None:
    staying = told.staying
    if not staying:
        return
    rows = [(each.of.title, told.name(each), short(each.of.id), SENTENCES[each.why]) for each in staying[:limit]]
    print_table("\nWhat does not go out by itself", ["post", "account", "publication", "why"], rows)
    if len(staying) > limit:
        say(f"And {len(staying) - limit} more; --limit shows more of them.")
    for command in dict.fromkeys(command for each in staying[:limit] if (command := told.do(each))):
        say(f"  → {command}")
