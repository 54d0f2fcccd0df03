"""The vault: where sign-ins are kept, sealed in the database, with keys that are in a file beside it."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import SecretStr, ValidationError

from imprint.platforms.contract import Platform
from imprint.platforms.login import Login
from imprint.platforms.registry import PLATFORMS
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.credential import MissingKey, Sealed, Unopenable, seal, unseal
from imprint.store.key_ring import FILE, load
from imprint.store.query import Link, query

CREDENTIAL, ERRAND, TARGET = "credential", "errand", "target"
NOT_SIGNED_IN = "account.not_signed_in"


@dataclass(frozen=True)
class Locked:
    """A lock was given."""

    locked: str


@dataclass(frozen=True)
class Version:
    """Which sign-in of an account this is; it grows with each."""

    version: int


@dataclass(frozen=True)
class Kept:
    """A sign-in as it lies in the database."""

    account_id: UUID
    platform: str
    name: str
    label: str | None
    status: str
    trouble: str | None
    key_id: str
    nonce: bytes
    sealed: bytes = field(repr=False)
    version: int
    lasts: timedelta | None
    renewing: bool
    abandoned: bool

    @property
    def shown(self) -> str:
        """Give the name a person knows the account by."""
        return self.label or self.name or self.platform


WRITING = query("credential_writing", Locked)
PUT = query("credential_put", Version)
GET = query("credential_get", Kept)


@dataclass(frozen=True)
class Opened:
    """A sign-in, opened for a moment; the secrets in the login show themselves to nobody."""

    kept: Kept
    login: Login


@dataclass(frozen=True)
class Vault:
    """Seals and opens; reads its keys anew each time, since they may be rotated while this process runs."""

    file: Path

    @classmethod
    def of(cls, settings: Settings) -> "Vault":
        """Give the vault that the settings name."""
        return cls(settings.credential_key_file or settings.home / FILE)

    async def seal(self, connection: Link, row: UUID, purpose: str, secret: SecretStr) -> Sealed:
        """Seal for a row that is written in this transaction; a rotation waits until it has ended."""
        await WRITING.one(connection)
        return seal(load(self.file), row, purpose, secret)

    def unseal(self, row: UUID, purpose: str, sealed: Sealed) -> SecretStr:
        """Open what was sealed for a row."""
        return unseal(load(self.file), row, purpose, sealed)

    async def put(self, connection: Link, account: UUID, login: Login) -> int:
        """Keep what an account signs in with, and give its version."""
        sealed = await self.seal(connection, account, CREDENTIAL, SecretStr(login.sealable()))
        kept = await PUT.one(
            connection,
            account,
            sealed.key_id,
            sealed.nonce,
            sealed.sealed,
            login.expires_in,
            login.renewable_for,
        )
        return kept.version

    async def get(self, connection: Link, account: UUID) -> Opened:
        """Open what an account signs in with."""
        for last in (False, True):
            kept = await GET.first(connection, account)
            if kept is None:
                raise Problem(NOT_SIGNED_IN, "This account has no sign-in; connect it.")
            try:
                text = self.unseal(account, CREDENTIAL, Sealed(kept.key_id, kept.nonce, kept.sealed))
                return Opened(kept, _login(platform(kept.platform), text))
            except MissingKey:
                if last:
                    raise
                # Between the two reads a rotation may have sealed it with another key.
        raise AssertionError("unreachable")  # pragma: no cover


def platform(name: str) -> Platform[Any]:
    """Give the platform of a name."""
    if name not in PLATFORMS:
        raise Problem("account.no_platform", f"There is no platform {name!r}; there are {', '.join(PLATFORMS)}.")
    return PLATFORMS[name]


def _login(of: Platform[Any], text: SecretStr) -> Login:
    try:
        login: Login = of.login_type.model_validate_json(text.get_secret_value())
    except ValidationError:
        # Not a word of it, nor as a cause: it is made of secrets.
        raise Unopenable("credential.changed", f"The sign-in of a {of.name} account has another form by now.") from None
    return login
