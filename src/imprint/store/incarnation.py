"""The incarnation: tells a restored or cloned database from the one that made the last sends.

The database knows an id, the place it lives in and a generation that grows while Imprint runs; the home keeps
the id, the last generation it saw and which folder it is, outside the database. A database that is behind its
home comes from a backup: it has forgotten sends that were made. One that is not where it says it is was copied:
its original may still be sending. Either way every send is held until a person has looked.
"""

import json
import os
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from uuid import UUID

from imprint.problem import Problem
from imprint.store.query import Link, Nothing, query

FILE = "incarnation.json"


@dataclass(frozen=True)
class Incarnation:
    """Which database this is."""

    id: UUID
    place: str
    generation: int
    held_since: datetime | None
    held_why: str | None
    here: str


@dataclass(frozen=True)
class Mark:
    """What a home remembers of its database."""

    id: UUID
    generation: int
    folder: int


@dataclass(frozen=True)
class Grown:
    """The generation a database has reached."""

    id: UUID
    generation: int


@dataclass(frozen=True)
class Suspects:
    """How many publications may be out without this database knowing."""

    suspects: int


BEGIN = query("incarnation_begin", Nothing)
CURRENT = query("incarnation_current", Incarnation)
READ = query("incarnation_read", Incarnation)
ADVANCE = query("incarnation_advance", Grown)
HOLD = query("incarnation_hold", Nothing)
ACCEPT = query("incarnation_accept", Nothing)
SUSPECT = query("incarnation_suspect", Suspects)


def judge(database: Incarnation, mark: Mark | None, *, embedded: bool, folder: int) -> str | None:
    """Say why sends must be held, None when this is the database it should be."""
    new = database.generation == 1
    if database.place != database.here:
        return "this database was copied from another place; the original may still be sending"
    if mark is None:
        # A server may get a new worker on a new machine at any time; an embedded database never leaves its home.
        return (
            "this home has lost its mark, so nobody can tell how old its database is" if embedded and not new else None
        )
    if mark.id != database.id:
        return None if new else "this home has worked with another database before"
    if embedded and mark.folder != folder:
        return "this home was copied from another place; the original may still be sending"
    if mark.generation > database.generation:
        return "this database is older than what was last seen here: it was restored from a backup"
    return None


async def check(connection: Link, home: Path, *, embedded: bool) -> Incarnation:
    """Compare database and home at a start; hold the sends on a mismatch, go forward otherwise."""
    async with connection.transaction():
        await BEGIN.run(connection)
        found = await CURRENT.one(connection)
        why = None if found.held_since else judge(found, read_mark(home), embedded=embedded, folder=_folder(home))
        if why:
            await HOLD.run(connection, why)
        if not why and not found.held_since:
            grown = await ADVANCE.one(connection)
    if not why and not found.held_since:
        write_mark(home, grown)
    return await READ.one(connection)


async def look(connection: Link, home: Path, *, embedded: bool) -> Incarnation:
    """Say what a start would find, and change nothing."""
    found = await READ.one(connection)
    why = found.held_why or judge(found, read_mark(home), embedded=embedded, folder=_folder(home))
    return replace(found, held_why=why)


async def advance(connection: Link, home: Path, *, embedded: bool) -> None:
    """Grow the generation and let the home remember it; hold the sends if the database went back under our feet.

    Called with every sign of life and before the first job of every new connection.
    """
    async with connection.transaction():
        found = await CURRENT.first(connection)
        if found is None or found.held_since:
            return  # what a held database says must not become the home's truth
        if why := judge(found, read_mark(home), embedded=embedded, folder=_folder(home)):
            await HOLD.run(connection, why)
            return
        grown = await ADVANCE.one(connection)
    write_mark(home, grown)


async def accept(connection: Link, home: Path) -> Incarnation:
    """Go on with this database: a person has looked. What was due meanwhile may be out; it is found out, not resent."""
    async with connection.transaction():
        found = await CURRENT.one(connection)
        if not found.held_since:
            raise Problem(
                "incarnation.not_held", "Nothing is held: this is the database Imprint has been working with."
            )
        mark = read_mark(home)
        await ACCEPT.run(connection, found.here, mark.generation if mark else 0)
        await SUSPECT.one(connection)
        grown = await ADVANCE.one(connection)
    write_mark(home, grown)
    return await READ.one(connection)


def read_mark(home: Path) -> Mark | None:
    """Read what the home remembers; a mark that cannot be read is no mark."""
    try:
        data = json.loads((home / FILE).read_text())
        return Mark(UUID(str(data["id"])), int(data["generation"]), int(data["folder"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_mark(home: Path, grown: Grown) -> None:
    """Let the home remember, so that a power cut leaves the old mark or the new one and never half of one."""
    before = read_mark(home)
    if before and before.id == grown.id and before.generation > grown.generation:
        return  # another process of this home was quicker
    temporary = home / f"{FILE}.{os.getpid()}"
    with temporary.open("w") as file:
        json.dump({"id": str(grown.id), "generation": grown.generation, "folder": _folder(home)}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(home / FILE)


def _folder(home: Path) -> int:
    """Give a number that a folder keeps when it is renamed and does not keep when it is copied."""
    return home.stat().st_ino
