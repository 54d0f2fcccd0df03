"""A ring: the keys that sign upload URLs; the newest signs, all verify, so that one can be replaced in peace."""

import hmac
import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes
from uuid import uuid4

from pydantic import SecretStr

from imprint.problem import BadSettings, Unavailable

FILE = "upload-keys"
_LENGTH = 32
_KEPT = 3
_WRITTEN = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class Ring:
    """Signing keys, the newest first."""

    keys: tuple[bytes, ...] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse an empty ring, and keys short enough to be guessed."""
        if not self.keys or any(len(key) != _LENGTH for key in self.keys):
            raise _bad()

    @classmethod
    def parse(cls, text: SecretStr) -> "Ring":
        """Read keys as a setting or a file has them: 43 letters each, with spaces or commas between."""
        words = text.get_secret_value().replace(",", " ").split()
        if not all(_WRITTEN.fullmatch(word) for word in words):
            raise _bad()
        return cls(tuple(urlsafe_b64decode(f"{word}=") for word in words))

    @classmethod
    def new(cls, older: "Ring | None" = None) -> "Ring":
        """Make a new key, and keep some of the older ones for URLs that are on their way."""
        return cls((token_bytes(_LENGTH), *(older.keys[: _KEPT - 1] if older else ())))

    def written(self) -> SecretStr:
        """Write the keys so that `parse` can read them."""
        return SecretStr(" ".join(urlsafe_b64encode(key).decode().rstrip("=") for key in self.keys))

    def sign(self, message: bytes) -> bytes:
        """Sign with the newest key."""
        return hmac.digest(self.keys[0], message, "sha256")

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Say whether one of the keys has signed this; takes the same time whichever it was, or none."""
        return any([hmac.compare_digest(hmac.digest(key, message, "sha256"), signature) for key in self.keys])  # noqa: C419 - a generator would stop at the first that fits


def load(home: Path) -> Ring:
    """Read the ring of a home; make it at the first need."""
    try:
        if not (home / FILE).exists():
            _keep(home, Ring.new())
        return Ring.parse(SecretStr((home / FILE).read_text(encoding="ascii")))
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable("upload.no_keys", f"The keys that sign uploads cannot be kept in {home / FILE}.") from error


def _keep(home: Path, ring: Ring) -> None:
    temporary = home / f"{FILE}.{uuid4().hex}"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "wb") as opened:  # noqa: PTH123 - it has no path yet that others may see
            opened.write(ring.written().get_secret_value().encode())
            opened.flush()
            os.fsync(file)
        # A link, not a rename: of two processes that start at once, both go on with the ring of one.
        with suppress(FileExistsError):
            os.link(temporary, home / FILE)
    finally:
        temporary.unlink()


def _bad() -> BadSettings:
    return BadSettings("upload.bad_keys", f"A key that signs uploads is {_LENGTH} random bytes, written as 43 letters.")
