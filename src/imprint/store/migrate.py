"""Migrations: numbered .sql files, applied once and in order, by one process at a time.

Two parts have no number because they are written anew whenever they change: the lifecycles, from
their declarations, and PgQueuer's own tables, by PgQueuer.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata, resources

import asyncpg

from imprint.lifecycles.registry import LIFECYCLES
from imprint.problem import Problem, Unavailable, WrongVersion
from imprint.store.db import FACTS, GONE, connect, refuse_unfit, said
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
    numbered = [_numbered(file.name, file.read_text(encoding="utf-8")) for file in files if file.name.endswith(".sql")]
    lifecycles = "\n".join(lifecycle.sql() for lifecycle in LIFECYCLES)
    return (
        Migration(JOBS_PART, "jobs", "", "pgqueuer " + metadata.version("pgqueuer")),
        *numbered,
        Migration(LIFECYCLES_PART, "lifecycles", lifecycles, _hash(lifecycles)),
    )


async def pending(connection: Link) -> tuple[Migration, ...]:
    """List what this database lacks; raise WrongVersion when it is not one of ours to migrate."""
    return _missing(await _applied(connection))


async def migrate(url: str, *, before_change: Callable[[], Awaitable[None]] | None = None) -> tuple[Migration, ...]:
    """Bring the database up to date and say what was applied; others who want the same wait for it.

    `before_change` runs before an existing database is changed: the moment for a backup.
    """
    connection = await connect(url)
    try:
        refuse_unfit(await FACTS.one(connection))
        if not _missing(await _applied(connection)):
            return ()  # nobody needs to wait for a turn to do nothing
        async with _one_at_a_time(connection):
            applied = await _applied(connection)
            missing = _missing(applied)
            if missing and applied and before_change:
                await before_change()
            if not applied:
                await TABLE_CREATE.run(connection)
            for step in missing:
                await _apply(connection, step)
    finally:
        await connection.close()
    return missing


def _missing(applied: Mapping[int, Applied]) -> tuple[Migration, ...]:
    reached, newest = max(applied, default=0), max(step.number for step in known())
    if reached > newest:
        raise WrongVersion(
            "database.newer",
            f"This database was migrated by a newer Imprint (to {reached:03}, this one knows {newest:03}); "
            "install that version, or restore a backup from before.",
        )
    missing = tuple(step for step in known() if step.checksum != _checksum(applied.get(step.number)))
    for step in missing:
        # A step with a number is never applied twice; the parts without one are, whenever they change.
        if step.number > 0 and step.number in applied:
            raise WrongVersion(
                "database.migration_changed",
                f"Migration {step.number:03} ({step.name}) is not the one this database was made with; "
                "run the Imprint that made it.",
            )
    return missing


async def _apply(connection: Link, step: Migration) -> None:
    """Apply one step and remember it, in one transaction."""
    from imprint.store.jobs import queries_on  # noqa: PLC0415 - PgQueuer weighs, and mostly there is nothing to apply

    try:
        if step.number == JOBS_PART and await queries_on(connection).schema_is_installed():
            # The exception: an upgrade of PgQueuer adds enum labels, which cannot share a transaction with their
            # first use. It plans from what is there, so that one cut short is simply done again.
            await queries_on(connection).apply_upgrade()
            await RECORD.run(connection, step.number, step.name, step.checksum)
            return
        async with connection.transaction():
            if step.number == JOBS_PART:
                await queries_on(connection).install()
            else:
                await connection.execute(step.sql)
            await RECORD.run(connection, step.number, step.name, step.checksum)
    except GONE as error:
        raise Unavailable(
            "database.lost", f"The database went away during the migration {step.name}; start again to go on with it."
        ) from error
    except asyncpg.PostgresError as error:
        raise Problem("database.migration_failed", f"The migration {step.name} failed: {said(error)}.") from error


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


def _numbered(file: str, sql: str) -> Migration:
    number, _, name = file.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql, _hash(sql))


def _checksum(step: Applied | None) -> str | None:
    return step.checksum if step else None


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
