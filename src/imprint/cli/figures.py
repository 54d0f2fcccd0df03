"""Figures on the command line: what publishing has done so far."""

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.settings import Settings
from imprint.work.figures import Figures
from imprint.work.figures import figures as count


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(figures)


def figures(*, as_json: AsJson = False) -> None:
    """Count what publishing has done: attempts by how they ended, recoveries, rate limits, drift."""
    seen = session.run(_figures(session.begin()))
    if as_json:
        print_json(seen.as_data())
        return
    rows = [(each.outcome, each.attempts, f"{each.seconds / each.attempts:.2f}") for each in seen.attempts]
    print_table("Attempts", ["", "how many", "seconds each"], rows)
    for each in seen.open:
        say(f"{each.publications} publications are {each.status}.")
    drift = seen.drift
    if drift.attempts:
        late = f"{drift.p50:.2f} s after their time, 99 % within {drift.p99:.2f} s"
        say(f"In the last hour {drift.attempts} began {late}.")
    say(f"{seen.duplicates} were accepted twice.")


async def _figures(settings: Settings) -> Figures:
    async with session.ready_database(settings) as database, database.connection() as connection:
        return await count(connection)
