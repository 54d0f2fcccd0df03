"""Clean: drop what has been kept long enough. The audit is never touched."""

from dataclasses import dataclass
from datetime import timedelta

from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Nothing, query

FINISHED = query("retention_finished", Nothing)
FAILED = query("retention_failed", Nothing)
FAILED_LOG = query("retention_failed_log", Nothing)
STATISTICS = query("retention_statistics", Nothing)
FORGET_WORKERS = query("worker_forget", Nothing)


@dataclass(frozen=True)
class Cleaned:
    """How many rows of each kind were dropped."""

    log_lines: int
    dead_letters: int
    workers: int


async def clean(database: Database, settings: Settings) -> Cleaned:
    """Drop finished jobs, dead letters, counts and dead workers that are past their time."""
    keep_failed = timedelta(days=settings.keep_failed_days)
    async with database.transaction("clean", "past its time") as connection:
        lines = await FINISHED.run(
            connection, timedelta(hours=settings.keep_finished_hours), settings.keep_finished_jobs
        )
        letters = await FAILED.run(connection, keep_failed, settings.keep_failed_jobs)
        lines += await FAILED_LOG.run(connection, keep_failed)
        await STATISTICS.run(connection)
        return Cleaned(lines, letters, await FORGET_WORKERS.run(connection))
