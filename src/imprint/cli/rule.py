"""The commands about rules: a post for every new chapter of a series."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.length import read_length
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, written
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work import rule as rules
from imprint.work import series as serials
from imprint.work.person import OPERATOR
from imprint.work.rule import Rule

Which = Annotated[str, typer.Argument(help="The rule's id, or the first letters of it.", metavar="RULE")]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Make a post of every new chapter.", no_args_is_help=True, rich_markup_mode=None)
    group.command()(add)
    group.command("list")(list_)
    for command in (enable, disable, remove):
        group.command()(command)
    app.add_typer(group, name="rule")


def add(
    series: Annotated[str, typer.Argument(help="The series' id, or the first letters of it.", metavar="SERIES")],
    *,
    title: Annotated[
        str, typer.Option("--title", help="The title, with {series}, {number}, {title}, {url}.", metavar="TEMPLATE")
    ] = "{series} {number}",
    body: Annotated[
        str | None, typer.Option("--body", help="The body, with the same fields.", metavar="TEMPLATE")
    ] = None,
    body_file: Annotated[
        Path | None, typer.Option("--body-file", help="The file with the body.", metavar="FILE")
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", help="A tag, with the same fields; may be repeated.", metavar="TEMPLATE"),
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--account", help="On this account; may be repeated.", metavar="ACCOUNT")
    ] = None,
    delay: Annotated[
        str, typer.Option("--delay", help="How long after it was found, such as 30m, 2h or 1d.", metavar="TIME")
    ] = "0s",
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Make a post of every chapter of a series that is found from now on."""
    settings = session.begin()
    wall = chosen(settings, zone)
    text = _body(body, body_file)
    after = read_length(delay, "rule.bad_delay")

    async def work() -> Rule:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                of = await serials.find(connection, OPERATOR, series)
                named = [await accounts.find(connection, OPERATOR, each) for each in on or []]
            return await rules.add(
                database, OPERATOR, of, named, title=title, body=text, tags=tags or [], delay=after, zone=wall.key
            )

    made = session.run(work())
    if as_json:
        print_json(written(made.as_data(), wall))
    else:
        say(f"Every new chapter of {made.series} becomes a post on {', '.join(made.accounts)}.")


def list_(*, zone: Zone = None, as_json: AsJson = False) -> None:
    """List the rules."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> list[Rule]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await rules.listed(connection, OPERATOR)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    rows = [
        (str(r.id)[:8], r.series, r.title, ", ".join(r.accounts), r.delay, "" if r.enabled else "off", r.posts or "")
        for r in found
    ]
    print_table("Rules", ["id", "series", "title", "accounts", "delay", "", "posts"], rows)


def enable(which: Which, *, as_json: AsJson = False) -> None:
    """Turn a rule on again, for chapters that are found from now on."""
    _change(which, rules.enable, "enabled", as_json=as_json)


def disable(which: Which, *, as_json: AsJson = False) -> None:
    """Turn a rule off."""
    _change(which, rules.disable, "disabled", as_json=as_json)


def remove(which: Which, *, as_json: AsJson = False) -> None:
    """Remove a rule; its posts stay."""
    _change(which, rules.remove, "removed", as_json=as_json)


def _change(which: str, act: Callable[[Database, str, UUID], Awaitable[None]], done: str, *, as_json: bool) -> None:
    settings = session.begin()

    async def work() -> UUID:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                rule = await rules.find(connection, OPERATOR, which)
            await act(database, OPERATOR, rule)
            return rule

    rule = session.run(work())
    if as_json:
        print_json({"id": str(rule), done: True})
    else:
        say(f"The rule {str(rule)[:8]} is {done}.")


def _body(given: str | None, file: Path | None) -> str:
    if given is not None and file is not None:
        raise Problem("rule.two_bodies", "Give the body as text or as a file, not both.")
    if file is None:
        return "{title}\n\n{url}" if given is None else given
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise Problem("rule.unreadable_body", f"{file} cannot be read as text.") from None
