"""A throw-away database: made on a server for somebody who needs one for a while, and dropped in the end."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from imprint.problem import Problem
from imprint.store.db import GONE, connect

# The server may still be recovering when the database is to be dropped.
TRIES, AGAIN = 30, 1.0


@asynccontextmanager
async def throwaway(url: str, name: str) -> AsyncIterator[str]:
    """Make a database whose name begins like this, and give its URL; who is still connected in the end is cut off."""
    made = f"{name}_{secrets.token_hex(4)}"
    await _execute(url, f'CREATE DATABASE "{made}"')
    try:
        yield urlsplit(url)._replace(path=f"/{made}").geturl()
    finally:
        await _dropped(url, made)


async def _dropped(url: str, name: str) -> None:
    for left in range(TRIES, 0, -1):
        try:
            await _execute(url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        except (*GONE, Problem):
            if left == 1:
                raise
            await asyncio.sleep(AGAIN)
        else:
            return


async def _execute(url: str, statement: str) -> None:
    connection = await connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
