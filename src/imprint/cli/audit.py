"""The commands about the audit: read it, and find out whether anybody has touched it."""

from typing import Annotated
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.problem import Exit
from imprint.work import audit as audits
from imprint.work.audit import Line, Verified


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Read and check the history of everything.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_)
    group.command()(verify)
    app.add_typer(group, name="audit")


def list_(
    *,
    row: Annotated[UUID | None, typer.Option("--row", help="Only of the thing with this id.", metavar="ID")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.", metavar="N")] = 100,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """List what happened, the newest first."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> list[Line]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await audits.listed(connection, row=row, limit=limit)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    rows = [
        (on_wall(each.at, wall), each.lifecycle, str(each.row_id)[:8], each.move, each.source or "", each.target,
         each.actor, each.reason or "")
        for each in found
    ]  # fmt: skip
    print_table("Audit", ["when", "thing", "id", "move", "from", "to", "who", "why"], rows)


def verify(*, as_json: AsJson = False) -> None:
    """Find out whether anybody has touched the audit.

    Checks the hash of every line and of every seal, and every row against its last line. Exit code 7 when something is
    wrong. Keep the newest seal somewhere else: as long as it is found again, nothing before it was touched.
    """
    settings = session.begin()

    async def work() -> Verified:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await audits.verify(connection)

    found = session.run(work())
    if as_json:
        told = {"lines": found.lines, "seals": found.seals, "newestSeal": found.newest, "findings": found.findings}
        print_json(told)
    else:
        for finding in found.findings:
            say(finding)
        verdict = f"{len(found.findings)} findings." if found.findings else "Nothing was touched."
        say(f"{found.lines} lines and {found.seals} seals: {verdict}")
        if found.newest:
            say(f"The newest seal is {found.newest}")
    if found.findings:
        raise typer.Exit(Exit.ATTENTION)
