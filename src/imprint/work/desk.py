"""A desk: what everybody who publishes works with, put together once for each worker."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from imprint.decisions.publishing import DEFAULT, Policy
from imprint.engine.wire import Wire
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work.derive import Deriver
from imprint.work.journal import Journal
from imprint.work.vault import Vault


@dataclass(frozen=True)
class Desk:
    """The database, the keys, the wire, the files and the journal; `roll` is the chance that spreads retries."""

    database: Database
    vault: Vault
    wire: Wire
    deriver: Deriver
    journal: Journal
    settings: Settings
    actor: str = "worker"
    policy: Policy = DEFAULT
    roll: Callable[[], float] = random.random

    @property
    def lease(self) -> timedelta:
        """Say how long a publication is held without a sign of life."""
        return timedelta(seconds=self.settings.lease_seconds)


def account_circuit(account: object) -> str:
    """Name the circuit and the pace of an account."""
    return f"account:{account}"


def host_circuit(host: str) -> str:
    """Name the circuit of a platform's host."""
    return f"host:{host}"
