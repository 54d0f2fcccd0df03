"""Holds: what waits for an account that is connected by now is let go; nothing waits for ever by mistake."""

from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.post import Row

FREE = query("account_free_held", Row)


async def free_held(database: Database) -> int:
    """Wake what waits for nothing any more, and say how many there were."""
    async with database.transaction("clock", "its account is connected") as connection:
        return len(await FREE.all(connection))
