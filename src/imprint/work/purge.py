"""Purge: remove the bytes of what was deleted or replaced, after a grace period; the rows stay, and say so."""

from dataclasses import dataclass
from uuid import UUID

import structlog

from imprint.problem import Unavailable
from imprint.store.db import Database
from imprint.store.query import Nothing, query
from imprint.work.stores import Stores

log = structlog.get_logger()

PAGE = 500


@dataclass(frozen=True)
class Due:
    """An object whose bytes are to go."""

    id: UUID
    content_id: UUID
    store: str
    key: str


@dataclass(frozen=True)
class Purged:
    """A content of which no bytes are left."""

    id: UUID


DUE = query("content_purge_due", Due)
OBJECT = query("content_purge_object", Nothing)
CONTENT = query("content_purged", Purged)


async def purge(database: Database, stores: Stores) -> int:
    """Remove what is due; bytes first, so that a row that says "gone" is right. Say how many objects went."""
    gone = 0
    while True:
        async with database.connection() as connection:
            page = await DUE.all(connection, PAGE)
        went = 0
        for due in page:
            try:
                await stores.of(due.store).delete(due.key)
            except Unavailable as problem:
                log.warning("bytes cannot be removed now", object=str(due.id), why=problem.sentence)
                continue
            async with database.transaction("purge", "its time is over") as connection:
                await OBJECT.run(connection, due.id)
            went += 1
        gone += went
        if len(page) < PAGE or not went:
            break
    async with database.transaction("purge", "its time is over") as connection:
        await CONTENT.all(connection)
    return gone
