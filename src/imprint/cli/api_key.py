"""The commands about API keys: what programs come in with."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import chosen, on_wall, written
from imprint.work import api_key as api_keys
from imprint.work import person as people
from imprint.work.api_key import ApiKey, Made
from imprint.work.person import OPERATOR
from imprint.work.scope import Scope

SCOPES = ", ".join(Scope)


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(
        help="Make and revoke the keys that programs come in with.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command()(add)
    group.command("list")(list_)
    group.command()(revoke)
    app.add_typer(group, name="api-key")


def add(
    label: Annotated[str, typer.Argument(help="What it is for.", metavar="LABEL")],
    *,
    scopes: Annotated[
        list[str], typer.Option("--scope", help=f"What it may do; may be repeated: {SCOPES}.", metavar="SCOPE")
    ],
    person: Annotated[str, typer.Option("--person", help="Whose key it is.", metavar="PERSON")] = OPERATOR,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="How many days it is good; for good if left out.", metavar="N")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key.

    It is shown this once.
    """
    settings = session.begin()

    async def work() -> Made:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                whose = await people.find(connection, person)
            lasts = None if days is None else timedelta(days=days)
            return await api_keys.add(database, OPERATOR, whose, label, scopes, lasts)

    made = session.run(work())
    if as_json:
        print_json(written({**made.key.as_data(), "secret": made.secret}, chosen(settings, None)))
    else:
        say(f"{made.secret}\n\nKeep it now: it is not shown again.")


def list_(*, as_json: AsJson = False) -> None:
    """List the keys of everybody."""
    settings = session.begin()

    async def work() -> list[ApiKey]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await api_keys.listed(connection, None)

    found = session.run(work())
    wall = chosen(settings, None)
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    rows = [
        (f"{each.prefix}…", each.person, each.label, ", ".join(each.scopes), on_wall(each.last_used_at, wall),
         "revoked" if each.revoked_at else on_wall(each.expires_at, wall))
        for each in found
    ]  # fmt: skip
    print_table("API keys", ["key", "person", "for", "may", "used", "ends"], rows)


def revoke(
    which: Annotated[str, typer.Argument(help="The first letters of the key, or of its id.", metavar="KEY")],
    *,
    as_json: AsJson = False,
) -> None:
    """Make a key good for nothing, at once."""
    settings = session.begin()

    async def work() -> UUID:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                key = await api_keys.find(connection, which)
            await api_keys.revoke(database, OPERATOR, key, of=None)
            return key

    key = session.run(work())
    if as_json:
        print_json({"id": str(key), "revoked": True})
    else:
        say("It opens nothing any more.")
