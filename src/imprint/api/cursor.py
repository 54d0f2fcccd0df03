"""Cursors: where a page ended, in letters that mean nothing to others; the next page begins after it."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query

from imprint.problem import Problem

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = timedelta(microseconds=1)
_TIME_BYTES = 8

Cursor = Annotated[
    str | None, Query(max_length=100, description="Where the page before ended: its `next`.", examples=[None])
]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]


def write(at: datetime, row: UUID) -> str:
    """Write where a page ends."""
    data = ((at - _EPOCH) // _MOMENT).to_bytes(_TIME_BYTES, signed=True) + row.bytes
    return urlsafe_b64encode(data).decode().rstrip("=")


def read(cursor: str | None) -> tuple[datetime, UUID] | None:
    """Read where the page before ended; None at the beginning."""
    if cursor is None:
        return None
    try:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        row = UUID(bytes=data[_TIME_BYTES:])  # raises unless so many are left
        at = _EPOCH + int.from_bytes(data[:_TIME_BYTES], signed=True) * _MOMENT
    except (ValueError, OverflowError):
        raise _bad() from None
    return at, row


def write_number(number: int) -> str:
    """Write where a page ends whose rows have numbers."""
    return urlsafe_b64encode(number.to_bytes(_TIME_BYTES)).decode().rstrip("=")


def read_number(cursor: str | None) -> int | None:
    """Read the number at which the page before ended; None at the beginning."""
    if cursor is None:
        return None
    try:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        data = b""
    number = int.from_bytes(data)
    if len(data) != _TIME_BYTES or number >= 2**63:
        raise _bad()
    return number


def page(
    rows: Sequence[Any], limit: int, items: Sequence[Any], by: str = "created_at", row: str = "id"
) -> dict[str, Any]:
    """Give one page and where it ends, of one row more than fits: with it, there is a next one."""
    if len(rows) <= limit:
        return {"items": items, "next": None}
    last = rows[limit - 1]
    return {"items": items[:limit], "next": write(getattr(last, by), getattr(last, row))}


def numbered(rows: Sequence[Any], limit: int, items: Sequence[Any], by: str = "id") -> dict[str, Any]:
    """Give one page and where it ends, of rows that have numbers."""
    if len(rows) <= limit:
        return {"items": items, "next": None}
    return {"items": items[:limit], "next": write_number(getattr(rows[limit - 1], by))}


def _bad() -> Problem:
    return Problem("cursor.bad", "This cursor is none; take `next` of the page before as it is.")
