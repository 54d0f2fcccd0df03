"""Stamps: whatever a request commits that carries a key of its own is marked so, in the same transaction.

Afterwards the database itself knows whether a request whose server died has changed anything. And whoever was thought
dead and was not commits nothing any more: its request has been taken over, and there is no row for its stamp.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

from imprint.problem import Problem
from imprint.store.query import Link, query


@dataclass
class Stamp:
    """The stamp of one request; once something with it is committed, it need not be set again."""

    person: str
    key: str
    token: UUID
    committed: bool = False
    over: bool = False  # what goes on after the answer belongs to nobody's request


@dataclass(frozen=True)
class Marked:
    """Whether a transaction carries the stamp, and whether it has changed anything at all."""

    marked: bool
    changed: bool


MARK = query("idempotency_mark", Marked)
_current: ContextVar[Stamp | None] = ContextVar("stamp", default=None)


@contextmanager
def stamping(stamp: Stamp) -> Iterator[None]:
    """Stamp everything that is committed in here."""
    before = _current.set(stamp)
    try:
        yield
    finally:
        stamp.over = True
        _current.reset(before)


def current() -> Stamp | None:
    """Give the stamp that a transaction which begins now has to carry."""
    stamp = _current.get()
    return None if stamp is None or stamp.over or stamp.committed else stamp


async def mark(connection: Link, stamp: Stamp) -> bool:
    """Mark, as the last thing before a commit: nobody waits for this row longer than that takes.

    What has changed nothing needs no stamp, and False is given.
    """
    done = await MARK.one(connection, stamp.person, stamp.key, stamp.token)
    if done.changed and not done.marked:
        raise Problem(
            "idempotency.taken_over", "This took so long that it was asked for again, and is done there; ask again."
        )
    return done.marked
