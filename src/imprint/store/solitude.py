"""Solitude: one `imprint up` per home.

The kernel's lock on the folder itself is the truth, so that there is no lock file to be stolen, forgotten or
deleted; the note in it only says whom to look for.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from imprint.problem import Busy, Unavailable
from imprint.store.home import explained

NOTE = "up.json"


@contextmanager
def alone_in(home: Path, what: str) -> Iterator[None]:
    """Hold the home for oneself, or raise Busy naming the process that has it."""
    with explained(home):
        # As root the database's own user must be able to pass.
        home.mkdir(mode=0o700 if os.geteuid() else 0o711, parents=True, exist_ok=True)
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                "home.in_use",
                f"Imprint is already running in {home}{_who(home)}; "
                "stop it first, or set IMPRINT_HOME to another folder.",
            ) from None
        _refuse_strangers(home, os.fstat(folder))
        with explained(home):
            fresh = home / f".{NOTE}.{os.getpid()}"  # never through a link that somebody has put there
            fresh.unlink(missing_ok=True)
            fresh.write_text(json.dumps({"pid": os.getpid(), "what": what}))
            fresh.replace(home / NOTE)
        try:
            yield
        finally:
            with suppress(OSError):
                (home / NOTE).unlink()
    finally:
        os.close(folder)


def _refuse_strangers(home: Path, found: os.stat_result) -> None:
    """Raise if somebody else could change what is in the home, the key that opens it included."""
    if found.st_uid not in {0, os.geteuid()} or found.st_mode & 0o022:
        raise Unavailable(
            "home.open", f"Others can write to {home}; it must belong to you and be writable by you alone (chmod go-w)."
        )


def _who(home: Path) -> str:
    try:
        note = json.loads((home / NOTE).read_text())
        return f" ({note['what']}, process {note['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
