"""Resolving: a person says whether an unknown publication is out, because nobody else can tell.

Guarded like everything else: only an unknown one can be resolved, by its owner, and of two people who do so at once one
wins. That it is out can be said at any time. That it is not out is taken only when nothing could show the contrary a
moment later: its sender is past its deadline, and nobody is looking for it just now.
"""

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import UUID

from imprint.decisions.publishing import Accepted, SaidNotOut, SendAgain, Succeed, decide
from imprint.lifecycles.publication import PublicationStatus
from imprint.problem import Busy, Problem
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work.outcome import LONGEST_URL
from imprint.work.post import Row
from imprint.work.prefix import Candidate, bounds, picked
from imprint.work.reconcile import SEND_AGAIN
from imprint.work.record import HOLD, SUCCEED, Held, note
from imprint.work.schedule import TURN

NOBODY = -1  # the fence of no attempt: whoever still works on it finds that its word no longer counts
SAID_NOT_OUT = "said_not_out"


class Said(StrEnum):
    """What became of it."""

    OUT = "out"
    SENT_AGAIN = "sent again"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Standing:
    """What could still show the contrary of what a person says."""

    looked_for: bool
    leaving: bool
    url: str | None


FOUND = query("resolve_found", Candidate)
OF = query("resolve_of", Row)
STANDING = query("resolve_standing", Standing)
GIVE_UP = query("reconcile_give_up", Row)


async def find(connection: Link, owner: str, text: str) -> UUID:
    """Find a publication by its id or the first letters of it, or by those of its post when one of that is unknown."""
    return picked(text, await FOUND.all(connection, *bounds(text), owner), _missing())


async def published(database: Database, owner: str, publication: UUID, url: str) -> Said:
    """Say that it is out, and where."""
    address = _address(url)
    async with database.transaction(owner, f"said to be out: {address}") as connection:
        held, _ = await _held(connection, owner, publication)
        if not isinstance(decide(held.known(), Accepted()), Succeed):
            raise _not_unknown(held.status)
        # The address is all there is: what the platform calls it, a person cannot see.
        line = f"A person ({owner}) says that it is out: {address}"[:2000]
        await SUCCEED.one(connection, publication, address, address, NOBODY, "said_out", line)
        return Said.OUT


async def not_published(database: Database, owner: str, publication: UUID, *, drop: bool = False) -> Said:
    """Say that it is not out: it is sent again now, or with `drop` not at all."""
    async with database.transaction(owner, "said not to be out" + (", and not wanted" if drop else "")) as connection:
        held, stands = await _held(connection, owner, publication)
        if not isinstance(decide(held.known(), SaidNotOut()), SendAgain):
            raise _not_unknown(held.status)
        _refuse_unsettled(stands)
        if drop:
            await GIVE_UP.one(connection, publication, held.fence, SAID_NOT_OUT)
            await note(connection, publication, "dropped", f"A person ({owner}) says that it is not out, and drops it.")
            return Said.DROPPED
        await SEND_AGAIN.one(connection, publication, held.fence, False)  # noqa: FBT003 - a value of a statement
        line = f"A person ({owner}) says that it is not out; it is sent again now."
        await note(connection, publication, SAID_NOT_OUT, line)
        return Said.SENT_AGAIN


async def _held(connection: Link, owner: str, publication: UUID) -> tuple[Held, Standing]:
    """Keep an unknown publication as it is until the transaction ends; people take turns on its post."""
    post = await OF.first(connection, publication, owner)
    if post is None:
        raise _missing()
    await TURN.run(connection, post.id)
    held = await HOLD.one(connection, publication)
    stands = await STANDING.one(connection, publication)
    if held.status != PublicationStatus.UNKNOWN:
        raise _not_unknown(held.status, stands.url)
    return held, stands


def _refuse_unsettled(stands: Standing) -> None:
    if stands.leaving:
        raise Busy("publication.leaving", "Its request may still be on the way; look again in a minute, then say so.")
    if stands.looked_for:
        raise Busy("publication.looked_for", "Somebody is looking for it at this moment; wait for what they find.")


def _address(url: str) -> str:
    """Take an address that a browser could open, and nothing else."""
    text = url.strip()
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or "@" in parts.netloc or not text.isprintable() or " " in text or len(text) > LONGEST_URL:
        raise Problem("resolve.bad_url", "Give the address at which it can be seen, such as https://example.com/art/1.")
    return text


def _missing() -> Problem:
    return Problem("publication.missing", "There is no such publication.")


def _not_unknown(status: str, url: str | None = None) -> Problem:
    where = f": {url}" if url else ""
    known = {PublicationStatus.SUCCESS: f"It is known to be out{where}", PublicationStatus.FAILED: "It has failed"}
    stands = known.get(PublicationStatus(status), f"It is {status}")
    return Problem("publication.not_unknown", f"{stands}; only what is unknown is decided by a person.")
