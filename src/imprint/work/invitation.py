"""Invitations: one person lets another in, with a code that can be used once."""

from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work.naming import to_camel
from imprint.work.password import hash_password
from imprint.work.person import Person, add, checked_name, show
from imprint.work.scope import Role
from imprint.work.secret import hashed_code, new_code

LASTS = timedelta(days=7)
LONGEST_LABEL = 100


@dataclass(frozen=True)
class Invitation:
    """An invitation that is still open."""

    id: UUID
    role: str
    invited_by: str
    label: str
    created_at: datetime
    expires_at: datetime

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, with what can be done to it."""
        return {to_camel(name): value for name, value in asdict(self).items()} | {"moves": [{"name": "withdraw"}]}


@dataclass(frozen=True)
class Made:
    """An invitation that was just made, and its code, which nobody sees again."""

    id: UUID
    role: str
    expires_at: datetime
    code: str = field(repr=False)

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, code and all."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Begun:
    """An invitation that was written down."""

    id: UUID
    expires_at: datetime


@dataclass(frozen=True)
class Held:
    """An open invitation that stays so until the transaction ends."""

    id: UUID
    role: str
    invited_by: str


@dataclass(frozen=True)
class Row:
    """An invitation that has ended."""

    id: UUID


ADD = query("invitation_add", Begun)
LIST = query("invitation_list", Invitation)
LOCK = query("invitation_lock", Held)
USE = query("invitation_use", Row)
WITHDRAW = query("invitation_withdraw", Row)


async def invite(database: Database, actor: str, role: Role, label: str = "", lasts: timedelta = LASTS) -> Made:
    """Invite somebody; a reader will look at the things of who invited them. Only an administrator invites others."""
    written = " ".join(label.split())
    if len(written) > LONGEST_LABEL or not written.isprintable():
        raise Problem("invitation.bad_label", f"Say in {LONGEST_LABEL} letters at most whom it is for.")
    code = new_code()
    async with database.transaction(actor, "somebody was invited") as connection:
        by = await show(connection, actor)
        if by.role == Role.READER or (by.role == Role.MEMBER and role != Role.READER):
            raise Problem("invitation.beyond", f"Somebody who is {by.role} cannot invite one as {role}.")
        begun = await ADD.first(connection, hashed_code(code), role, actor, written, lasts)
        if begun is None:
            raise Problem("person.disabled", "Whoever is disabled invites nobody.")
        return Made(begun.id, role, begun.expires_at, code)


async def accept(database: Database, code: str, name: str, password: str) -> Person:
    """Take an invitation up: the person is there, and the code is good for nothing, in one step."""
    checked_name(name)
    kept = await hash_password(password)
    async with database.transaction("invitation", "somebody took an invitation up") as connection:
        held = await LOCK.first(connection, hashed_code(code))
        if held is None:
            raise Problem("invitation.bad_code", "This code is no invitation, or its time is over.")
        person = await add(connection, name, kept, held.role, held.invited_by if held.role == Role.READER else None)
        await USE.one(connection, held.id, person)
        return await show(connection, person)


async def listed(connection: Link, by: str | None) -> list[Invitation]:
    """Give the open invitations of a person, or of all."""
    return await LIST.all(connection, by)


async def withdraw(database: Database, actor: str, invitation: UUID, *, by: str | None) -> None:
    """Take an invitation back that nobody has taken up."""
    async with database.transaction(actor, "an invitation was withdrawn") as connection:
        if await WITHDRAW.first(connection, invitation, by) is None:
            raise Problem("invitation.missing", "There is no such open invitation.")
