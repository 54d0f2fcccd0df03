"""The dry run on the command line: what would be sent of a post, word for word."""

from collections.abc import Sequence
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.problem import Exit
from imprint.settings import Settings
from imprint.work import account as accounts
from imprint.work import dry_run as runs
from imprint.work import post as posts
from imprint.work.dry_run import Fitted, Rehearsal, Shape
from imprint.work.person import OPERATOR
from imprint.work.stores import open_stores
from imprint.work.vault import Vault


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dry-run")(dry_run)


def dry_run(
    which: Annotated[str, typer.Argument(help="The post's id, or the first letters of it.", metavar="POST")],
    *,
    on: Annotated[
        list[str] | None,
        typer.Option("--account", help="On this account, planned or not; may be repeated.", metavar="ACCOUNT"),
    ] = None,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Show exactly what would be sent of a post.

    Every request, every rendition and what does not fit, for each account the post is planned on, or would go to.
    Nothing is sent and nothing is changed; secrets are hidden.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    found = session.run(_rehearsed(settings, which, on or []))
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
    else:
        for each in found:
            _tell(each, wall)
        say("Nothing was sent.")
    if any(each.problems for each in found):
        raise typer.Exit(Exit.ATTENTION)


async def _rehearsed(settings: Settings, which: str, on: Sequence[str]) -> list[Rehearsal]:
    async with session.ready_database(settings) as database:
        async with database.connection() as connection:
            post = await posts.find(connection, OPERATOR, which)
            only = [await accounts.find(connection, OPERATOR, each) for each in on]
        return await runs.dry_run(database, open_stores(settings), Vault.of(settings), OPERATOR, post, only=only)


def _tell(one: Rehearsal, wall: ZoneInfo) -> None:
    planned = one.publication
    when = f", {planned.status}, {on_wall(planned.due_at, wall)}" if planned else ""
    say(f"On {one.account.shown} ({one.account.platform}{when})")
    if one.note:
        say(f"  {one.note}")
    for problem in one.problems:
        say(f"  It would not go out: {problem.sentence}")
    for file in one.files:
        say(f"  {_file(file)}")
    for number, request in enumerate(one.requests, 1):
        print_request(number, request)
    say("")


def _file(file: Fitted) -> str:
    if not file.why:
        return f"{file.original.name} goes as it is."
    why = " ".join(each.sentence for each in file.why)
    if not file.made:
        return f"{file.original.name} goes as a rendition, which is made first: {why}"
    return f"{file.original.name} goes as a rendition of {file.sent.size} bytes, which is there: {why}"


def print_request(number: int, request: Shape) -> None:
    """Print a request as people may see it: secrets are hidden."""
    shown = request.shown
    say(f"\n  {number}. {shown['what']}\n     {shown['method']} {shown['url']}")
    for name, value in shown["headers"].items():
        say(f"     {name}: {value}")
    if request.sha256:
        say(f"     (the body's SHA-256: {request.sha256})")
    for line in _body(shown["body"]):
        say(f"       {line}")


def _body(body: Any) -> list[str]:
    match body:
        case None:
            return []
        case dict():
            return [_value(body)]
        case list():
            return [f"{name} = {_value(value)}" for name, value in body]
        case _:
            return str(body).splitlines()


def _value(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    more = [str(each) for name, each in value.items() if name != "file"]
    return f"{value['file']} ({', '.join(more)})"
