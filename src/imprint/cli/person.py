"""The commands about people: the first code, who is here, invite, disable, enable, a new password."""

import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, TypeVar

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import chosen, on_wall, written
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import first_code
from imprint.work import invitation as invitations
from imprint.work import person as people
from imprint.work.person import OPERATOR, Person
from imprint.work.scope import Role

Result = TypeVar("Result")
Which = Annotated[str, typer.Argument(help="The person's name or id.", metavar="PERSON")]


def register(app: typer.Typer) -> None:
    """Add the commands, most of them under one name."""
    group = typer.Typer(help="Look after who may sign in.", no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_)
    for command in (invite, disable, enable, password):
        group.command()(command)
    app.add_typer(group, name="person")
    app.command()(code)


def code(*, as_json: AsJson = False) -> None:
    """Make a new code for the first account.

    The code before it is good for nothing.
    """
    settings = session.begin()

    async def work(database: Database) -> str:
        async with database.connection() as connection:
            return await first_code.required(connection)

    made = _on(settings, work)
    if as_json:
        print_json({"code": made})
    else:
        say(f"{made}\n\nOpen Imprint in a browser and make the first account with it; it can be used once.")


def list_(*, as_json: AsJson = False) -> None:
    """List everybody who may sign in."""
    settings = session.begin()

    async def work(database: Database) -> list[Person]:
        async with database.connection() as connection:
            return await people.listed(connection)

    found = _on(settings, work)
    wall = chosen(settings, None)
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    names = {each.id: each.name for each in found}
    rows = [
        (each.name, each.role, names.get(each.looks_at or "", ""), on_wall(each.seen_at, wall),
         "disabled" if each.disabled_at else "")
        for each in found
    ]  # fmt: skip
    print_table("People", ["name", "role", "reads", "seen", ""], rows)
    if not found:
        say("\nNobody is here yet: run `imprint code`.")


def invite(
    *,
    role: Annotated[
        Role, typer.Option("--role", help="What they will be; a reader looks at your things.", metavar="ROLE")
    ] = Role.MEMBER,
    label: Annotated[str, typer.Option("--for", help="Whom it is for.", metavar="TEXT")] = "",
    days: Annotated[int, typer.Option(min=1, max=30, help="How many days it can be used.", metavar="N")] = 7,
    as_json: AsJson = False,
) -> None:
    """Invite somebody.

    Prints a code that can be used once. Roles are administrator, member and reader.
    """
    settings = session.begin()

    async def work(database: Database) -> invitations.Made:
        async with database.connection() as connection:
            if not await people.any_there(connection):
                raise Problem("first.missing", "Nobody is here yet: make the first account with `imprint code`.")
        return await invitations.invite(database, OPERATOR, role, label, timedelta(days=days))

    made = _on(settings, work)
    wall = chosen(settings, None)
    if as_json:
        print_json(written(made.as_data(), wall))
    else:
        say(f"{made.code}\n\nWith this code somebody becomes a {role}, until {on_wall(made.expires_at, wall)}.")


def disable(which: Which, *, as_json: AsJson = False) -> None:
    """Let a person in no more.

    Their sessions end at once; what they have scheduled goes on.
    """
    _change(which, lambda d, p: people.disable(d, OPERATOR, p), "is disabled", as_json=as_json)


def enable(which: Which, *, as_json: AsJson = False) -> None:
    """Let a person in again."""
    _change(which, lambda d, p: people.enable(d, OPERATOR, p), "is enabled", as_json=as_json)


def password(which: Which, *, as_json: AsJson = False) -> None:
    """Give a person a new password.

    It is asked for, or read from standard input. Every session of theirs ends.
    """
    if sys.stdin.isatty():
        new = typer.prompt("The new password", hide_input=True, confirmation_prompt=True)
    else:
        new = sys.stdin.readline().rstrip("\n")

    async def act(database: Database, person: str) -> Person:
        await people.set_password(database, OPERATOR, person, new)
        async with database.connection() as connection:
            return await people.show(connection, person)

    _change(which, act, "has a new password", as_json=as_json)


def _change(which: str, act: Callable[[Database, str], Awaitable[Person]], done: str, *, as_json: bool) -> None:
    settings = session.begin()

    async def work(database: Database) -> Person:
        async with database.connection() as connection:
            person = await people.find(connection, which)
        return await act(database, person)

    changed = _on(settings, work)
    if as_json:
        print_json(written(changed.as_data(), chosen(settings, None)))
    else:
        say(f"{changed.name} {done}.")


def _on(settings: Settings, work: Callable[[Database], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with session.ready_database(settings) as database:
            return await work(database)

    return session.run(run())
