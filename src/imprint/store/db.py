"""The database: a pool of connections and transactions that say who acts and why."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import asyncpg

from imprint.log import hide_in_text
from imprint.problem import BadSettings, Problem, Unavailable, WrongVersion
from imprint.settings import Settings
from imprint.store.embedded import running
from imprint.store.home import explained
from imprint.store.query import Connection, Link, Pool, query
from imprint.store.stamp import current, mark
from imprint.store.wall import Wall, Walls, stand

OLDEST_SERVER = 140000


class Unreachable(ConnectionError):  # noqa: N818 - named as what it says
    """No connection to the database can be had; whatever the network or the system has said is its cause."""


# Every way in which a connection can be lost or refused; what a caller retries when the database went away. Not every
# OSError: a disk that is full, or a file that cannot be opened, is no database that is away.
GONE = (
    ConnectionError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was cut in the middle of a statement
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
)

# What a loop that must never end rides out: besides, a server that refuses or regrets, which is seen in the log.
TROUBLE = (*GONE, OSError, asyncpg.PostgresError)


@dataclass(frozen=True)
class ServerFacts:
    """What decides whether a server keeps what it has acknowledged."""

    version: int
    version_text: str
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    read_only: bool


@dataclass(frozen=True)
class Acting:
    """Who acts in this transaction, and why."""

    actor: str
    reason: str


FACTS = query("server_facts", ServerFacts)
ACT = query("server_act", Acting)


@dataclass(frozen=True)
class Database:
    """A pool of connections to the one database that holds the truth."""

    pool: Pool
    url: str = field(repr=False)  # it may hold a password
    walls: Walls | None = field(default=None, repr=False)
    wall: Wall | None = None  # through which everything is seen; None: it sees everything

    def behind(self, wall: Wall) -> "Database":
        """Give the same database as somebody sees it through a wall."""
        return replace(self, wall=wall)

    def whole(self) -> "Database":
        """Give the same database as the machine itself sees it; never for a caller."""
        return replace(self, wall=None)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Link]:
        """Borrow a connection; behind a wall it is told for whom it asks before anybody has it."""
        pool = self.pool if self.wall is None or self.walls is None else await self.walls.pool(self.wall)
        connection = await self._acquired(pool)
        try:
            if self.wall is not None:
                await stand(connection, self.wall)
            yield connection
        finally:
            await pool.release(connection)

    @asynccontextmanager
    async def transaction(self, actor: str, reason: str = "") -> AsyncIterator[Link]:
        """Borrow a connection for one transaction in which this actor acts for this reason."""
        stamp = current()
        async with self.connection() as connection, connection.transaction():
            await ACT.one(connection, actor, reason)
            yield connection
            marked = stamp is not None and await mark(connection, stamp)
        if stamp and marked:
            stamp.committed = True

    async def _acquired(self, pool: Pool) -> "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]":
        try:
            return await pool.acquire()
        except OSError as error:  # a socket that is not there, a name that is not found, a network that is down
            if isinstance(error, GONE):
                raise
            raise Unreachable(str(error)) from error


@asynccontextmanager
async def reached(settings: Settings) -> AsyncIterator[str]:
    """Give the URL of the database the settings name; the embedded one is up as long as somebody needs it."""
    if settings.database_url is not None:
        with explained(settings.home):
            settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield settings.database_url.get_secret_value()
        return
    async with running(settings.home, start_seconds=settings.database_start_seconds) as server:
        yield server.url


@asynccontextmanager
async def open_database(url: str, *, size: int = 10) -> AsyncIterator[Database]:
    """Connect to a server that is fit for its task and keep a pool open."""
    connection = await connect(url)
    try:
        refuse_unfit(await FACTS.one(connection))
    finally:
        await connection.close()
    try:
        pool = await asyncpg.create_pool(
            url, min_size=1, max_size=size, reset=keep_session, server_settings={"application_name": "imprint"}
        )
    except Exception as error:
        raise _no_connection(error) from error
    walls = Walls(url)
    async with pool:
        try:
            yield Database(pool, url, walls)
        finally:
            await walls.close()


async def keep_session(_: Link) -> None:
    """Give a connection back as it is: asyncpg ends an open transaction itself, and nothing of ours outlives one.

    The statement asyncpg would send here instead costs a round trip each time a connection is given back.
    """


async def connect(url: str, *, seconds: float = 10) -> Connection:
    """Open one connection, or say in one sentence why there is none."""
    try:
        return await asyncpg.connect(url, timeout=seconds, server_settings={"application_name": "imprint"})
    except ValueError:
        # Not a word of what was wrong with it, nor as a cause: that would quote a part of the password.
        raise BadSettings(
            "database.url",
            "IMPRINT_DATABASE_URL cannot be understood; it should read postgresql://user@host:5432/database, "
            "a password after the user and a colon, its special characters written as %40 and the like.",
        ) from None
    except Exception as error:  # whatever a server can do wrong becomes one sentence
        raise _no_connection(error) from error


def refuse_unfit(facts: ServerFacts) -> None:
    """Raise unless what this server acknowledges survives a power cut."""
    if facts.version < OLDEST_SERVER:
        raise WrongVersion(
            "database.too_old", f"This server is PostgreSQL {facts.version_text}; Imprint needs 14 or newer."
        )
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        if getattr(facts, setting) == "off":
            raise Unavailable(
                f"database.{setting}_off",
                f"The server runs with {setting} = off, so a power cut could undo what it has acknowledged "
                f"and a post could go out twice; turn {setting} on.",
            )
    if facts.read_only:
        raise Unavailable(
            "database.read_only",
            "The database takes no writes, being a standby or set to read-only; point Imprint at one that does.",
        )


def said(error: Exception) -> str:
    """Give what an error says as a part of a sentence, without the lines of hints that PostgreSQL adds."""
    first = next(iter(str(error).splitlines()), "") or type(error).__name__
    return hide_in_text(first).rstrip(".")


def _no_connection(error: Exception) -> Problem:
    match error:
        case asyncpg.InvalidCatalogNameError():
            return Unavailable("database.missing", f"The server is there, but {said(error)}.")
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return Unavailable("database.sign_in", f"The server refused the sign-in: {said(error)}.")
        case TimeoutError():
            return Unavailable("database.no_answer", "The database server did not answer in time.")
        case _:
            return Unavailable("database.unreachable", f"The database cannot be reached: {said(error)}.")
