"""Resolving on the command line: a person says whether something is out that nobody else can tell."""

from typing import Annotated
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, say
from imprint.settings import Settings
from imprint.work import resolve as resolves
from imprint.work.person import OPERATOR
from imprint.work.resolve import Said

TOLD = {
    Said.OUT: "It is out, as you say.",
    Said.SENT_AGAIN: "It is not out, as you say; it is sent again now.",
    Said.DROPPED: "It is not out, as you say, and it will not be sent.",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(resolve)


def resolve(
    which: Annotated[
        str,
        typer.Argument(
            help="The publication's id, or the first letters of it; or its post's, if one of that is unknown.",
            metavar="PUBLICATION",
        ),
    ],
    *,
    published: Annotated[
        str | None, typer.Option("--published", help="It is out, and can be seen here.", metavar="URL")
    ] = None,
    not_published: Annotated[
        bool, typer.Option("--not-published", help="It is not out: it is sent again now.")
    ] = False,
    drop: Annotated[bool, typer.Option("--drop", help="With --not-published: it is not wanted any more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say whether something is out when nobody else can tell.

    Look at the platform first. What you say is written down with your name.
    """
    if (published is None) != not_published:
        raise typer.BadParameter("say either --published URL or --not-published")
    if drop and not not_published:
        raise typer.BadParameter("--drop goes with --not-published")
    publication, said = session.run(_resolved(session.begin(), which, published, drop=drop))
    if as_json:
        print_json({"id": str(publication), "became": said.value, "url": published})
    else:
        say(TOLD[said])


async def _resolved(settings: Settings, which: str, url: str | None, *, drop: bool) -> tuple[UUID, Said]:
    async with session.ready_database(settings) as database:
        async with database.connection() as connection:
            publication = await resolves.find(connection, OPERATOR, which)
        if url is not None:
            return publication, await resolves.published(database, OPERATOR, publication, url)
        return publication, await resolves.not_published(database, OPERATOR, publication, drop=drop)
