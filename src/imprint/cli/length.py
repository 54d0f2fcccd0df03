"""A length of time as a person writes it on the command line: 30m, 2h, 1h30m, 1d."""

import re
from datetime import timedelta

from imprint.problem import Problem

_LENGTH = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,7})s)?")
_MINUTES = re.compile(r"\d{1,5}")


def read_length(text: str, code: str) -> timedelta:
    """Read a length; a number alone is minutes. What cannot be read is the problem with this code."""
    plain = text.strip().lower()
    if _MINUTES.fullmatch(plain):
        return timedelta(minutes=int(plain))
    found = _LENGTH.fullmatch(plain)
    if found is None or not plain:
        raise Problem(code, f"{text[:40]!r} is no length of time; write one such as 30m, 2h, 1h30m or 1d.")
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
