"""A session: what every command needs before it can do its own work."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from imprint import log
from imprint.problem import Unavailable, WrongVersion
from imprint.settings import Settings, load
from imprint.store.backup import back_up_before
from imprint.store.db import Database, connect, open_database, reached
from imprint.store.home import exists
from imprint.store.migrate import Migration, migrate, pending

Result = TypeVar("Result")


def begin(*, calm: bool = False) -> Settings:
    """Read the settings and set up logging; calm: what the command itself tells is not logged as well.

    Who asks for a level by name gets every line of it.
    """
    settings = load()
    asked = "log_level" in settings.model_fields_set
    log.configure(settings.log_format, "error" if calm and not asked else settings.log_level)
    return settings


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work on the fast event loop where there is one."""
    if sys.platform == "win32":  # pragma: no cover - PostgreSQL's wheel has no embedded server there either
        return asyncio.run(work)
    import uvloop  # noqa: PLC0415 - only commands that talk to the database pay for it

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_told(work))


async def _until_told(work: Coroutine[Any, Any, Result]) -> Result:
    """Let a stop that is asked for by a signal be one that cleans up, whatever the command is doing."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, lambda: task and task.cancel())
    return await work


async def migrated(settings: Settings, url: str) -> tuple[Migration, ...]:
    """Bring the database up to date; an embedded one is backed up before it is changed."""

    async def save() -> None:
        await back_up_before(url, settings.home / "backups", "before-migration", keep=settings.keep_backups)

    return await migrate(url, before_change=None if settings.database_url else save)


def expect_database(settings: Settings) -> None:
    """Raise unless there is a database to look at: looking makes none."""
    if settings.database_url is None and not exists(settings.home):
        raise Unavailable("home.new", f"There is nothing in {settings.home} yet; run `imprint up` first.")


@asynccontextmanager
async def ready_database(settings: Settings, *, size: int = 5, create: bool = False) -> AsyncIterator[Database]:
    """Open a database that is up to date; one on a server must be so already.

    An embedded one is simply brought up to date, since it belongs to this program alone; but only a command
    that is meant to begin something makes a new one.
    """
    if not create:
        expect_database(settings)
    async with reached(settings) as url:
        if settings.database_url is None:
            await migrated(settings, url)
        else:
            connection = await connect(url)
            try:
                if await pending(connection):
                    raise WrongVersion(
                        "database.not_migrated", "The database is not up to date; run `imprint migrate` first."
                    )
            finally:
                await connection.close()
        async with open_database(url, size=size) as database:
            yield database


def stop_on_signals(*, until_stdin_closes: bool = False) -> asyncio.Event:
    """Give an event that SIGTERM, SIGINT and SIGHUP set; so does the end of standard input, if wanted."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if until_stdin_closes:
        loop.add_reader(sys.stdin.fileno(), _at_end_of_stdin, loop, stop)
    return stop


def _at_end_of_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1):
        loop.remove_reader(sys.stdin.fileno())
        stop.set()
