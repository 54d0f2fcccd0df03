"""Doctor: looks for what is wrong or soon will be, and says for each finding what to do."""

import os
import platform
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from importlib import metadata
from uuid import UUID

from imprint import __version__
from imprint.lifecycles.registry import LIFECYCLES
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store import wall
from imprint.store.db import FACTS, connect, refuse_unfit
from imprint.store.migrate import pending
from imprint.store.query import Link, query
from imprint.work import mismatch
from imprint.work.journal import DAMAGED, Journal
from imprint.work.status import Failing, Status, Unknown, status
from imprint.work.trouble import named, trouble, until
from imprint.work.vault import Vault

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
    findings = [*_program(), *_home(settings), *_journal(settings)]
    try:
        connection = await connect(url)
    except Problem as problem:
        return [*findings, Finding(Level.BAD, "database", problem.sentence, "Start the server or mend the URL.")]
    try:
        findings += [finding async for finding in _database(connection, settings)]
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


async def _database(connection: Link, settings: Settings) -> AsyncIterator[Finding]:
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
    yield await _walls(connection)
    yield await _time(connection)
    for finding in _work(await status(connection)):
        yield finding
    async for finding in _content(connection, settings):
        yield finding
    async for finding in _accounts(connection, settings):
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


async def _walls(connection: Link) -> Finding:
    if sentence := wall.told(await wall.LACKS.one(connection)):
        return Finding(Level.BAD, "walls", sentence, "Then start Imprint again: without walls nobody is let in.")
    return Finding(Level.OK, "walls", "the HTTP API sees through its role imprint_api only")


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


async def _accounts(connection: Link, settings: Settings) -> AsyncIterator[Finding]:
    seen = await trouble(connection, Vault.of(settings))
    for account in seen.unwell:
        waits = f" {account.waiting} publications wait for it." if account.waiting else ""
        yield Finding(
            Level.WARN,
            "accounts",
            f"{named(account)}: {account.trouble or 'it must be connected anew.'}",
            f"Run `imprint account reconnect {named(account)}`.{waits}",
        )
    for ending in seen.ending:
        yield Finding(
            Level.WARN,
            "accounts",
            f"the sign-in of {named(ending)} ends on {until(ending.renewable_until)}",
            f"Run `imprint account reconnect {named(ending)}` before.",
        )
    if seen.missing_keys:
        yield Finding(
            Level.BAD,
            "keys",
            f"sign-ins are sealed with keys that are not in {Vault.of(settings).file}",
            "Put the file back from a backup, or connect the accounts anew.",
        )


async def _content(connection: Link, settings: Settings) -> AsyncIterator[Finding]:
    for wrong in await mismatch.states(connection):
        yield Finding(
            Level.BAD, "content", _counted(wrong), "Run `imprint backfill --fix-status`, which verifies and mends."
        )
    for failed in await mismatch.FAILED.all(connection):
        yield Finding(
            Level.WARN,
            "content",
            f"failed: {_counted(failed)}",
            "Run `imprint content list --status failed`; when the cause is gone, `imprint content retry-failed`.",
        )
    async for looked in mismatch.stored(connection, settings):
        for finding in _bytes(looked):
            yield finding


def _bytes(looked: mismatch.Looked) -> Iterator[Finding]:
    if looked.problem:
        yield Finding(Level.BAD, "bytes", looked.problem.sentence, f"Make the store {looked.store} reachable again.")
        return
    such = f", such as {', '.join(looked.examples)}" if looked.examples else ""
    if looked.missing:
        yield Finding(
            Level.BAD,
            "bytes",
            f"{looked.missing} objects are missing in the store {looked.store}{such}",
            "Is the right folder or bucket set? Then run `imprint backfill --fix-status`.",
        )
    if looked.wrong_size:
        yield Finding(
            Level.BAD,
            "bytes",
            f"{looked.wrong_size} objects have another size in the store {looked.store}{such}",
            "Run `imprint backfill --fix-status`.",
        )
    if looked.orphans:
        yield Finding(
            Level.OK,
            "bytes",
            f"{looked.orphans} objects ({looked.orphan_bytes:,} bytes) belong to nothing; a worker will remove them",
        )
    if not looked.missing and not looked.wrong_size:
        yield Finding(
            Level.OK, "bytes", f"{looked.objects} objects in the store {looked.store}; {looked.share} was listed"
        )


def _counted(wrong: mismatch.Mismatch) -> str:
    return f"{wrong.contents} {wrong.what} (such as {', '.join(wrong.examples)})"


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
        advice = "Nothing to do if you ended it; it is forgotten after a day."
        yield Finding(Level.WARN, "workers", f"{', '.join(silent)} ended without a goodbye", advice)
    for work in seen.work:
        if work.stuck:
            yield Finding(
                Level.BAD, work.kind, f"{work.stuck} stuck", "Is a worker alive? It takes them back by itself."
            )
        if work.late:
            yield Finding(Level.WARN, work.kind, f"{work.late} late", _late(work.kind))
    for letters in seen.dead_letters:
        yield Finding(Level.WARN, "dead letters", f"{letters.held} of {letters.entrypoint}", "Look at why they failed.")
    yield from _doubts(seen.unknown)
    yield from _failing(seen.failing)


def _doubts(seen: Unknown) -> Iterator[Finding]:
    """Tell of publications of which nobody knows whether they are out, and of those that are out twice."""
    if seen.duplicates:
        yield Finding(
            Level.BAD,
            "publications",
            f"{seen.duplicates} accepted twice within a week ({_ids(seen.doubled)})",
            f"Run `imprint explain {seen.doubled[0]}`, look at the platform, and delete one by hand.",
        )
    if seen.asking:
        examples = seen.examples or []
        yield Finding(
            Level.WARN,
            "publications",
            f"{seen.asking} of which nobody can tell whether they are out ({_ids(examples)})",
            f"Look at the platform, then run `imprint resolve {next(iter(examples), 'PUBLICATION')}`.",
        )
    if looked_for := seen.unknown - seen.asking:
        yield Finding(Level.OK, "publications", f"{looked_for} unknown; a worker looks for them by itself")


def _failing(seen: Failing) -> Iterator[Finding]:
    """Tell of what has failed for good and waits for a person."""
    if seen.publications:
        posts = seen.posts or []
        yield Finding(
            Level.WARN,
            "publications",
            f"{seen.publications} failed within a week (posts {_ids(posts)})",
            f"Run `imprint explain {next(iter(posts), 'POST')}`; then retry, schedule it anew or let it go.",
        )
    if seen.sources:
        yield Finding(Level.WARN, "sources", f"{seen.sources} cannot be read", "Run `imprint source list`.")


def _ids(some: list[UUID]) -> str:
    return ", ".join(map(str, some))


def _journal(settings: Settings) -> Iterator[Finding]:
    journal = Journal.of(settings.home)
    if waiting := journal.count():
        yield Finding(
            Level.WARN,
            "journal",
            f"{waiting} results that the database could not take wait in {journal.folder}",
            "Start a worker in this home, which records them: `imprint up` or `imprint worker`.",
        )
    if damaged := journal.count(DAMAGED):
        yield Finding(
            Level.BAD,
            "journal",
            f"{damaged} results in {journal.folder} cannot be read",
            "Look at the platforms whether what they are about is out; then remove the files.",
        )


def _late(kind: str) -> str:
    if kind == "variants":
        return "Is a worker alive, and the store reachable? `imprint backfill` puts in again what was lost."
    return "Look at the accounts and the workers."


def _which(settings: Settings) -> str:
    return "on a server" if settings.database_url else "embedded"
