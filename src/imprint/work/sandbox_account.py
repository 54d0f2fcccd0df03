"""A sandbox account: a first post within minutes, without any registration; nothing leaves the machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from imprint.engine.wire import Wire
from imprint.problem import Problem, Unavailable
from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work.account import Account
from imprint.work.vault import Vault

LABEL = "Sandbox"


@dataclass(frozen=True)
class Place:
    """Where in the sandbox somebody can publish: the platform, what that asks for, and where one sees what arrived."""

    platform: str
    answers: Mapping[str, str]
    gallery: str


class Sandbox(Protocol):
    """A sandbox that stands beside Imprint; who that is decides the caller, since this room does not see it."""

    async def place(self, name: str) -> Place:
        """Start it if it does not run, and give a place in it."""
        ...


async def connect(database: Database, vault: Vault, sandbox: Sandbox | None, owner: str) -> tuple[Account, str]:
    """Connect a place in the sandbox, or give the one that is connected; and where one sees what arrives there."""
    if sandbox is None:
        raise Problem("sandbox.none", "This server runs without a sandbox, so there is no account of one to connect.")
    place = await sandbox.place(owner)
    wire = Wire()  # its address is on this machine, which others may not name; this one was chosen by us
    try:
        made = await accounts.begin(database, vault, wire, owner, place.platform, place.answers, "", label=LABEL)
    except Problem as problem:
        if problem.code not in {"account.already_there", "account.label_taken"}:
            raise
        async with database.connection() as connection:
            return await accounts.show(connection, owner, await accounts.find(connection, owner, LABEL)), place.gallery
    if not isinstance(made, Account):
        raise Unavailable("sandbox.strange", "The sandbox wants to see a person; it should not.")
    return made, place.gallery
