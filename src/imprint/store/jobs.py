"""The jobs' tables: PgQueuer's, under names that no stray environment variable can change."""

from typing import cast

import asyncpg
from pgqueuer import Queries
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
from pgqueuer.domain.settings import DBSettings, Durability
from pgqueuer.domain.types import Channel
from pgqueuer.ports.driver import Driver

from imprint.store.query import Link

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


def queries_over(driver: Driver) -> Queries:
    """Give PgQueuer's queries over a driver, with our fixed names."""
    return Queries(
        driver,
        qbe=QueryBuilderEnvironment(settings=NAMES),
        qbq=QueryQueueBuilder(settings=NAMES),
        qbs=QuerySchedulerBuilder(settings=NAMES),
    )


def queries_on(connection: Link) -> Queries:
    """Give PgQueuer's queries on the caller's own connection, inside whatever transaction it has open."""
    return queries_over(AsyncpgDriver(cast("asyncpg.Connection[asyncpg.Record]", connection)))
