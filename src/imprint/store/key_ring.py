"""The key ring: the keys that seal what accounts sign in with, in a file beside the database and never in it.

The newest key seals, all of them open. A key is never taken off the ring while a row is sealed with it, so that a
rotation may be cut off at any point.
"""

import os
import re
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes
from uuid import uuid4

from imprint.problem import Unavailable
from imprint.store.home import explained

FILE = "credential-keys"
_LENGTH = 32
_WRITTEN = re.compile(r"[A-Za-z0-9_-]{43}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Key:
    """One key; its id is a hash, so that it says nothing about the key and is the same on every machine."""

    id: str
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> "Key":
        """Give the key of these bytes."""
        return cls(sha256(b"imprint key " + secret).hexdigest()[:16], secret)


@dataclass(frozen=True)
class KeyRing:
    """Keys, the newest first."""

    keys: tuple[Key, ...]

    @property
    def newest(self) -> Key:
        """Give the key that seals."""
        return self.keys[0]

    def key(self, key_id: str) -> Key | None:
        """Give the key of an id, None when it is not on the ring."""
        return next((key for key in self.keys if key.id == key_id), None)

    def written(self) -> bytes:
        """Write the ring as its file has it: a key to a line."""
        return b"".join(urlsafe_b64encode(key.secret).rstrip(b"=") + b"\n" for key in self.keys)


def load(file: Path) -> KeyRing:
    """Read the ring; make it at the first need."""
    with explained(file.parent):
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(file, KeyRing((_new(),)), replace=False)
        if stat.S_IMODE(file.stat().st_mode) & _OTHERS:
            raise Unavailable("keys.open_to_others", f"{file} can be read by others; run: chmod 600 {file}")
        text = file.read_text(encoding="ascii", errors="replace")
    return _read(file, text)


def grow(file: Path) -> KeyRing:
    """Put a new key in front; the others stay."""
    ring = KeyRing((_new(), *load(file).keys))
    with explained(file.parent):
        _write(file, ring, replace=True)
    return ring


def shrink(file: Path, needed: Collection[str]) -> KeyRing:
    """Take every key off the ring that is neither the newest nor needed."""
    old = load(file)
    ring = KeyRing(tuple(key for key in old.keys if key is old.newest or key.id in needed))
    with explained(file.parent):
        _write(file, ring, replace=True)
    return ring


def _new() -> Key:
    return Key.of(token_bytes(_LENGTH))


def _read(file: Path, text: str) -> KeyRing:
    words = text.split()
    # Not a word of what was read: it is, or was, a key.
    if not words or not all(_WRITTEN.fullmatch(word) for word in words):
        raise Unavailable("keys.damaged", f"{file} does not hold keys, one of 43 letters to a line; put it back.")
    return KeyRing(tuple(Key.of(urlsafe_b64decode(f"{word}=")) for word in words))


def _write(file: Path, ring: KeyRing, *, replace: bool) -> None:
    """Write aside and make it last, then let it appear at once: there is the old ring or the new one, never a part."""
    temporary = file.with_name(f".{file.name}.{uuid4().hex}")
    opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(opened, "wb") as written:  # noqa: PTH123 - it was opened above, for its owner only
            written.write(ring.written())
            written.flush()
            os.fsync(opened)
        if replace:
            os.replace(temporary, file)  # noqa: PTH105 - the same word as for the link below
        else:
            with suppress(FileExistsError):  # of two that start at once, both go on with the ring of one
                os.link(temporary, file)  # noqa: PTH201, RUF100 - a link never takes the place of another's
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        temporary.unlink(missing_ok=True)
