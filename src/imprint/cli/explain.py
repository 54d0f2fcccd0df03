"""Explaining on the command line: why a post did, or did not, go out."""

from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, written
from imprint.settings import Settings
from imprint.work import explain as explains
from imprint.work.explain import Explained, Told
from imprint.work.story import Step

# Until there are people who sign in, whoever has the command line is the operator.
OPERATOR = "operator"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


def explain(
    which: Annotated[
        str, typer.Argument(help="The id of a post or of a publication, or the first letters of it.", metavar="POST")
    ],
    *,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Tell why a post did, or did not, go out.

    The whole story of each of its publications: who did what and when, what the platform said, what it waits for and
    why, and what happens next.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    told = session.run(_explained(settings, which))
    if as_json:
        print_json(written(told.as_data(), wall))
        return
    say(f"“{told.found.title}” ({told.found.post}), {'deleted' if told.found.deleted else told.found.status}")
    _steps(f"\nThe post (times in {wall.key})", told.steps, wall)
    for each in told.publications:
        _tell(each, wall)
    if not told.publications:
        say(f"\nNext: {told.next}")


async def _explained(settings: Settings, which: str) -> Explained:
    async with session.ready_database(settings) as database, database.connection() as connection:
        return await explains.explain(connection, OPERATOR, which, late_hours=settings.late_hours)


def _tell(told: Told, wall: ZoneInfo) -> None:
    of = told.standing
    file = f", file {of.file}" if of.file else ""
    _steps(f"\nOn {of.account} ({of.platform}{file}): {of.status}", told.steps, wall)
    when = f" ({told.next.at.astimezone(wall):%Y-%m-%d %H:%M:%S})" if told.next.at and not told.next.over else ""
    say(f"Next: {told.next.sentence}{when}")
    for command in told.next.do:
        say(f"  → {command}")


def _steps(title: str, steps: list[Step], wall: ZoneInfo) -> None:
    rows = [(f"{step.at.astimezone(wall):%Y-%m-%d %H:%M:%S}", _words(step), step.who or "") for step in steps]
    print_table(title, ["when", "what happened", "who"], rows)


def _words(step: Step) -> str:
    return f"{step.sentence} ({step.evidence})" if step.evidence else step.sentence
