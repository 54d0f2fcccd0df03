"""Doctor: looks for what is wrong or soon will be, and says for each finding what to do."""

import os
import platform
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from importlib import metadata

from imprint import __version__
from imprint.lifecycles.registry import LIFECYCLES
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import FACTS, connect, refuse_unfit
from imprint.store.migrate import pending
from imprint.store.query import Link, query
from imprint.work.status import Status, status

LEAST_DISK = 1 << 30
MOST_CLOCK_DRIFT = timedelta(seconds=2)


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, what was seen and what to do about it."""

    level: Level
    subject: str
    seen: str
    do: str = ""


@dataclass(frozen=True)
class Moment:
    """The time for Imprint and for the server."""

    now: datetime
    server: datetime


@dataclass(frozen=True)
class Size:
    """How large the database is."""

    bytes: int


@dataclass(frozen=True)
class Allowed:
    """A move the database allows."""

    lifecycle: str
    source: str
    target: str
    name: str


TIME = query("server_time", Moment)
SIZE = query("status_size", Size)
MOVES = query("status_lifecycles", Allowed)


async def examine(settings: Settings, url: str) -> list[Finding]:
    """Look at everything; what cannot be looked at is a finding as well."""
    findings = [*_program(), *_home(settings)]
    try:
        connection = await connect(url)
    except Problem as problem:
        return [*findings, Finding(Level.BAD, "database", problem.sentence, "Start the server or mend the URL.")]
    try:
        findings += [finding async for finding in _database(connection)]
    finally:
        await connection.close()
    return findings


def _program() -> Iterator[Finding]:
    versions = f"Imprint {__version__}, Python {platform.python_version()}, PgQueuer {metadata.version('pgqueuer')}"
    yield Finding(Level.OK, "versions", versions)


def _home(settings: Settings) -> Iterator[Finding]:
    yield Finding(Level.OK, "settings", f"home {settings.home}, database {_which(settings)}")
    if not os.access(settings.home, os.W_OK):
        yield Finding(
            Level.BAD, "home", f"{settings.home} cannot be written", "Give yourself the right to write there."
        )
        return
    free = shutil.disk_usage(settings.home).free
    few = free < LEAST_DISK
    yield Finding(
        Level.WARN if few else Level.OK,
        "disk",
        f"{free / (1 << 30):.1f} GiB free",
        "Free some space: a full disk stops the database." if few else "",
    )


async def _database(connection: Link) -> AsyncIterator[Finding]:
    facts = await FACTS.one(connection)
    try:
        refuse_unfit(facts)
        yield Finding(Level.OK, "database", f"PostgreSQL {facts.version_text}, keeps what it acknowledges")
    except Problem as problem:
        yield Finding(Level.BAD, "database", problem.sentence, "Change the server's configuration and restart it.")
    try:
        missing = await pending(connection)
    except Problem as problem:
        yield Finding(Level.BAD, "migrations", problem.sentence, "Use the Imprint that made this database.")
        return
    if missing:
        names = ", ".join(step.name for step in missing)
        yield Finding(Level.BAD, "migrations", f"not applied yet: {names}", "Run `imprint migrate`.")
        return
    yield Finding(Level.OK, "migrations", "all applied")
    yield Finding(Level.OK, "size", f"{(await SIZE.one(connection)).bytes / (1 << 20):.0f} MiB in the database")
    yield await _lifecycles(connection)
    yield await _time(connection)
    for finding in _work(await status(connection)):
        yield finding


async def _lifecycles(connection: Link) -> Finding:
    held = {(row.lifecycle, row.source, row.target, row.name) for row in await MOVES.all(connection)}
    declared = {(of.table, str(a.source), str(a.target), a.name) for of in LIFECYCLES for a in of.arrows}
    if held != declared:
        different = ", ".join(sorted({row[0] for row in held ^ declared}))
        return Finding(
            Level.BAD,
            "lifecycles",
            f"the database allows other moves than declared for {different}",
            "Somebody changed the table lifecycle_move by hand: restore it from a backup.",
        )
    return Finding(Level.OK, "lifecycles", f"{len(declared)} moves, as declared")


async def _time(connection: Link) -> Finding:
    moment = await TIME.one(connection)
    if abs(moment.now - moment.server) > MOST_CLOCK_DRIFT:
        return Finding(
            Level.BAD,
            "clock",
            f"Imprint's time is {moment.now - moment.server} away from the server's",
            "Remove the setting imprint.clock_offset from the database or role.",
        )
    return Finding(Level.OK, "clock", f"{moment.now:%Y-%m-%d %H:%M:%S} UTC")


def _work(seen: Status) -> Iterator[Finding]:
    if seen.held_why:
        yield Finding(
            Level.BAD,
            "incarnation",
            f"every send is held: {seen.held_why}",
            "Check what has been sent since, then run `imprint incarnation --accept`.",
        )
    alive = [worker for worker in seen.workers if worker.alive]
    if not alive:
        yield Finding(
            Level.WARN, "workers", "none is alive, so nothing is sent", "Run `imprint up` or `imprint worker`."
        )
    else:
        yield Finding(Level.OK, "workers", f"{len(alive)} alive")
    if silent := [worker.name for worker in seen.workers if not worker.alive]:
        yield Finding(Level.WARN, "workers", f"{', '.join(silent)} ended without a goodbye", "Look at its log.")
    for work in seen.work:
        if work.stuck:
            yield Finding(
                Level.BAD, work.kind, f"{work.stuck} stuck", "Is a worker alive? It takes them back by itself."
            )
        if work.late:
            yield Finding(Level.WARN, work.kind, f"{work.late} late", "Look at the accounts and the workers.")
    for letters in seen.dead_letters:
        yield Finding(Level.WARN, "dead letters", f"{letters.held} of {letters.entrypoint}", "Look at why they failed.")
    if seen.unknown:
        yield Finding(Level.WARN, "publications", f"{seen.unknown} unknown", "Decide whether each of them is out.")


def _which(settings: Settings) -> str:
    return "on a server" if settings.database_url else "embedded"
