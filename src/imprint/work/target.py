"""Targets: the addresses at which a person is told of news, sealed like sign-ins; only the service of one is shown."""

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from pydantic import SecretStr

from imprint.engine import circuit
from imprint.engine.courier import Courier
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.credential import MissingKey, Sealed
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.naming import to_camel
from imprint.work.prefix import Candidate, bounds, picked
from imprint.work.vault import TARGET, Vault

DIGESTS = ("off", "hourly", "daily")
LONGEST_URL = 4000
LONGEST_LABEL = 100


@dataclass(frozen=True)
class Row:
    """A row that was made, found or changed."""

    id: UUID


@dataclass(frozen=True)
class Target:
    """Where a person is told, without the address."""

    id: UUID
    label: str
    service: str
    digest: str
    muted: bool
    last_error: str | None
    last_error_at: datetime | None
    last_sent_at: datetime | None
    created_at: datetime
    waiting: int
    failed: int
    resting_until: datetime | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Kept:
    """A target as it lies in the database."""

    id: UUID
    person: str
    label: str
    service: str
    key_id: str
    nonce: bytes
    sealed: bytes = field(repr=False)
    digest: str
    muted: bool
    kind: str
    trusted: bool
    now: datetime


ADD = query("target_add", Row)
LIST = query("target_list", Target)
GET = query("target_get", Kept)
DIGEST = query("target_digest", Row)
MUTE = query("target_mute", Row)
REMOVE = query("target_remove", Row)
WITHDRAW = query("target_withdraw", Nothing)


def courier(settings: Settings) -> Courier:
    """Give a courier who may go where the settings allow."""
    return Courier(frozenset(settings.allowed_hosts.replace(",", " ").split()))


async def add(
    database: Database,
    vault: Vault,
    by: Courier,
    person: str,
    url: SecretStr,
    *,
    label: str | None = None,
    digest: str = "off",
) -> Target:
    """Add where a person is told; the address must be one that can be used, but nothing is sent."""
    _refuse_digest(digest)
    address = url.get_secret_value().strip()
    if not 1 <= len(address) <= LONGEST_URL or not address.isprintable():
        raise Problem("notice.bad_target", "This address cannot be used: it is empty, too long or not one line.")
    service = (await by.look(address))[:LONGEST_LABEL]
    target = uuid4()
    async with database.transaction(person, "a new target") as connection:
        sealed = await vault.seal(connection, target, TARGET, SecretStr(address))
        named = label_of(label) if label else await _free(connection, person, service)
        try:
            await ADD.one(
                connection, target, person, named, service, sealed.key_id, sealed.nonce, sealed.sealed, digest
            )
        except asyncpg.UniqueViolationError:
            raise Problem("notice.label_taken", f"There is a target {named} already; choose another name.") from None
        return await show(connection, person, target)


async def listed(connection: Link, person: str) -> list[Target]:
    """Give where a person is told, by name."""
    return await LIST.all(connection, person)


async def show(connection: Link, person: str, target: UUID) -> Target:
    """Give one target."""
    found = next((each for each in await listed(connection, person) if each.id == target), None)
    if found is None:
        raise missing()
    return found


async def find(connection: Link, person: str, text: str) -> UUID:
    """Find a target by its name, its id or the first letters of that."""
    low, high = bounds(text)
    known = [Candidate(each.id, each.label, each.label == text) for each in await listed(connection, person)]
    return picked(text, [each for each in known if each.exact or low <= each.id <= high], missing())


async def set_digest(database: Database, person: str, target: UUID, digest: str) -> Target:
    """Let a target hear at once (off), hourly or daily; what already waits goes out as it was planned."""
    _refuse_digest(digest)
    async with database.transaction(person, "another digest") as connection:
        if await DIGEST.first(connection, target, person, digest) is None:
            raise missing()
        return await show(connection, person, target)


async def mute(database: Database, person: str, target: UUID, *, muted: bool) -> Target:
    """Keep a target from hearing anything, or let it hear again; what it missed is not made up for."""
    async with database.transaction(person, "muted" if muted else "heard again") as connection:
        if await MUTE.first(connection, target, person, muted) is None:
            raise missing()
        return await show(connection, person, target)


async def remove(database: Database, person: str, target: UUID) -> None:
    """Remove a target, forget its address, and let go of what waits for it."""
    async with database.transaction(person, "the target was removed") as connection:
        if await REMOVE.first(connection, target, person) is None:
            raise missing()
        await WITHDRAW.run(connection, target)
        await circuit.forget(connection, key(target))


async def try_out(database: Database, vault: Vault, by: Courier, person: str, target: UUID) -> None:
    """Send a message to a target now; raise NotSent with what went wrong."""
    async with database.connection() as connection:
        await show(connection, person, target)
        address = await opened(connection, vault, target)
        kept = await GET.first(connection, target)
    if address is None or kept is None:
        raise missing()
    text = "This is where you will be told of new chapters."
    await by.send(address.get_secret_value(), "Imprint", text, trusted=kept.trusted)


async def opened(connection: Link, vault: Vault, target: UUID) -> SecretStr | None:
    """Open the address of a target for a moment; None when it was removed."""
    for last in (False, True):
        kept = await GET.first(connection, target)
        if kept is None:
            return None
        try:
            return vault.unseal(target, TARGET, Sealed(kept.key_id, kept.nonce, kept.sealed))
        except MissingKey:
            if last:
                raise
            # Between the two reads a rotation may have sealed it with another key.
    raise AssertionError("unreachable")  # pragma: no cover


def key(target: UUID) -> str:
    """Name the circuit of a target."""
    return f"target:{target}"


def missing() -> Problem:
    """Say that there is no such target."""
    return Problem("notice.no_target", "There is no such target.")


async def _free(connection: Link, person: str, service: str) -> str:
    taken = {each.label for each in await listed(connection, person)}
    names = (service.lower(), *(f"{service.lower()}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def label_of(label: str) -> str:
    """Read what somebody calls a target."""
    clean = " ".join(label.split())
    if not 1 <= len(clean) <= LONGEST_LABEL or not clean.isprintable():
        raise Problem("notice.bad_label", f"A target's name has 1 to {LONGEST_LABEL} letters.")
    return clean


def _refuse_digest(digest: str) -> None:
    if digest not in DIGESTS:
        raise Problem("notice.bad_digest", f"A digest is {', '.join(DIGESTS)}.")
