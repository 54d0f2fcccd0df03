"""API keys: what a person's own programs come in with; shown once, kept as a hash, good for what it was given for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.caller import Caller
from imprint.work.naming import to_camel
from imprint.work.person import show as show_person
from imprint.work.prefix import Candidate, picked
from imprint.work.scope import checked
from imprint.work.secret import hashed, new_token

MARK = "imp_"
SHOWN = len(MARK) + 6
LONGEST_LABEL = 100


@dataclass(frozen=True)
class ApiKey:
    """A key as its person sees it, without what opens a door."""

    id: UUID
    person_id: str
    person: str
    label: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, with what can be done to it."""
        data = {to_camel(name): value for name, value in asdict(self).items()}
        return {**data, "moves": [] if self.revoked_at else [{"name": "revoke"}]}


@dataclass(frozen=True)
class Made:
    """A key that was just made, and the secret of it, which nobody sees again."""

    key: ApiKey
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Row:
    """A key that was made, found or revoked."""

    id: UUID


@dataclass(frozen=True)
class Found:
    """A key that is good, and its person."""

    id: UUID
    person_id: str
    name: str
    role: str
    looks_at: str | None
    scopes: list[str]
    stale: bool


ADD = query("api_key_add", Row)
LIST = query("api_key_list", ApiKey)
FIND = query("api_key_find", Found)
USED = query("api_key_used", Nothing)
REVOKE = query("api_key_revoke", Row)
FOUND = query("api_key_found", Candidate)


async def add(
    database: Database, actor: str, person: str, label: str, scopes: Sequence[str], lasts: timedelta | None = None
) -> Made:
    """Make a key for a person, for nothing that they may not do themselves."""
    written = " ".join(label.split())
    if not 1 <= len(written) <= LONGEST_LABEL or not written.isprintable():
        raise Problem("api_key.bad_label", f"Say in 1 to {LONGEST_LABEL} letters what the key is for.")
    secret = MARK + new_token()
    async with database.transaction(actor, "a new key") as connection:
        of = await show_person(connection, person)
        wanted = checked(scopes, of.role)
        row = await ADD.one(connection, hashed(secret), person, written, secret[:SHOWN], wanted, lasts)
        return Made(await LIST.one(connection, person, row.id), secret)


async def listed(connection: Link, person: str | None) -> list[ApiKey]:
    """Give the keys of a person, or of everybody."""
    return await LIST.all(connection, person, None)


async def find(connection: Link, text: str) -> UUID:
    """Find a key by the first letters of its id or of itself, as somebody types them."""
    return picked(text, await FOUND.all(connection, text.strip()), _missing())


async def revoke(database: Database, actor: str, key: UUID, *, of: str | None) -> None:
    """Make a key good for nothing, at once; `of` a person, or of anybody."""
    async with database.transaction(actor, "a key was revoked") as connection:
        if await REVOKE.first(connection, key, of) is None:
            raise _missing()


async def caller(connection: Link, secret: str) -> Caller | None:
    """Say who comes with this key; None when it is good for nothing."""
    if not secret.startswith(MARK):
        return None
    found = await FIND.first(connection, hashed(secret))
    if found is None:
        return None
    if found.stale:
        await USED.run(connection, found.id)
    return Caller.of(found.person_id, found.name, found.role, found.looks_at, scopes=found.scopes, key=found.id)


def _missing() -> Problem:
    return Problem("api_key.missing", "There is no such key, or it was revoked already.")
