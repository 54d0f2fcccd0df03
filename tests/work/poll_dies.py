"""Processes that die in the middle of a poll: `python -m tests.work.poll_dies`, which takes orders as `dies` does.

The steps are: before every statement and after it, before a transaction is committed and after it, before the source is
asked and after it has answered.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from imprint import log
from imprint.engine.queue import Job
from imprint.store.db import Database, open_database
from imprint.store.query import Link, Query
from imprint.work.fetcher import Fetcher
from imprint.work.poll import Poller
from tests.work import dies
from tests.work.dies import Steps
from tests.work.serials import settings_for


def watched(steps: Steps) -> None:
    """Make every step of this process count."""

    def around(inner: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stepping(*given: Any, **named: Any) -> Any:
            steps.take()
            done = await inner(*given, **named)
            steps.take()
            return done

        return stepping

    for owner, name in ((Query, "all"), (Query, "first"), (Query, "run"), (Fetcher, "fetch")):
        setattr(owner, name, around(getattr(owner, name)))
    transaction = Database.transaction

    @asynccontextmanager
    async def committing(self: Database, actor: str, reason: str = "") -> AsyncIterator[Link]:
        async with transaction(self, actor, reason) as connection:
            yield connection
            steps.take()
        steps.take()

    setattr(Database, "transaction", committing)  # noqa: B010 - a method of a frozen class


async def obey(order: dict[str, Any]) -> int:
    """Poll a source and give the number of steps it took."""
    steps = Steps(order["fatal"])
    async with open_database(order["url"], size=3) as database:
        watched(steps)
        poller = Poller.of(database, settings_for(order["base"], Path(order["home"])))
        await poller.poll(Job("poll", order["about"]))
        await poller.fetcher.close()
    return steps.taken


if __name__ == "__main__":
    log.configure("json", "error")  # the answers are on standard output
    dies.obey = obey
    dies.main()
