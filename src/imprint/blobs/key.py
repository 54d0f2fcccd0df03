"""A key: the name of an object in a store, made by the server and never taken from a client's filename."""

import re
from uuid import uuid4

from imprint.problem import Problem

# The first two bytes again as folders: no folder of a local store grows past some thousand entries.
_KEY = re.compile(r"([0-9a-f]{2})/([0-9a-f]{2})/\1\2[0-9a-f]{28}")
_PREFIX = re.compile(r"(?:[0-9a-f]{2}(?:/[0-9a-f]{2})?)?")


class BadKey(Problem):
    """What was given is not a key that this program has made."""

    def __init__(self) -> None:
        # Without the key: it may be hostile, or long, and ends up in a log.
        super().__init__("blob.bad_key", "This is not the key of a stored object.")


def new_key() -> str:
    """Make a key that nobody else has or can guess."""
    name = uuid4().hex
    return f"{name[:2]}/{name[2:4]}/{name}"


def is_key(text: str) -> bool:
    """Say whether this is a key; the one form there is leaves no room for dots, slashes or tricks with letters."""
    return _KEY.fullmatch(text) is not None


def checked(key: str) -> str:
    """Give the key back, or refuse it."""
    if not is_key(key):
        raise BadKey
    return key


def checked_prefix(prefix: str) -> str:
    """Give back what keys can be listed by (nothing, or one or two folders), or refuse it."""
    if not _PREFIX.fullmatch(prefix):
        raise BadKey
    return prefix
