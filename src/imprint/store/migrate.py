"""Migrations: numbered .sql files, applied once and in order, by one process at a time.

Two parts have no number because they are written anew whenever they change: the lifecycles, from
their declarations, and PgQueuer's own tables, by PgQueuer.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata, resources

from imprint.lifecycles.registry import LIFECYCLES
from imprint.problem import WrongVersion
from imprint.store.db import connect
from imprint.store.jobs import queries_on
from imprint.store.query import Link, Nothing, query

LIFECYCLES_PART = 0
JOBS_PART = -1


@dataclass(frozen=True)
class Migration:
    """One step: a number, a name, the statements and what they hash to."""

    number: int
    name: str
    sql: str
    checksum: str


@dataclass(frozen=True)
class Applied:
    """A step this database has behind it."""

    number: int
    name: str
    checksum: str


@dataclass(frozen=True)
class Locked:
    """The right to migrate was given."""

    locked: str


@dataclass(frozen=True)
class Unlocked:
    """The right to migrate was given back."""

    unlocked: bool


@dataclass(frozen=True)
class There:
    """Whether something exists."""

    there: bool


LOCK = query("migration_lock", Locked)
UNLOCK = query("migration_unlock", Unlocked)
TABLE_EXISTS = query("migration_table_exists", There)
TABLE_CREATE = query("migration_table_create", Nothing)
APPLIED = query("migration_applied", Applied)
RECORD = query("migration_record", Nothing)


@cache
def known() -> tuple[Migration, ...]:
    """Read the steps this program knows, in the order in which they are applied."""
    files = sorted(resources.files("imprint.store").joinpath("migrations").iterdir(), key=lambda file: file.name)
    numbered = [
        Migration(int(file.name[:3]), file.name[4:-4], sql, _hash(sql))
        for file in files
        if file.name.endswith(".sql") and (sql := file.read_text(encoding="utf-8"))
    ]
    lifecycles = "\n".join(lifecycle.sql() for lifecycle in LIFECYCLES)
    return (
        Migration(JOBS_PART, "jobs", "", "pgqueuer " + metadata.version("pgqueuer")),
        *numbered,
        Migration(LIFECYCLES_PART, "lifecycles", lifecycles, _hash(lifecycles)),
    )


async def pending(connection: Link) -> tuple[Migration, ...]:
    """List what this database lacks; raise WrongVersion when it is not one of ours to migrate."""
    applied = await _applied(connection)
    newest = max(step.number for step in known())
    if ahead := max(applied, default=0) - newest:
        if ahead > 0:
            raise WrongVersion(
                "database.newer",
                f"This database was migrated by a newer Imprint (to {newest + ahead}, this one knows {newest}); "
                "install that version, or restore a backup from before.",
            )
    for step in known():
        before = applied.get(step.number)
        if before and step.number > 0 and before.checksum != step.checksum:
            raise WrongVersion(
                "database.migration_changed",
                f"Migration {step.number:03} ({step.name}) is not the one this database was made with; "
                "run the Imprint that made it.",
            )
    return tuple(
        step for step in known() if step.number not in applied or applied[step.number].checksum != step.checksum
    )


async def migrate(url: str, *, before_change: Callable[[], Awaitable[None]] | None = None) -> tuple[Migration, ...]:
    """Bring the database up to date and say what was applied; others who want the same wait for it.

    `before_change` runs before an existing database is changed: the moment for a backup.
    """
    connection = await connect(url)
    try:
        async with _one_at_a_time(connection):
            missing = await pending(connection)
            if missing and before_change and await _applied(connection):
                await before_change()
            await TABLE_CREATE.run(connection)
            for step in missing:
                await _apply(connection, step)
    finally:
        await connection.close()
    return missing


async def _apply(connection: Link, step: Migration) -> None:
    if step.number == JOBS_PART:
        jobs = queries_on(connection)
        if await jobs.schema_is_installed():
            # PgQueuer's upgrade adds enum labels, which cannot share a transaction with their first use;
            # it plans from what is there, so that one cut short is simply done again.
            await jobs.apply_upgrade()
        else:
            async with connection.transaction():
                await jobs.install()
                await RECORD.run(connection, step.number, step.name, step.checksum)
            return
        await RECORD.run(connection, step.number, step.name, step.checksum)
        return
    async with connection.transaction():
        await connection.execute(step.sql)
        await RECORD.run(connection, step.number, step.name, step.checksum)


async def _applied(connection: Link) -> dict[int, Applied]:
    if not (await TABLE_EXISTS.one(connection)).there:
        return {}
    return {step.number: step for step in await APPLIED.all(connection)}


@asynccontextmanager
async def _one_at_a_time(connection: Link) -> AsyncIterator[None]:
    await LOCK.one(connection)
    try:
        yield
    finally:
        if not connection.is_closed():
            await UNLOCK.one(connection)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
