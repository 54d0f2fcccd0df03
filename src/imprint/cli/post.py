"""The commands about posts: write them and look at them. Their files and their moves have files of their own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import post_files, post_moves, session
from imprint.cli.named import Which, post_named
from imprint.cli.output import AsJson, print_json, print_table, say, short
from imprint.cli.post_files import content_named
from imprint.cli.post_shown import look, print_post, tell
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.work import post as posts
from imprint.work.attach import attach
from imprint.work.person import OPERATOR
from imprint.work.post import Listed, Shown
from imprint.work.post_fields import checked

Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help='Another field, such as isMature=true or tags=["sea"]; may be repeated.',
        metavar="FIELD=VALUE",
    ),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.", metavar="TAG")]
Title = Annotated[str | None, typer.Option("--title", help="The title.", metavar="TEXT")]
Description = Annotated[str | None, typer.Option("--description", help="What it is.", metavar="TEXT")]
BodyFile = Annotated[
    Path | None, typer.Option("--body-file", help="The file with the body of an article.", metavar="FILE")
]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Write posts and say when they go out.", no_args_is_help=True, rich_markup_mode=None)
    group.command()(create)
    group.command("list")(list_)
    files = (post_files.attach, post_files.detach, post_files.arrange, post_files.describe)
    for command in (show, edit, *files, *post_moves.COMMANDS):
        group.command()(command)
    app.add_typer(group, name="post")


def create(
    *,
    title: Title = None,
    description: Description = None,
    article: Annotated[bool, typer.Option("--article", help="An article, which needs no file.")] = False,
    body_file: BodyFile = None,
    tags: Tags = None,
    fields: Fields = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", help="A file, or the id of content; may be repeated.", metavar="FILE"),
    ] = None,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Write a post.

    It is in review until it is declared ready.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    given = _fields(title, description, body_file, tags, fields)
    given = {"zone": wall.key, **({"kind": "article"} if article else {}), **given}
    shown = session.run(_create(settings, given, files or []))
    next_ = f"When nothing is missing: imprint post ready {short(shown.post.id)}"
    tell(shown, f"Wrote {shown.post.id}, in review. {next_}", wall, as_json=as_json)


def list_(
    *,
    status: Annotated[str | None, typer.Option("--status", help="Only those in this state.", metavar="STATE")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.", metavar="N")] = 100,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """List posts, the newest first."""
    settings = session.begin()
    wall = chosen(settings, zone)
    found, counts = session.run(_list(settings, status, limit))
    if as_json:
        print_json(written({"posts": [each.as_data() for each in found], "counts": counts}, wall))
        return
    rows = [(short(p.id), p.title, p.status, p.files, p.out or "", on_wall(p.next_at, wall)) for p in found]
    print_table("Posts", ["id", "title", "state", "files", "out", "next"], rows)
    say("\n" + (", ".join(f"{count} {state}" for state, count in counts.items()) or "Nothing was written yet."))


def show(which: Which, *, zone: Zone = None, as_json: AsJson = False) -> None:
    """Show one post, its files and where it goes."""
    settings = session.begin()
    shown = session.run(_show(settings, which))
    wall = chosen(settings, zone)
    if as_json:
        print_json(written(shown.as_data(), wall))
        return
    print_post(shown, wall)


def edit(
    which: Which,
    *,
    title: Title = None,
    description: Description = None,
    body_file: BodyFile = None,
    tags: Tags = None,
    fields: Fields = None,
    revision: Annotated[
        int | None, typer.Option("--revision", help="Only if this is still the revision.", metavar="N")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a post that has not left.

    What is not named stays as it is.
    """
    settings = session.begin()
    changes = _fields(title, description, body_file, tags, fields)
    shown = session.run(_edit(settings, which, changes, revision))
    tell(shown, f"Changed {shown.post.id}.", chosen(settings, None), as_json=as_json)


async def _create(settings: Settings, given: Mapping[str, object], files: Sequence[str]) -> Shown:
    checked(given)  # before any file is uploaded
    async with session.ready_database(settings, create=True) as database:
        contents = [await content_named(database, settings, file) for file in files]
        made = await posts.create(database, OPERATOR, given)
        for each in contents:
            await attach(database, OPERATOR, made, each)
        return await look(database, made)


async def _list(settings: Settings, status: str | None, limit: int) -> tuple[list[Listed], dict[str, int]]:
    async with session.ready_database(settings) as database, database.connection() as connection:
        found = await posts.listed(connection, OPERATOR, status=status, limit=limit)
        return found, await posts.counts(connection, OPERATOR)


async def _show(settings: Settings, which: str) -> Shown:
    async with session.ready_database(settings) as database:
        return await look(database, await post_named(database, which))


async def _edit(settings: Settings, which: str, changes: Mapping[str, object], revision: int | None) -> Shown:
    async with session.ready_database(settings) as database:
        return await posts.edit(database, OPERATOR, await post_named(database, which), changes, revision=revision)


def _fields(
    title: str | None,
    description: str | None,
    body_file: Path | None,
    tags: Sequence[str] | None,
    fields: Sequence[str] | None,
) -> dict[str, object]:
    given: dict[str, object] = {}
    for each in fields or []:
        name, equals, text = each.partition("=")
        if not equals:
            raise Problem("post.invalid", f"{name}: write FIELD=VALUE.")
        try:
            given[name] = json.loads(text)
        except ValueError:
            given[name] = text  # a plain word needs no quotes
    named = {"title": title, "description": description, "tags": tags}
    given |= {name: value for name, value in named.items() if value is not None}
    if body_file is not None:
        try:
            given["body"] = body_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise Problem("post.unreadable_body", f"{body_file} cannot be read as text.") from None
    return given
