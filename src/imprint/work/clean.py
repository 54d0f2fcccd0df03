"""Clean: drop what has been kept long enough. The audit is never touched."""

from dataclasses import dataclass
from datetime import timedelta

from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Nothing, query
from imprint.work.event import FORGET as FORGET_EVENTS
from imprint.work.event import KEPT as EVENTS_KEPT
from imprint.work.idempotency import LASTS as ANSWERS_LAST
from imprint.work.sign_in_limit import WINDOW

FINISHED = query("retention_finished", Nothing)
FAILED = query("retention_failed", Nothing)
FAILED_LOG = query("retention_failed_log", Nothing)
FAILED_DELIVERIES = query("retention_failed_deliveries", Nothing)
SET_ASIDE = query("retention_set_aside", Nothing)
STATISTICS = query("retention_statistics", Nothing)
FORGET_WORKERS = query("worker_forget", Nothing)
FORGET_SESSIONS = query("session_forget", Nothing)
FORGET_TRIES = query("sign_in_limit_forget", Nothing)
FORGET_ANSWERS = query("idempotency_forget", Nothing)


@dataclass(frozen=True)
class Cleaned:
    """How many rows of each kind were dropped."""

    log_lines: int
    dead_letters: int
    workers: int


async def clean(database: Database, settings: Settings) -> Cleaned:
    """Drop finished jobs, dead letters, counts, dead workers, and what was kept of visitors, past their time."""
    keep_failed = timedelta(days=settings.keep_failed_days)
    async with database.transaction("clean", "past its time") as connection:
        lines = await FINISHED.run(
            connection, timedelta(hours=settings.keep_finished_hours), settings.keep_finished_jobs
        )
        letters = await FAILED.run(connection, keep_failed, settings.keep_failed_jobs)
        letters += await FAILED_DELIVERIES.run(connection, keep_failed, settings.keep_failed_jobs)
        letters += await SET_ASIDE.run(connection, keep_failed)
        lines += await FAILED_LOG.run(connection, keep_failed)
        await STATISTICS.run(connection)
        await FORGET_SESSIONS.run(connection)
        await FORGET_TRIES.run(connection, WINDOW)
        await FORGET_ANSWERS.run(connection, ANSWERS_LAST)
        await FORGET_EVENTS.run(connection, EVENTS_KEPT)
        return Cleaned(lines, letters, await FORGET_WORKERS.run(connection))
