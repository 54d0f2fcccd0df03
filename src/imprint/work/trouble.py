"""Trouble with accounts: those that want their person, those whose sign-in ends soon, and keys that are missing."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from imprint.problem import Problem
from imprint.store.key_ring import load
from imprint.store.query import Link, query
from imprint.work.refresh import ENDING, Ending
from imprint.work.rotate import KEYS
from imprint.work.vault import Vault

WARNED_BEFORE = timedelta(days=14)


@dataclass(frozen=True)
class Unwell:
    """An account that wants to be signed in again."""

    id: UUID
    platform: str
    name: str
    label: str | None
    trouble: str | None
    waiting: int


@dataclass(frozen=True)
class Trouble:
    """Everything a person should know about their accounts."""

    unwell: list[Unwell]
    ending: list[Ending]
    missing_keys: list[str]


UNWELL = query("account_unwell", Unwell)


async def trouble(connection: Link, vault: Vault) -> Trouble:
    """Look at every account once."""
    return Trouble(
        await UNWELL.all(connection), await ENDING.all(connection, WARNED_BEFORE), await _missing(connection, vault)
    )


def named(account: Unwell | Ending) -> str:
    """Give the name a person knows an account by."""
    return account.label or account.name or account.platform


def until(moment: datetime) -> str:
    """Write when a sign-in ends."""
    return f"{moment:%Y-%m-%d}"


async def _missing(connection: Link, vault: Vault) -> list[str]:
    used = {row.key_id for row in await KEYS.all(connection)}
    if not used or not vault.file.exists():  # a look must not make a ring
        return sorted(used)
    try:
        return sorted(used - {key.id for key in load(vault.file).keys})
    except Problem:
        return sorted(used)
