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

from imprint.problem import Busy
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
        with explained(home):
            (home / NOTE).write_text(json.dumps({"pid": os.getpid(), "what": what}))
        try:
            yield
        finally:
            with suppress(OSError):
                (home / NOTE).unlink()
    finally:
        os.close(folder)


def _who(home: Path) -> str:
    try:
        note = json.loads((home / NOTE).read_text())
        return f" ({note['what']}, process {note['pid']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
