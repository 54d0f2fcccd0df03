"""The operator's key: what one signs in with as long as Imprint knows no people."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from imprint.problem import Unavailable
from imprint.store.home import explained

FILE = "operator.key"
LEAST_LENGTH = 16


def operator_key(home: Path) -> str:
    """Read the key, made at the first start and readable by its owner only."""
    file = home / FILE
    with explained(home):
        if not file.exists() or file.stat().st_size < LEAST_LENGTH:  # an empty key would let everybody in
            temporary = home / f".{FILE}.{secrets.token_hex(4)}"
            temporary.touch(mode=0o600)
            with temporary.open("w") as new:
                new.write(secrets.token_urlsafe(24))
                new.flush()
                os.fsync(new.fileno())
            if file.exists():
                temporary.replace(file)
            else:
                with suppress(FileExistsError):  # a link never takes the place of another process's key
                    file.hardlink_to(temporary)
                temporary.unlink()
        found = file.stat()
        if found.st_uid not in {0, os.geteuid()} or found.st_mode & 0o077:
            raise Unavailable("key.open", f"Others can read or change {file}; remove it, and a new key is made.")
        try:
            return file.read_text().strip()
        except UnicodeDecodeError:
            raise Unavailable("key.damaged", f"{file} holds no key; remove it, and a new one is made.") from None
