"""Named: how a person names posts and accounts on the command line, and how they are found."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import typer

from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work import post as posts
from imprint.work.person import OPERATOR

Which = Annotated[str, typer.Argument(help="The post's id, or the first letters of it.", metavar="POST")]
Several = Annotated[list[str], typer.Argument(help="Ids of posts, or the first letters of them.", metavar="POST…")]
OnAccounts = Annotated[
    list[str] | None, typer.Option("--account", help="Only on this account; may be repeated.", metavar="ACCOUNT")
]


async def post_named(database: Database, which: str) -> UUID:
    """Find a post."""
    async with database.connection() as connection:
        return await posts.find(connection, OPERATOR, which)


async def accounts_named(database: Database, named: Sequence[str] | None) -> list[UUID]:
    """Find accounts."""
    async with database.connection() as connection:
        return [await accounts.find(connection, OPERATOR, each) for each in named or []]
