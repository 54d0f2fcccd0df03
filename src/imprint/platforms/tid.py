"""A TID: the key of an atproto record, thirteen letters that are a number that looks like a moment."""

import re
from hashlib import sha256

TID = re.compile(r"[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}")
_DIGITS = "234567abcdefghijklmnopqrstuvwxyz"
# Ours lie in 2023, whenever they are made, and follow from a hash.
_BASE, _SPAN = 1_672_531_200_000_000, 365 * 86_400_000_000
_CLOCKS = 1024


def tid_of(text: str) -> str:
    """Give the TID that follows from a text, always the same."""
    seen = int.from_bytes(sha256(text.encode()).digest()[:16])
    value = (_BASE + seen // _CLOCKS % _SPAN) * _CLOCKS + seen % _CLOCKS
    return "".join(_DIGITS[value >> shift & 31] for shift in range(60, -1, -5))
