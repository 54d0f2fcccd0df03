"""Rotate: seal everything with a new key; may be cut off at any point, and what was sealed can always be opened.

First the new key joins the ring, then every row is sealed with it in one transaction, and only then, if that is wanted
at all, keys that seal nothing any more are taken off.
"""

from dataclasses import dataclass, field
from uuid import UUID

import structlog

from imprint.store.credential import Sealed, Unopenable, seal, unseal
from imprint.store.db import Database
from imprint.store.key_ring import KeyRing, grow, shrink
from imprint.store.query import Link, Nothing, Query, query
from imprint.work.vault import CREDENTIAL, ERRAND, TARGET, Locked, Vault

log = structlog.get_logger()


@dataclass(frozen=True)
class SealedCredential:
    """A sign-in, sealed with an older key."""

    account_id: UUID
    key_id: str
    nonce: bytes
    sealed: bytes = field(repr=False)


@dataclass(frozen=True)
class SealedErrand:
    """An errand, sealed with an older key."""

    id: UUID
    key_id: str
    nonce: bytes
    sealed: bytes = field(repr=False)


@dataclass(frozen=True)
class SealedTarget:
    """Where a person is told, sealed with an older key."""

    id: UUID
    key_id: str
    nonce: bytes
    sealed: bytes = field(repr=False)


@dataclass(frozen=True)
class InUse:
    """A key with which something is sealed."""

    key_id: str


@dataclass(frozen=True)
class Rotated:
    """How many rows were sealed anew, how many could not be opened, and how many keys are on the ring now."""

    resealed: int
    unopenable: int
    keys: int


ROTATING = query("credential_rotating", Locked)
CREDENTIALS = query("credential_sealed_otherwise", SealedCredential)
ERRANDS = query("errand_sealed_otherwise", SealedErrand)
TARGETS = query("target_sealed_otherwise", SealedTarget)
RESEAL_CREDENTIAL = query("credential_reseal", Nothing)
RESEAL_ERRAND = query("errand_reseal", Nothing)
RESEAL_TARGET = query("target_reseal", Nothing)
KEYS = query("credential_keys", InUse)


async def rotate(database: Database, vault: Vault, owner: str, *, forget: bool = False) -> Rotated:
    """Make a new key and seal everything with it; `forget` takes the old ones off: older backups then stay sealed."""
    async with database.transaction(owner, "the keys are rotated") as connection:
        await ROTATING.one(connection)
        ring = grow(vault.file)
        resealed, unopenable = await _reseal(connection, ring)
    if forget:
        async with database.transaction(owner, "old keys are forgotten") as connection:
            await ROTATING.one(connection)
            ring = shrink(vault.file, {row.key_id for row in await KEYS.all(connection)})
    return Rotated(resealed, unopenable, len(ring.keys))


async def _reseal(connection: Link, ring: KeyRing) -> tuple[int, int]:
    newest = ring.newest.id
    done = [
        await _one(connection, ring, RESEAL_CREDENTIAL, row.account_id, CREDENTIAL, _sealed(row))
        for row in await CREDENTIALS.all(connection, newest)
    ]
    done += [
        await _one(connection, ring, RESEAL_ERRAND, row.id, ERRAND, _sealed(row))
        for row in await ERRANDS.all(connection, newest)
    ]
    done += [
        await _one(connection, ring, RESEAL_TARGET, row.id, TARGET, _sealed(row))
        for row in await TARGETS.all(connection, newest)
    ]
    return sum(done), len(done) - sum(done)


async def _one(
    connection: Link, ring: KeyRing, statement: Query[Nothing], row: UUID, purpose: str, sealed: Sealed
) -> bool:
    try:
        secret = unseal(ring, row, purpose, sealed)
    except Unopenable as problem:
        # Left as it is: its key may come back, and one bad row must not keep the others under an old key.
        log.warning("a sealed row cannot be opened", row=str(row), code=problem.code)
        return False
    anew = seal(ring, row, purpose, secret)
    await statement.run(connection, row, anew.key_id, anew.nonce, anew.sealed)
    return True


def _sealed(row: SealedCredential | SealedErrand | SealedTarget) -> Sealed:
    return Sealed(row.key_id, row.nonce, row.sealed)
