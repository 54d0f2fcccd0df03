"""A throw-away database: it is there, can be used, and is gone afterwards, whoever is still connected."""

import asyncpg
import pytest

from imprint.problem import Unavailable
from imprint.store.throwaway import throwaway


async def test_made_used_and_dropped(server_url: str) -> None:
    """A second one has another name; somebody who is still connected does not keep it."""
    async with throwaway(server_url, "for_a_while") as url, throwaway(server_url, "for_a_while") as other:
        assert url != other
        connection = await asyncpg.connect(url)
        assert str(await connection.fetchval("SELECT current_database()")).startswith("for_a_while_")
    assert connection.is_closed() or await _cut(connection)
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(url)


async def _cut(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    try:
        await connection.execute("SELECT")
    except (asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError):
        return True
    return False


async def test_a_server_that_is_not_there_is_one_sentence() -> None:
    """Nothing is made, and who asked is told."""
    with pytest.raises(Unavailable):
        async with throwaway("postgresql://nobody@127.0.0.1:1/postgres", "never"):
            pass
