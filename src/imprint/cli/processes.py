"""The commands that run until they are stopped: up, worker, api."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack, suppress
from typing import Annotated

import asyncpg
import structlog
import typer

from imprint import __version__
from imprint.cli import session
from imprint.cli.output import say
from imprint.engine.clock import timers
from imprint.engine.queue import Entrypoint
from imprint.engine.supervisor import Child, Supervisor
from imprint.engine.worker import ALL as WORKERS
from imprint.engine.worker import worker as build_worker
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store import incarnation
from imprint.store.db import GONE, Database, connect, open_database, reached
from imprint.store.embedded import running
from imprint.store.solitude import alone_in

log = structlog.get_logger()

Entrypoints = Callable[[Database, Settings], Collection[Entrypoint]]
Supervised = Annotated[bool, typer.Option("--until-stdin-closes", hidden=True)]


def register(app: typer.Typer, entrypoints: Entrypoints) -> None:
    """Add the commands."""

    @app.command()
    def up() -> None:
        """Start everything: the database, the workers and the HTTP server. Ctrl-C stops it all."""
        settings = session.begin()
        with alone_in(settings.home, "imprint up"):
            session.run(_up(settings))

    @app.command()
    def worker(
        concurrency: Annotated[
            int | None, typer.Option(min=2, max=1000, help="How many jobs at the same time (IMPRINT_CONCURRENCY).")
        ] = None,
        until_stdin_closes: Supervised = False,  # noqa: FBT002 - Typer's way to write a flag
    ) -> None:
        """Run one worker alone, on a database that others may share."""
        settings = session.begin()
        if concurrency is not None:
            settings = settings.model_copy(update={"concurrency": concurrency})
        session.run(_worker(settings, entrypoints, until_stdin_closes=until_stdin_closes))

    @app.command()
    def api(
        fd: Annotated[int | None, typer.Option(hidden=True)] = None,
        until_stdin_closes: Supervised = False,  # noqa: FBT002 - Typer's way to write a flag
    ) -> None:
        """Run the HTTP server alone, on a database that others may share."""
        settings = session.begin()
        session.run(_api(settings, fd, until_stdin_closes=until_stdin_closes))


async def _up(settings: Settings) -> None:
    from imprint.api.server import address, listen, operator_key  # noqa: PLC0415 - the web framework is only wanted here

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(reached(settings))
        await session.migrated(settings, url)
        async with open_database(url, size=2) as database, database.connection() as connection:
            found = await incarnation.check(connection, settings.home, embedded=settings.database_url is None)
        opened = listen(settings.host, settings.port)
        key = operator_key(settings.home)
        supervisor = Supervisor(_children(settings, opened), settings.shutdown_seconds)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, supervisor.ask_to_stop)
        running_children = asyncio.create_task(supervisor.run())
        helpers = [asyncio.create_task(_greet(settings, url, address(opened), key, found.held_why, supervisor))]
        if settings.database_url is None:
            helpers.append(asyncio.create_task(_keep_database(settings, url, stack, supervisor)))
        try:
            await running_children
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            opened.close()
    say("Imprint has stopped.")


def _children(settings: Settings, opened: socket.socket) -> list[Child]:
    program = [sys.executable, "-m", "imprint.main"]
    workers = [
        Child(f"worker {number}", [*program, "worker", "--until-stdin-closes"])
        for number in range(1, settings.workers + 1)
    ]
    fd = opened.fileno()
    return [*workers, Child("api", [*program, "api", "--until-stdin-closes", f"--fd={fd}"], (fd,))]


async def _greet(
    settings: Settings, url: str, address: str, key: str, held_why: str | None, supervisor: Supervisor
) -> None:
    """Say where Imprint is once every part of it answers."""
    while not (await _answers(address) and await _workers_alive(url) >= settings.workers):
        await asyncio.sleep(0.02)
    say(f"Imprint {__version__} is ready.")
    say(f"  Open      {address}")
    say(f"  Sign in   with this key: {key}  (kept in {settings.home / 'operator.key'})")
    say(f"  Home      {settings.home}")
    if held_why:
        say(f"  HELD      nothing is sent: {held_why}. When you have looked: imprint incarnation --accept")
    say("  Stop      Ctrl-C")


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


async def _workers_alive(url: str) -> int:
    with suppress(Problem, *GONE):
        connection = await connect(url)
        try:
            return sum(known.alive for known in await WORKERS.all(connection))
        finally:
            await connection.close()
    return -1


async def _keep_database(settings: Settings, url: str, stack: AsyncExitStack, supervisor: Supervisor) -> None:
    """Start the embedded database again when it ends without being asked to."""
    while not supervisor.stop.is_set():
        ended = asyncio.Event()
        with suppress(*GONE, asyncpg.PostgresError):
            connection = await asyncpg.connect(url)
            connection.add_termination_listener(lambda _, ended=ended: ended.set())
            try:
                await ended.wait()
            finally:
                connection.terminate()
        if supervisor.stop.is_set():
            return
        log.warning("the database ended; starting it again")
        try:
            await stack.enter_async_context(running(settings.home, start_seconds=settings.database_start_seconds))
        except Problem as problem:
            log.error("the database cannot be started; trying again", problem=problem.sentence)
            await asyncio.sleep(2)


async def _worker(settings: Settings, entrypoints: Entrypoints, *, until_stdin_closes: bool) -> None:
    stop = session.stop_on_signals(until_stdin_closes=until_stdin_closes)
    async with session.ready_database(settings, size=settings.concurrency) as database:
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
        )
        log.info("this worker is at work", concurrency=settings.concurrency)
        await built.run(stop)


async def _api(settings: Settings, fd: int | None, *, until_stdin_closes: bool) -> None:
    from imprint.api.server import address, listen, operator_key, serve  # noqa: PLC0415 - only wanted here

    stop = session.stop_on_signals(until_stdin_closes=until_stdin_closes)
    opened = listen(settings.host, settings.port) if fd is None else socket.socket(fileno=fd)
    async with session.ready_database(settings) as database:
        log.info("the HTTP server listens", at=address(opened))
        await serve(database, operator_key(settings.home), opened, stop)
