"""What the tests of the failure points share: how one ends, and how the way to the database gets lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from imprint.platforms.login import Login
from imprint.store.db import open_database
from imprint.work.desk import Desk
from imprint.work.resolve import not_published
from tests.work.between import Between, between
from tests.work.posts import OWNER
from tests.work.stage import Stage

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CLAIM, SENDING, POSTING = "its time has come", "publish the uploaded file", "post the work to the address"
SUBMITTING, SAID = "upload the file into the stash", "the platform said so"


async def ends(play: Stage, publication: UUID, state: str = "success", seen: int = 1) -> None:
    """Let others finish it; then it is in this state, and out so often."""
    await play.out(publication)
    assert (await play.state(publication), await play.seen(publication)) == (state, [seen])


async def asks(play: Stage, publication: UUID) -> None:
    """Let others look for it; they find nothing and ask a person, who looks as well: it is sent, and out once."""
    await ends(play, publication, "unknown", 0)
    assert (await play.lines(publication))[-1] == "asks"
    assert await play.column("looks", publication) == 3
    await not_published(play.database, OWNER, publication)
    await ends(play, publication)


@asynccontextmanager
async def behind(play: Stage, home: Path) -> AsyncIterator[tuple[Between, Desk]]:
    """Give a way to the database on which answers get lost, and a desk at its far end."""
    async with between(play.database.url, home) as way, open_database(way.url) as database:
        yield way, replace(play.desk, database=database)


async def signs_in(play: Stage, account: UUID, login: Login) -> None:
    """Connect an account anew."""
    async with play.database.transaction(OWNER, "connected") as connection:
        await play.desk.vault.put(connection, account, login)
        await connection.execute(
            "UPDATE account SET status = 'connected', trouble = NULL, trouble_code = NULL WHERE id = $1", account
        )


async def true(so: object) -> bool:
    """Say whether something is so, for one who waits until it is."""
    return bool(so)


async def phase(play: Stage, publication: UUID, of: str) -> bool:
    """Say whether a publication is in a phase."""
    return bool(await play.column("phase", publication) == of)
