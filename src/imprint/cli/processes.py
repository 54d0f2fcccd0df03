"""The commands that run until they are stopped: up, worker, api."""

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import asyncpg
import structlog
import typer

from imprint import __version__
from imprint.cli import session
from imprint.cli.output import say
from imprint.engine.address import address, listen
from imprint.engine.roster import WORKERS
from imprint.engine.supervisor import Child, Supervisor
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store import incarnation, wall
from imprint.store.db import GONE, TROUBLE, Database, connect, open_database, reached
from imprint.store.embedded import running
from imprint.store.solitude import alone_in
from imprint.work.first_code import renewed

if TYPE_CHECKING:
    from imprint.engine.queue import Entrypoint

log = structlog.get_logger()

READY_POLL = 0.03
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
RESTART_SECONDS = 2.0
RESTART_PAUSE = 0.5

Entrypoints = Callable[[Database, Settings], Collection["Entrypoint"]]
Serve = Callable[[Database, Settings, socket.socket, asyncio.Event], Awaitable[None]]
Supervised = Annotated[bool, typer.Option("--until-stdin-closes", hidden=True)]

PROGRAM = (sys.executable, "-m", "imprint")


def register(app: typer.Typer, entrypoints: Entrypoints, serve: Serve) -> None:
    """Add the commands; what a worker can do and who answers HTTP is decided by the caller."""

    @app.command()
    def up() -> None:
        """Start everything; Ctrl-C stops it all.

        Runs the database, the workers and the HTTP server, and starts again whatever crashes.
        """
        settings = session.begin()
        with alone_in(settings.home, "imprint up"), suppress(KeyboardInterrupt, asyncio.CancelledError):
            session.run(_up(settings))
        say("Imprint has stopped.")

    @app.command()
    def worker(
        *,
        concurrency: Annotated[
            int | None, typer.Option(min=2, max=1000, help="How many jobs at the same time.", metavar="N")
        ] = None,
        until_stdin_closes: Supervised = False,
    ) -> None:
        """Run one worker alone, on a shared database."""
        settings = session.begin()
        if concurrency is not None:
            settings = settings.model_copy(update={"concurrency": concurrency})
        session.run(_worker(settings, entrypoints, until_stdin_closes=until_stdin_closes))

    @app.command()
    def api(
        *, fd: Annotated[int | None, typer.Option(hidden=True)] = None, until_stdin_closes: Supervised = False
    ) -> None:
        """Run the HTTP server alone, on a shared database."""
        settings = session.begin()
        session.run(_api(settings, serve, fd, until_stdin_closes=until_stdin_closes))


async def _up(settings: Settings) -> None:
    opened = listen(settings.host, settings.port)
    say("Starting Imprint…")
    loop, starting = asyncio.get_running_loop(), asyncio.current_task()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, lambda: starting and starting.cancel())
    async with AsyncExitStack() as stack:
        stack.callback(opened.close)
        url = await stack.enter_async_context(reached(settings))
        await session.migrated(settings, url)
        async with open_database(url, size=2) as database, database.connection() as connection:
            found = await incarnation.check(connection, settings.home, embedded=settings.database_url is None)
            code = await renewed(connection)
            await wall.raised(connection)
        supervisor = Supervisor(_children(settings, opened), settings.shutdown_seconds)
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, supervisor.ask_to_stop)
        companions = [asyncio.create_task(_greet(settings, url, address(opened), found.held_why, code))]
        if settings.database_url is None:
            companions.append(asyncio.create_task(_keep_database(settings, url, stack, supervisor)))
        try:
            await supervisor.run()
        finally:
            for companion in companions:
                companion.cancel()
            await asyncio.gather(*companions, return_exceptions=True)


def _children(settings: Settings, opened: socket.socket) -> list[Child]:
    workers = [
        Child(f"worker {number}", [*PROGRAM, "worker", "--until-stdin-closes"])
        for number in range(1, settings.workers + 1)
    ]
    fd = opened.fileno()
    return [*workers, Child("api", [*PROGRAM, "api", "--until-stdin-closes", f"--fd={fd}"], (fd,))]


async def _greet(settings: Settings, url: str, at: str, held_why: str | None, code: str | None) -> None:
    """Say where Imprint is once every part of it answers, and to the first visitor how to come in."""
    await _until(lambda: _answers(at))
    await _until(lambda: _workers_alive(url, settings.workers))
    say(f"Imprint {__version__} is ready.")
    # After the # it stays with the browser: no server and no log ever sees it.
    say(f"  Open      {settings.public_url or at}{f'/first#{code}' if code else ''}")
    if code:
        say(f"  Code      {code}  (once, for the first account; `imprint code` makes a new one)")
    say(f"  Home      {settings.home}")
    if held_why:
        say(f"  HELD      nothing is sent: {held_why}. When you have looked: imprint incarnation --accept")
    say("  Stop      Ctrl-C")


async def _until(look: Callable[[], Awaitable[bool]]) -> None:
    while not await look():  # noqa: ASYNC110 - what is waited for happens in other processes
        await asyncio.sleep(READY_POLL)


async def _answers(address: str) -> bool:
    host, _, port = address.removeprefix("http://").rpartition(":")
    with suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        try:
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: imprint\r\nConnection: close\r\n\r\n")
            return b" 200 " in await reader.readline()
        finally:
            writer.close()
    return False


async def _workers_alive(url: str, wanted: int) -> bool:
    with suppress(Problem, *GONE):
        connection = await connect(url)
        try:
            return sum(known.alive for known in await WORKERS.all(connection)) >= wanted
        finally:
            await connection.close()
    return False


async def _keep_database(settings: Settings, url: str, stack: AsyncExitStack, supervisor: Supervisor) -> None:
    """Start the embedded database again when it ends without being asked to."""
    while not supervisor.stop.is_set():
        ended = asyncio.Event()
        with suppress(*TROUBLE):
            connection = await asyncpg.connect(url)
            connection.add_termination_listener(lambda _, ended=ended: ended.set())
            try:
                await ended.wait()
            finally:
                connection.terminate()
        if supervisor.stop.is_set():
            return
        log.warning("the database ended; starting it again")
        await asyncio.sleep(RESTART_PAUSE)  # one that has no connection left has not ended
        try:
            await stack.enter_async_context(running(settings.home, start_seconds=settings.database_start_seconds))
        except Problem as problem:
            log.warning("the database cannot be started; trying again", problem=problem.sentence)
            await asyncio.sleep(RESTART_SECONDS)


async def _worker(settings: Settings, entrypoints: Entrypoints, *, until_stdin_closes: bool) -> None:
    from imprint.engine.clock import timers  # noqa: PLC0415 - who only watches over workers does no work
    from imprint.engine.worker import worker as build_worker  # noqa: PLC0415

    stop = session.stop_on_signals(until_stdin_closes=until_stdin_closes)
    async with session.ready_database(settings, size=settings.concurrency, create=True) as database:
        async with database.connection() as connection:
            found = await incarnation.check(connection, settings.home, embedded=settings.database_url is None)
        if found.held_why:
            log.warning("every send is held", why=found.held_why)
        built = build_worker(
            database,
            settings.home,
            entrypoints=entrypoints(database, settings),
            timers=timers(settings.crashes_before_quarantine),
            concurrency=settings.concurrency,
            grace_seconds=settings.shutdown_seconds,
            embedded=settings.database_url is None,
        )
        log.info("this worker is at work", concurrency=settings.concurrency)
        await built.run(stop)


async def _api(settings: Settings, serve: Serve, fd: int | None, *, until_stdin_closes: bool) -> None:
    stop = session.stop_on_signals(until_stdin_closes=until_stdin_closes)
    opened = listen(settings.host, settings.port) if fd is None else socket.socket(fileno=fd)
    async with session.ready_database(settings, create=True) as database:
        log.info("the HTTP server listens", at=address(opened))
        await serve(database, settings, opened, stop)
