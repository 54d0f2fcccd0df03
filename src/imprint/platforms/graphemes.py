"""Graphemes: what a person takes for one character; a family of four emoji is one, and so is a letter with its accents.

Counted as Unicode says, but for the conjuncts of Indic scripts, which the newest rules take together and this does not:
a text may be counted a little too long, never too short.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regex import Pattern


def graphemes(text: str) -> list[str]:
    """Take a text apart."""
    return list(text) if _plain(text) else _cluster().findall(text)


def count(text: str) -> int:
    """Count the graphemes of a text."""
    return len(text) if _plain(text) else sum(1 for _ in _cluster().finditer(text))


def _plain(text: str) -> bool:
    # In ASCII only a line's end is made of two.
    return text.isascii() and "\r" not in text


@lru_cache(maxsize=1)
def _cluster() -> "Pattern[str]":
    import regex  # noqa: PLC0415 - 11 MB, for those who publish only

    return regex.compile(r"\X")
