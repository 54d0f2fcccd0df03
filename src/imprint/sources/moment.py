"""A moment, as servers write it: ISO 8601 or the dates of e-mail; always with a zone here."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_LONGEST = 100  # no date is longer; what is must not cost anything


def moment(text: object) -> datetime | None:
    """Read a moment; None when it is none, UTC when it names no zone."""
    if not isinstance(text, str) or not (text := text.strip()) or len(text) > _LONGEST:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def from_epoch(seconds: object) -> datetime | None:
    """Read a moment counted in seconds since 1970, or in milliseconds when it would else be long after our time."""
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 20:  # noqa: PLR2004 - int64
        seconds = int(seconds)
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        return None
    try:
        return datetime.fromtimestamp(seconds // 1000 if seconds > 10**11 else seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
