"""A credential: what an account signs in with, sealed with AES-GCM before it reaches the database.

The id of the row is sealed with it as associated data, so that a sealed text moved to another row does not open.
"""

from dataclasses import dataclass, field
from secrets import token_bytes
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from imprint.problem import Problem
from imprint.store.key_ring import KeyRing

_NONCE = 12


class Unopenable(Problem):
    """A sealed text that cannot be opened: its key is missing, or it is not what was sealed for this row."""


class MissingKey(Unopenable):
    """The key that sealed it is not on the ring."""


@dataclass(frozen=True)
class Sealed:
    """A secret as it lies in a row."""

    key_id: str
    nonce: bytes
    sealed: bytes = field(repr=False)


def seal(ring: KeyRing, row: UUID, purpose: str, secret: SecretStr) -> Sealed:
    """Seal a secret for one row and one purpose with the newest key; the nonce is new each time."""
    nonce = token_bytes(_NONCE)
    sealed = AESGCM(ring.newest.secret).encrypt(nonce, secret.get_secret_value().encode(), _bound(row, purpose))
    return Sealed(ring.newest.id, nonce, sealed)


def unseal(ring: KeyRing, row: UUID, purpose: str, sealed: Sealed) -> SecretStr:
    """Open what was sealed for this very row and purpose, or say why it does not open."""
    key = ring.key(sealed.key_id)
    if key is None:
        raise MissingKey(
            "credential.no_key",
            f"The key {sealed.key_id} that sealed a sign-in is not in the key file; put it back, or connect anew.",
        )
    try:
        return SecretStr(AESGCM(key.secret).decrypt(sealed.nonce, sealed.sealed, _bound(row, purpose)).decode())
    except InvalidTag:
        # Without the cause: there is nothing in it, and nothing should ever be.
        raise Unopenable(
            "credential.changed", "A sealed sign-in is not what was sealed for this account; connect it anew."
        ) from None


def _bound(row: UUID, purpose: str) -> bytes:
    return f"imprint {purpose} ".encode() + row.bytes
