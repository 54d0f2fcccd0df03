"""The commands about the files of a post: give them, take them off, put them in order, describe them."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.named import Which, post_named
from imprint.cli.output import AsJson
from imprint.cli.post_shown import look, tell
from imprint.cli.zone import chosen
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import content
from imprint.work.add import add
from imprint.work.attach import arrange as arrange_files
from imprint.work.attach import attach as attach_file
from imprint.work.attach import describe as describe_file
from imprint.work.attach import detach as detach_file
from imprint.work.person import OPERATOR
from imprint.work.post import Shown
from imprint.work.stores import open_stores


def attach(
    which: Which,
    files: Annotated[list[str], typer.Argument(help="Files, or ids of content.", metavar="FILE…")],
    *,
    alt: Annotated[str, typer.Option("--alt", help="What can be seen, for those who cannot.", metavar="TEXT")] = "",
    as_json: AsJson = False,
) -> None:
    """Give a post files, in this order."""
    settings = session.begin()
    shown = session.run(_attach(settings, which, files, alt))
    tell(shown, f"{len(shown.files)} files.", chosen(settings, None), as_json=as_json)


def detach(
    which: Which,
    file: Annotated[int, typer.Argument(min=1, help="Which file: 1 is the first.", metavar="NUMBER")],
    *,
    as_json: AsJson = False,
) -> None:
    """Take a file off a post."""
    settings = session.begin()
    shown = session.run(_on_file(settings, which, file, lambda d, p, f: detach_file(d, OPERATOR, p, f)))
    tell(shown, f"{len(shown.files)} files.", chosen(settings, None), as_json=as_json)


def arrange(
    which: Which,
    order: Annotated[list[int], typer.Argument(min=1, help="The numbers of the files, as wanted.", metavar="NUMBER…")],
    *,
    as_json: AsJson = False,
) -> None:
    """Put the files of a post into another order.

    `imprint post arrange POST 3 1 2` puts the third one first.
    """
    settings = session.begin()
    shown = session.run(_arrange(settings, which, order))
    names = ", ".join(file.name for file in shown.files)
    tell(shown, f"In this order: {names}.", chosen(settings, None), as_json=as_json)


def describe(
    which: Which,
    file: Annotated[int, typer.Argument(min=1, help="Which file: 1 is the first.", metavar="NUMBER")],
    alt: Annotated[str, typer.Argument(help="What can be seen.", metavar="TEXT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Say what can be seen in a file."""
    settings = session.begin()
    shown = session.run(_on_file(settings, which, file, lambda d, p, f: describe_file(d, OPERATOR, p, f, alt)))
    tell(shown, f"Described {shown.files[file - 1].name}.", chosen(settings, None), as_json=as_json)


async def _attach(settings: Settings, which: str, files: Sequence[str], alt: str) -> Shown:
    async with session.ready_database(settings) as database:
        post = await post_named(database, which)
        for file in files:
            await attach_file(database, OPERATOR, post, await content_named(database, settings, file), alt)
        return await look(database, post)


async def _on_file(
    settings: Settings, which: str, number: int, act: Callable[[Database, UUID, UUID], Awaitable[object]]
) -> Shown:
    async with session.ready_database(settings) as database:
        post = await post_named(database, which)
        await act(database, post, _numbered(await look(database, post), [number])[0])
        return await look(database, post)


async def _arrange(settings: Settings, which: str, order: Sequence[int]) -> Shown:
    async with session.ready_database(settings) as database:
        post = await post_named(database, which)
        await arrange_files(database, OPERATOR, post, _numbered(await look(database, post), order))
        return await look(database, post)


def _numbered(shown: Shown, numbers: Sequence[int]) -> list[UUID]:
    if any(number > len(shown.files) for number in numbers):
        raise Problem("post.no_such_file", f"This post has {len(shown.files)} files.")
    return [shown.files[number - 1].id for number in numbers]


async def content_named(database: Database, settings: Settings, named: str) -> UUID:
    """Add a file of this machine, or find content by its id."""
    if Path(named).is_file():
        return (await add(database, open_stores(settings), settings, Path(named), OPERATOR)).file_id
    async with database.connection() as connection:
        return await content.find(connection, named)
