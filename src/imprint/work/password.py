"""Passwords: hashed with argon2id, never kept, never shown; a check takes the same time whoever is asked for."""

import asyncio
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import argon2

from imprint.problem import Problem

SHORTEST, LONGEST = 12, 200
FEWEST_DIFFERENT = 4
# What OWASP advises for a server that also does other things: 19 MiB and two rounds, 30 ms on one core.
_HASHER = argon2.PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1)
# However many knock, two are looked at at a time: each costs memory and a core.
_TURNS = ThreadPoolExecutor(2, thread_name_prefix="password")


def refuse_weak(password: str) -> None:
    """Raise when a password is too short, too long or too simple to be used."""
    if not SHORTEST <= len(password) <= LONGEST or len(set(password)) < FEWEST_DIFFERENT:
        raise Problem(
            "person.weak_password",
            f"A password has {SHORTEST} to {LONGEST} letters, and not the same few over and over.",
        )


async def hash_password(password: str) -> str:
    """Hash a password that is good enough."""
    refuse_weak(password)
    return await asyncio.get_running_loop().run_in_executor(_TURNS, _HASHER.hash, _written(password))


async def matches(password: str, kept: str | None) -> bool:
    """Say whether this is the password; with nobody to compare it with, take as long and say no."""
    return await asyncio.get_running_loop().run_in_executor(_TURNS, _check, password, kept)


def _check(password: str, kept: str | None) -> bool:
    try:
        _HASHER.verify(kept or _nobody(), _written(password))
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False
    return kept is not None


@cache
def _nobody() -> str:
    return _HASHER.hash("nobody has this password")


def _written(password: str) -> bytes:
    # The same letters, whichever way a keyboard writes them.
    return unicodedata.normalize("NFKC", password).encode(errors="replace")
