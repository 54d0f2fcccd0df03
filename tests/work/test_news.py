"""News that fell between two jobs is told all the same."""

from datetime import timedelta

from imprint.store.db import Database
from imprint.work import rule as rules
from imprint.work.news import tell_forgotten
from tests.work.posts import Author
from tests.work.serials import OWNER, add_series, add_source, chapter, follow, take_in


async def waiting(database: Database) -> set[tuple[str, str]]:
    """Give the jobs that wait, by kind and series."""
    async with database.connection() as connection:
        rows = await connection.fetch(
            "SELECT entrypoint, convert_from(payload, 'UTF8') FROM pgqueuer WHERE status = 'queued'"
        )
    return {(row[0], row[1]) for row in rows}


async def test_a_chapter_that_came_while_a_job_was_ending_is_told(database: Database) -> None:
    """Its job was not taken by the queue; a little later both are put in, unless one of them is a dead letter."""
    author = Author(database, OWNER)
    async with database.connection() as connection:
        series = await add_series(connection)
        source = await add_source(connection, series)
        await follow(connection, series, "ada")
    await rules.add(database, OWNER, series, [await author.account()], title="{series}", body="{url}")
    await take_in(database, series, source, [chapter("Chapter 1")], first=True)
    await take_in(database, series, source, [chapter("Chapter 2")])
    async with database.connection() as connection:
        await connection.execute("DELETE FROM pgqueuer")
    assert await tell_forgotten(database) == 0  # just now it may still be on its way
    await author.pass_time(timedelta(minutes=1))
    assert await tell_forgotten(database) == 2
    assert await waiting(database) == {("notify", str(series)), ("announce", str(series))}
    assert await tell_forgotten(database) == 0
    async with database.connection() as connection:
        await connection.execute("UPDATE pgqueuer SET status = 'failed'")
    assert await tell_forgotten(database) == 0
