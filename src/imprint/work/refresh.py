"""Refresh: renews sign-ins that would otherwise end for good because nothing was published for a long time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from imprint.engine.wire import Wire
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.sign_in import signed_in
from imprint.work.vault import Vault

log = structlog.get_logger()

# A person is warned two weeks before the end; by then it was tried for as long again.
RENEWED_BEFORE = timedelta(days=28)


@dataclass(frozen=True)
class Ending:
    """An account whose sign-in ends for good."""

    id: UUID
    platform: str
    name: str
    label: str | None
    renewable_until: datetime


ENDING = query("account_ending", Ending)


async def refresh(database: Database, vault: Vault, wire: Wire) -> int:
    """Renew every sign-in that ends soon, and say how many were; one that cannot be does not stop the others."""
    async with database.connection() as connection:
        ending = await ENDING.all(connection, RENEWED_BEFORE)
    renewed = 0
    for account in ending:
        try:
            async with database.connection() as connection:
                version = (await vault.get(connection, account.id)).kept.version
            await signed_in(database, vault, wire, account.id, refused=version)
            renewed += 1
        except Problem as problem:
            log.warning("a sign-in that ends soon was not renewed", account=str(account.id), code=problem.code)
    return renewed
