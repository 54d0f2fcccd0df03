"""A tally: size and SHA-256 of bytes that pass by, held against what was promised of them."""

import re
from dataclasses import dataclass
from hashlib import sha256

from imprint.problem import Problem

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Broken(Problem):
    """The bytes are not what was promised."""


@dataclass(frozen=True)
class Promise:
    """What is known of bytes before they come; None where nothing is."""

    size: int | None = None
    sha256: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no bytes could keep, so that it does not look like their fault later."""
        if self.size is not None and self.size < 0:
            raise Problem("blob.bad_promise", "A size cannot be less than nothing.")
        if self.sha256 is not None and not _SHA256.fullmatch(self.sha256):
            raise Problem("blob.bad_promise", "A SHA-256 is written as 64 digits from 0 to f, in small letters.")

    def check_size(self, size: int) -> None:
        """Refuse a size that was not promised."""
        if self.size is not None and size != self.size:
            raise Broken("blob.wrong_size", f"{self.size} bytes were promised and {size} came.")


NOTHING_PROMISED = Promise()


@dataclass(frozen=True)
class Stored:
    """Bytes that are safely in a store."""

    key: str
    size: int
    sha256: str


class Tally:
    """Counts and hashes, and speaks up as soon as a promise is broken."""

    def __init__(self, promise: Promise = NOTHING_PROMISED) -> None:
        self._promise = promise
        self._hash = sha256()
        self.size = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes; refuse them at once when they are too many, so that nobody can fill the disk."""
        self.size += len(data)
        if self._promise.size is not None and self.size > self._promise.size:
            raise Broken("blob.wrong_size", f"More than the promised {self._promise.size} bytes came.")
        self._hash.update(data)

    def stored(self, key: str) -> Stored:
        """Say what came, now that it is all; refuse it when it is not what was promised."""
        self._promise.check_size(self.size)
        found = self._hash.hexdigest()
        if self._promise.sha256 is not None and found != self._promise.sha256:
            raise Broken("blob.wrong_hash", "The bytes do not have the SHA-256 that was promised.")
        return Stored(key, self.size, found)
