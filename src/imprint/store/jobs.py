"""The jobs' tables: PgQueuer's, under names that no stray environment variable can change."""

import asyncio
from datetime import timedelta
from typing import cast

import asyncpg
from pgqueuer import Queries
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.domain.models import Job, TracebackRecord
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import Channel
from pgqueuer.ports.driver import Driver

from imprint.store.db import TROUBLE
from imprint.store.query import Link

RETRY_WAITS = (0.1, 0.3, 1.0, 3.0)

# PgQueuer reads names like CHANNEL or QUEUE_TABLE from the environment; two processes that differ in one
# would never see each other's jobs. Values given here win over the environment.
NAMES = DBSettings(
    prefix="",
    db_schema=None,
    channel=Channel("ch_pgqueuer"),
    function="fn_pgqueuer_changed",
    statistics_table="pgqueuer_statistics",
    queue_status_type="pgqueuer_status",
    queue_table="pgqueuer",
    queue_table_log="pgqueuer_log",
    trigger="tg_pgqueuer_changed",
    schedules_table="pgqueuer_schedules",
    durability=Durability.durable,
    widen_id=True,
)


def queries_over(driver: Driver, kind: type[Queries] = Queries) -> Queries:
    """Give PgQueuer's queries over a driver, with our fixed names."""
    return kind(
        driver,
        qbe=QueryBuilderEnvironment(settings=NAMES),
        qbq=QueryQueueBuilder(settings=NAMES),
        qbs=QuerySchedulerBuilder(settings=NAMES),
    )


def queries_on(connection: Link) -> Queries:
    """Give PgQueuer's queries on the caller's own connection, inside whatever transaction it has open."""
    return queries_over(AsyncpgDriver(cast("asyncpg.Connection[asyncpg.Record]", connection)))


class _PatientQueries(Queries):
    """PgQueuer's queries, which do not take a cut connection for the end of a job's attempts."""

    async def retry_job(self, job: Job, delay: timedelta, traceback_record: TracebackRecord | None) -> None:
        """Put a job back; what cannot be put back stays taken, and is taken anew when its heartbeat is old."""
        for wait in RETRY_WAITS:
            try:
                await super().retry_job(job, delay, traceback_record)
            except TROUBLE:
                await asyncio.sleep(wait)
            else:
                return


def patient_queries(driver: Driver) -> Queries:
    """Give PgQueuer's queries over a driver, for the loop that runs jobs."""
    return queries_over(driver, _PatientQueries)
