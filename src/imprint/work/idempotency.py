"""Idempotency: a request that carries a key of its own is done once; asked again, it gets the answer it got.

The key is written down before anything is done and the answer after it. Should a server die in between, the request
may be made again after a while; what it did until then is found by the rules of the thing itself.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from uuid import UUID

from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Nothing, query

LASTS = timedelta(days=1)
# Longer than any request takes: after this its server is thought dead.
ABANDONED = timedelta(minutes=5)
LONGEST_KEY = 200
_SERVER_ERRORS = 500


@dataclass(frozen=True)
class Begun:
    """The right to do a request and to keep its answer."""

    token: UUID


@dataclass(frozen=True)
class Known:
    """A request that was made before, and its answer once there is one."""

    request_sha256: str
    status: int | None
    media_type: str | None
    body: bytes | None


@dataclass(frozen=True)
class Answered:
    """What was answered; `again` when it is the answer to an earlier request."""

    status: int
    media_type: str
    body: bytes
    again: bool = False


BEGIN = query("idempotency_begin", Begun)
KNOWN = query("idempotency_known", Known)
END = query("idempotency_end", Begun)
DROP = query("idempotency_drop", Nothing)


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
        begun = await BEGIN.first(connection, person, key, digest, LASTS, ABANDONED)
        if begun is None:
            return _answered(await KNOWN.first(connection, person, key), digest)
    try:
        answered = await do()
    except BaseException:
        await _drop(database, person, key, begun.token)
        raise
    if answered.status >= _SERVER_ERRORS:
        await _drop(database, person, key, begun.token)
        return answered
    kept = keep(answered)
    async with database.connection() as connection:
        await END.first(connection, person, key, begun.token, kept.status, kept.media_type, kept.body)
    return answered


async def _drop(database: Database, person: str, key: str, token: UUID) -> None:
    async with database.connection() as connection:
        await DROP.run(connection, person, key, token)


def _answered(known: Known | None, digest: str) -> Answered:
    if known is not None and known.request_sha256 != digest:
        raise Problem("idempotency.other_request", "This Idempotency-Key was used for another request.")
    if known is None or known.status is None:
        raise Problem(
            "idempotency.running", "The request with this Idempotency-Key is being done; ask again in a moment."
        )
    return Answered(known.status, known.media_type or "", known.body or b"", again=True)
