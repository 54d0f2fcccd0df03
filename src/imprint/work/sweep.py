"""A sweep: something that goes through everything, one at a time, and goes on where it was stopped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from imprint.problem import Busy
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query


@dataclass(frozen=True)
class Taken:
    """Whether a lock was to be had, or given back."""

    taken: bool


@dataclass(frozen=True)
class Stand:
    """How far a sweep had come, and what it had counted by then."""

    cursor: str
    tally: str


LOCK = query("sweep_lock", Taken)
UNLOCK = query("sweep_unlock", Taken)
READ = query("sweep_read", Stand)
MOVED = query("sweep_moved", Nothing)
DONE = query("sweep_done", Nothing)


@asynccontextmanager
async def alone(database: Database, name: str) -> AsyncIterator[Link]:
    """Be the only one with this sweep, for as long as the body runs; its connection is the caller's to use."""
    async with database.connection() as connection:
        if not (await LOCK.one(connection, name)).taken:
            raise Busy("sweep.busy", f"Somebody else runs {name} at this moment; wait until that is done.")
        try:
            yield connection
        finally:
            if not connection.is_closed():
                await UNLOCK.one(connection, name)
