"""The jobs' tables: always the same names and always durable, whatever stands in the environment."""

import os
import subprocess
import sys

import pytest
from pgqueuer.domain.settings import DBSettings

from imprint.store.jobs import NAMES, queries_on
from imprint.store.query import Connection


def test_every_name_is_given() -> None:
    """What is not given PgQueuer takes from the environment; a setting that a new version adds is seen here."""
    assert NAMES.model_fields_set == set(DBSettings.model_fields)


@pytest.mark.parametrize("prefix", ["", "PGQUEUER_"])
@pytest.mark.parametrize("value", ["elsewhere", "not a name;", "volatile"])
def test_the_environment_changes_nothing(prefix: str, value: str) -> None:
    """A stray CHANNEL or DURABILITY of somebody else neither moves our jobs nor stops the start."""
    names = [*DBSettings.model_fields, "schema"]
    stray = {f"{prefix}{name.upper()}": value for name in names if prefix or name not in {"prefix", "schema"}}
    shown = subprocess.run(
        [sys.executable, "-c", "from imprint.store.jobs import NAMES; print(NAMES.model_dump_json())"],
        env=os.environ | stray,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.strip() == NAMES.model_dump_json()


async def test_no_table_forgets(connection: Connection) -> None:
    """All of PgQueuer's tables are there under our names, and none is UNLOGGED."""
    names = [NAMES.queue_table, NAMES.queue_table_log, NAMES.statistics_table, NAMES.schedules_table]
    rows = await connection.fetch("SELECT relname, relpersistence FROM pg_class WHERE relname = ANY ($1)", names)
    assert {row["relname"]: row["relpersistence"] for row in rows} == dict.fromkeys(names, b"p")


async def test_a_job_lives_and_dies_with_the_transaction_that_put_it_in(connection: Connection) -> None:
    """Enqueued on our own connection: rolled back with it, there when it commits."""
    count = f"SELECT count(*) FROM {NAMES.queue_table}"
    transaction = connection.transaction()
    await transaction.start()
    await queries_on(connection).enqueue(["publish"], [b"x"], [0])
    assert await connection.fetchval(count) == 1
    await transaction.rollback()
    assert await connection.fetchval(count) == 0
    async with connection.transaction():
        await queries_on(connection).enqueue(["publish"], [b"x"], [0])
    assert await connection.fetchval(count) == 1
