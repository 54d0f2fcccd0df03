"""A secret that is given out once: of what opens a door, only the hash is kept.

These are random and long, so a plain hash is enough: there is nothing to guess. Passwords are another matter.
"""

import secrets
from hashlib import sha256

# Without letters that look like others; 25 of them are 125 bits.
_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_GROUPS, _GROUP = 5, 5


def new_token() -> str:
    """Make what a program carries."""
    return secrets.token_urlsafe(32)


def new_code() -> str:
    """Make what a person types, in groups that can be read aloud."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(_GROUP)) for _ in range(_GROUPS))


def hashed(secret: str) -> str:
    """Give what is kept of a secret."""
    return sha256(secret.encode(errors="replace")).hexdigest()


def hashed_code(typed: str) -> str:
    """Give what is kept of a code, however it was typed."""
    return hashed("".join(typed.upper().replace("-", " ").split()))
