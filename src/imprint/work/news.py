"""News: finds chapters that nobody was told of, and has them told.

A job is not put into the queue while one for the same series is there, also when that one has read its list already and
is just ending. What came in at that moment is found here, a minute later at the latest.
"""

from imprint.engine.queue import Job, enqueue
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.post import Row

UNTOLD = query("delivery_forgotten", Row)
UNANNOUNCED = query("rule_forgotten", Row)


async def tell_forgotten(database: Database) -> int:
    """Put the jobs back that were lost, and say how many there were."""
    async with database.transaction("clock", "somebody was not told") as connection:
        untold = [Job("notify", str(row.id)) for row in await UNTOLD.all(connection)]
        unannounced = [Job("announce", str(row.id)) for row in await UNANNOUNCED.all(connection)]
        return await enqueue(connection, [*untold, *unannounced])
