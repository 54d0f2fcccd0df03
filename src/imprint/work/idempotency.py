"""Idempotency: a request that carries a key of its own is done once; asked again, it gets the answer it got.

The key is written down before anything is done and the answer after it. In between, whatever the request commits is
stamped in the same transaction (store/stamp.py), and a lease is renewed. Should a server die, the lease is soon over:
without a stamp nothing was done, and the request may be made again; with one it was done, and is not done again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from uuid import UUID

from imprint.problem import Problem
from imprint.store.db import TROUBLE, Database
from imprint.store.query import Nothing, query
from imprint.store.stamp import Stamp, stamping

LASTS = timedelta(days=1)
# How long after its last sign of life a request's server is thought dead. Should it live, it commits nothing any more.
LEASE = timedelta(seconds=5)
RENEW_SECONDS = 1.0
LONGEST_KEY = 200
_ERRORS = 400
_SERVER_ERRORS = 500


class Running(Problem):
    """The request is being done, or was until a server died; `seconds` until that is certain."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            "idempotency.running", "The request with this Idempotency-Key is being done; ask again in a moment."
        )
        self.seconds = seconds


@dataclass(frozen=True)
class Begun:
    """The right to do a request and to keep its answer."""

    token: UUID


@dataclass(frozen=True)
class Known:
    """A request that was made before, its answer once there is one, and until then whether it has done anything."""

    request_sha256: str
    status: int | None
    media_type: str | None
    body: bytes | None
    touched: bool
    seconds: int  # that it may still be running


@dataclass(frozen=True)
class Answered:
    """What was answered; `again` when it is the answer to an earlier request."""

    status: int
    media_type: str
    body: bytes
    again: bool = False


BEGIN = query("idempotency_begin", Begun)
KNOWN = query("idempotency_known", Known)
RENEW = query("idempotency_renew", Begun)
END = query("idempotency_end", Begun)
DROP = query("idempotency_drop", Nothing)
LEAVE = query("idempotency_leave", Nothing)


async def once(
    database: Database,
    person: str,
    key: str,
    request: bytes,
    do: Callable[[], Awaitable[Answered]],
    keep: Callable[[Answered], Answered] = lambda answered: answered,
) -> Answered:
    """Do a request unless it was done before; `keep` says what of its answer may be kept."""
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise Problem("idempotency.bad_key", f"An Idempotency-Key has 1 to {LONGEST_KEY} letters that can be seen.")
    digest = sha256(request).hexdigest()
    async with database.connection() as connection:
        begun = await BEGIN.first(connection, person, key, digest, LASTS, LEASE)
        if begun is None:
            return _answered(await KNOWN.first(connection, person, key), digest)
    stamp = Stamp(person, key, begun.token)
    try:
        async with _renewing(database, stamp):
            with stamping(stamp):
                answered = await do()
    except BaseException:
        await _settle(database, stamp, None, failed=True)
        raise
    failed = answered.status >= _ERRORS
    await _settle(database, stamp, answered if failed else keep(answered), failed=failed)
    return answered


async def _settle(database: Database, stamp: Stamp, kept: Answered | None, *, failed: bool) -> None:
    """Keep an answer; what failed and came to nothing is forgotten instead, and what has no answer is only left."""
    mine = (stamp.person, stamp.key, stamp.token)
    async with database.connection() as connection:
        if failed and await DROP.run(connection, *mine):
            return
        if kept is None or kept.status >= _SERVER_ERRORS:
            await LEAVE.run(connection, *mine)
        else:
            await END.first(connection, *mine, kept.status, kept.media_type, kept.body)


@asynccontextmanager
async def _renewing(database: Database, stamp: Stamp) -> AsyncIterator[None]:
    """Give signs of life for a request that takes longer than most."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(*TROUBLE):  # the next one may succeed
                async with database.connection() as connection:
                    if await RENEW.first(connection, stamp.person, stamp.key, stamp.token, LEASE) is None:
                        return

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


def _answered(known: Known | None, digest: str) -> Answered:
    if known is not None and known.request_sha256 != digest:
        raise Problem("idempotency.other_request", "This Idempotency-Key was used for another request.")
    if known is None or (known.status is None and (known.seconds or not known.touched)):
        raise Running(max(1, known.seconds if known else 0))
    if known.status is None:
        raise Problem(
            "idempotency.answer_lost",
            "This was done, at least in part, but its answer was lost, and it is not done again; look at the thing "
            "itself, or in the list where a new one would be, before you ask again with another Idempotency-Key.",
        )
    return Answered(known.status, known.media_type or "", known.body or b"", again=True)
