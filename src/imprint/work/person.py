"""People: the first one, those who are invited, their names, roles and passwords, and who may no longer come in."""

import unicodedata
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work import first_code
from imprint.work.naming import to_camel
from imprint.work.password import hash_password, matches, refuse_weak
from imprint.work.scope import Role

# Whoever has the command line, and the first person: what either makes belongs to both.
OPERATOR = "operator"
LONGEST_NAME = 100
BAD_CODE = "That is not the code; only the one that Imprint printed last is good."


@dataclass(frozen=True)
class Person:
    """A person, without anything that opens a door."""

    id: str
    name: str
    role: str
    looks_at: str | None
    created_at: datetime
    disabled_at: datetime | None
    seen_at: datetime | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, with what can be done to it."""
        data = {to_camel(name): value for name, value in asdict(self).items()}
        return {**data, "moves": [{"name": "enable" if self.disabled_at else "disable"}]}


@dataclass(frozen=True)
class Known:
    """A person that was found or changed."""

    id: str


@dataclass(frozen=True)
class Knock:
    """What somebody who wants to come in must know."""

    id: str
    password_hash: str = field(repr=False)
    disabled: bool


@dataclass(frozen=True)
class There:
    """Whether there is one."""

    there: bool


ANY = query("person_any", There)
FIRST = query("person_first", Known)
ADD = query("person_add", Known)
LIST = query("person_list", Person)
FOUND = query("person_found", Known)
KNOCK = query("person_knock", Knock)
HASH = query("person_hash", Knock)
PASSWORD = query("person_password", Known)
CHANGE = query("person_change", Known)
DISABLE = query("person_disable", Known)
ENABLE = query("person_enable", Known)
END_ALL = query("session_end_all", Nothing)


async def first(database: Database, code: str, name: str, password: str) -> Person:
    """Make the first person, an administrator; only with the code, and only once."""
    async with database.connection() as connection:
        if await any_there(connection):
            raise _not_first()
    written = checked_name(name)
    kept = await hash_password(password)
    async with database.transaction(OPERATOR, "the first person") as connection:
        if not await first_code.used(connection, code):
            raise _not_first() if await any_there(connection) else Problem("first.bad_code", BAD_CODE)
        if await FIRST.first(connection, written, kept) is None:
            raise _not_first()
        return await show(connection, OPERATOR)


async def add(connection: Link, name: str, kept: str, role: str, looks_at: str | None) -> str:
    """Make a person, in the caller's transaction."""
    try:
        return (await ADD.one(connection, checked_name(name), kept, role, looks_at)).id
    except asyncpg.UniqueViolationError:
        raise _taken(name) from None


async def any_there(connection: Link) -> bool:
    """Say whether there is a person already."""
    return (await ANY.one(connection)).there


async def listed(connection: Link) -> list[Person]:
    """Give every person."""
    return await LIST.all(connection, None)


async def show(connection: Link, person: str) -> Person:
    """Give one person."""
    found = await LIST.first(connection, person)
    if found is None:
        raise _missing()
    return found


async def find(connection: Link, text: str) -> str:
    """Find a person by name or id, as somebody types it."""
    found = await FOUND.first(connection, text.strip())
    if found is None:
        raise _missing()
    return found.id


async def change(
    database: Database, actor: str, person: str, *, name: str | None = None, role: Role | None = None
) -> Person:
    """Give a person another name or role; one who becomes a reader looks at the things of who made them so."""
    written = None if name is None else checked_name(name)
    async with database.transaction(actor, "a person was changed") as connection:
        if role == Role.READER and actor == person:
            raise Problem("person.reader_of_oneself", "Nobody can be a reader of their own things.")
        try:
            if await CHANGE.first(connection, person, written, role, actor) is None:
                raise _missing()
        except asyncpg.UniqueViolationError:
            raise _taken(name or "") from None
        except asyncpg.CheckViolationError as refused:
            raise _explained(refused) from None
        return await show(connection, person)


async def disable(database: Database, actor: str, person: str) -> Person:
    """Let a person in no more: their sessions end at once, their keys open nothing; what is scheduled goes on."""
    async with database.transaction(actor, "a person was disabled") as connection:
        try:
            if await DISABLE.first(connection, person) is None:
                raise Problem("person.disabled", f"{(await show(connection, person)).name} is disabled already.")
        except asyncpg.CheckViolationError as refused:
            raise _explained(refused) from None
        await END_ALL.run(connection, person, None)
        return await show(connection, person)


async def enable(database: Database, actor: str, person: str) -> Person:
    """Let a person in again."""
    async with database.transaction(actor, "a person was enabled") as connection:
        if await ENABLE.first(connection, person) is None:
            raise Problem("person.not_disabled", f"{(await show(connection, person)).name} is not disabled.")
        return await show(connection, person)


async def set_password(database: Database, actor: str, person: str, password: str) -> None:
    """Give a person a new password, for one who has lost theirs; every session of theirs ends."""
    kept = await hash_password(password)
    async with database.transaction(actor, "a new password") as connection:
        if await PASSWORD.first(connection, person, kept) is None:
            raise _missing()
        await END_ALL.run(connection, person, None)


async def change_password(database: Database, person: str, session: UUID | None, old: str, new: str) -> None:
    """Let a person change their password, which they must know; every other session of theirs ends."""
    refuse_weak(new)
    async with database.connection() as connection:
        known = await HASH.first(connection, person)
    if known is None or not await matches(old, known.password_hash):
        raise Problem("person.wrong_password", "That is not the password you have now.")
    kept = await hash_password(new)
    async with database.transaction(person, "a new password") as connection:
        await PASSWORD.one(connection, person, kept)
        await END_ALL.run(connection, person, session)


def checked_name(name: str) -> str:
    """Read a name: letters that can be seen, written in one way."""
    written = " ".join(unicodedata.normalize("NFKC", name).split())
    if not 1 <= len(written) <= LONGEST_NAME or not written.isprintable():
        raise Problem("person.bad_name", f"A name has 1 to {LONGEST_NAME} letters that can be seen.")
    return written


def _explained(refused: asyncpg.CheckViolationError) -> Exception:
    if refused.constraint_name == "person_last_administrator":
        return Problem("person.last_administrator", "This is the last administrator; make another one first.")
    return refused


def _taken(name: str) -> Problem:
    return Problem("person.name_taken", f"Somebody is called {name[:LONGEST_NAME]!r} already.")


def _not_first() -> Problem:
    return Problem("first.done", "There is a first person already; sign in, or ask for an invitation.")


def _missing() -> Problem:
    return Problem("person.missing", "There is no such person.")
