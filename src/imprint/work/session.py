"""Sessions: a person signs in with a password and is known by a random id afterwards, of which only the hash is kept.

Each sign-in makes a new id and ends the one that was brought along, so that nobody can plant one beforehand.
"""

import hmac
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import structlog

from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work import sign_in_limit
from imprint.work.caller import Caller
from imprint.work.naming import to_camel
from imprint.work.password import matches
from imprint.work.person import END_ALL, KNOCK
from imprint.work.secret import hashed, new_token

log = structlog.get_logger()

LASTS = timedelta(days=30)
IDLE = timedelta(days=7)
LONGEST_AGENT = 300


@dataclass(frozen=True)
class Begun:
    """A session that was begun."""

    id: UUID
    expires_at: datetime


@dataclass(frozen=True)
class Opened:
    """A session and the secret that its browser carries."""

    secret: str = field(repr=False)
    begun: Begun


@dataclass(frozen=True)
class Found:
    """A session that is good, and its person."""

    id: UUID
    person_id: str
    name: str
    role: str
    looks_at: str | None
    stale: bool
    expires_at: datetime


@dataclass(frozen=True)
class Session:
    """A session as its person sees it."""

    id: UUID
    address: str
    agent: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Ended:
    """A session that was ended."""

    id: UUID


BEGIN = query("session_begin", Begun)
FIND = query("session_find", Found)
SEEN = query("session_seen", Nothing)
LIST = query("session_list", Session)
END = query("session_end", Ended)
REPLACE = query("session_replace", Nothing)


async def sign_in(
    database: Database, name: str, password: str, *, address: str, agent: str = "", before: str | None = None
) -> Opened:
    """Let a person in by name and password; whoever is unknown, disabled or wrong hears the same, and as late."""
    written = " ".join(name.split())
    async with database.connection() as connection:
        await sign_in_limit.count(connection, written, address)
        known = await KNOCK.first(connection, written)
    good = await matches(password, known.password_hash if known else None)
    if known is None or not good or known.disabled:
        log.warning("somebody could not sign in", address=address)
        raise Problem("sign_in.refused", "That name and that password do not belong together.")
    opened = await open_for(database, known.id, address=address, agent=agent, before=before)
    async with database.connection() as connection:
        await sign_in_limit.clear(connection, written, address)
    return opened


async def open_for(
    database: Database, person: str, *, address: str, agent: str = "", before: str | None = None
) -> Opened:
    """Begin a session for a person who has shown who they are."""
    secret = new_token()
    async with database.transaction(person, "signed in") as connection:
        if before:
            await REPLACE.run(connection, hashed(before))
        seen = "".join(each for each in agent if each.isprintable())[:LONGEST_AGENT]
        begun = await BEGIN.first(connection, hashed(secret), person, address[:100], seen, LASTS)
        if begun is None:
            raise Problem("sign_in.refused", "That name and that password do not belong together.")
    return Opened(secret, begun)


async def caller(connection: Link, secret: str) -> Caller | None:
    """Say who carries this secret; None when it is good for nothing."""
    found = await FIND.first(connection, hashed(secret), IDLE)
    if found is None:
        return None
    if found.stale:
        await SEEN.run(connection, found.id)
    return Caller.of(found.person_id, found.name, found.role, found.looks_at, session=found.id, csrf=csrf(secret))


def csrf(secret: str) -> str:
    """Give what a page of ours must send along with a change: it follows from the secret and does not give it away."""
    return urlsafe_b64encode(hmac.digest(secret.encode(), b"imprint csrf 1", sha256)).decode().rstrip("=")


async def listed(connection: Link, person: str) -> list[Session]:
    """Give the sessions of a person."""
    return await LIST.all(connection, person, IDLE)


async def end(database: Database, person: str, session: UUID) -> None:
    """End a session of a person."""
    async with database.transaction(person, "signed out") as connection:
        if await END.first(connection, session, person) is None:
            raise Problem("session.missing", "There is no such session.")


async def end_others(database: Database, person: str, but: UUID | None) -> None:
    """End every session of a person but one."""
    async with database.transaction(person, "signed out everywhere") as connection:
        await END_ALL.run(connection, person, but)
