"""Connecting anew: what is set for a whole database is heard by connections that are opened afterwards."""

from imprint.store.db import Database


async def reconnect(database: Database) -> None:
    """Let every connection be opened anew before it is used again: those that see everything, and the API's."""
    await database.pool.expire_connections()
    if database.walls is not None:
        for pool in database.walls.open.values():
            await pool.expire_connections()
