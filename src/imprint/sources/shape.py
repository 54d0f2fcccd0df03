"""The shape of foreign JSON: fields taken only when they are what they should be."""

from typing import Any

LONGEST = 2000  # no title, name or address of a chapter is longer


class Misshapen(ValueError):  # noqa: N818 - named like the other problems
    """A field is not what it should be; its sentence becomes the reason why an item is set aside."""


def mapping(value: object, what: str) -> dict[str, Any]:
    """Take an object."""
    if not isinstance(value, dict):
        raise Misshapen(f"{what} is not an object")
    return value


def listing(value: object, what: str) -> list[Any]:
    """Take a list."""
    if not isinstance(value, list):
        raise Misshapen(f"{what} is not a list")
    return value


def text(value: object, what: str) -> str:
    """Take a text that is not empty."""
    found = optional(value, what)
    if found is None:
        raise Misshapen(f"{what} is missing")
    return found


def optional(value: object, what: str) -> str | None:
    """Take a text, a number as its text, or nothing; an empty text is nothing."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**40 else "a number without end"
    if not isinstance(value, str):
        raise Misshapen(f"{what} is not a text")
    cleaned = value[: LONGEST + 1].replace("\0", "").encode("utf-8", "replace").decode().strip()
    if len(cleaned) > LONGEST:
        raise Misshapen(f"{what} is longer than {LONGEST} letters")
    return cleaned or None
