"""Orphans: bytes that no row speaks of, and rows whose bytes are not there; found by comparing listings, part by part.

Keys begin with two random letters, so that a store falls into 256 parts of about the same size: one part of the
listing and of the rows is in memory at a time, however large the store is.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from uuid import UUID

import structlog

from imprint.blobs.store import Found
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.incarnation import READ as INCARNATION
from imprint.store.query import Link, query
from imprint.work.stores import Stores
from imprint.work.sweep import DONE, MOVED, READ, alone
from imprint.work.upload import TIME

log = structlog.get_logger()

PARTS = tuple(f"{number:02x}" for number in range(256))
# A chore may take ten minutes; what is left is gone on with the next time.
BUDGET_SECONDS = 240.0


@dataclass(frozen=True)
class Known:
    """An object as its row describes it."""

    key: str
    content_id: UUID
    variant: str | None
    size: int | None
    stored: bool


@dataclass(frozen=True)
class Store:
    """A store that rows speak of."""

    store: str
    objects: int


KNOWN = query("orphan_known", Known)
STORES = query("orphan_stores", Store)


@dataclass
class Compared:
    """What a part of a store and its rows do not agree about."""

    looked_at: int = 0
    orphans: list[Found] = field(default_factory=list)
    missing: list[Known] = field(default_factory=list)
    wrong_size: list[Known] = field(default_factory=list)


async def compare(connection: Link, stores: Stores, store: str, parts: Collection[str]) -> Compared:
    """Hold listing and rows against each other; the listing first, so that what is recorded meanwhile is known."""
    compared = Compared()
    for part in parts:
        there = {found.key: found async for found in stores.of(store).walk(part)}
        known = {row.key: row for row in await KNOWN.all(connection, store, f"{part}/", f"{part}0")}
        compared.looked_at += len(there)
        compared.orphans += [found for key, found in there.items() if key not in known]
        for key, row in known.items():
            if row.stored and key not in there:
                compared.missing.append(row)
            elif row.stored and there[key].size != row.size:
                compared.wrong_size.append(row)
    return compared


async def collect(database: Database, stores: Stores, settings: Settings, *, seconds: float = BUDGET_SECONDS) -> int:
    """Remove bytes that no row has spoken of for long enough, and what killed writers left behind; say how many.

    Not while sends are held: a database that was restored from the past does not know the bytes that came since.
    """
    async with database.connection() as connection:
        incarnation = await INCARNATION.first(connection)
    if incarnation is not None and incarnation.held_since is not None:
        log.warning("bytes that belong to nothing stay until the database was accepted")
        return 0
    age = timedelta(hours=settings.upload_leftover_hours)
    removed = 0
    for name, blobs in stores.every.items():
        sweep, until = f"orphans in {name}", monotonic() + seconds
        async with alone(database, sweep) as connection:
            before = (await TIME.one(connection)).now - age
            removed += await blobs.reap(before)
            stand = await READ.first(connection, sweep)
            for part in PARTS[PARTS.index(stand.cursor) if stand else 0 :]:
                if monotonic() > until:
                    break
                for orphan in (await compare(connection, stores, name, [part])).orphans:
                    if orphan.modified < before:
                        await blobs.delete(orphan.key)
                        removed += 1
                await MOVED.run(connection, sweep, part, "{}")
            else:
                await DONE.run(connection, sweep)
    if removed:
        log.info("removed bytes that belong to nothing", objects=removed)
    return removed
