"""Upload: ask for a URL, receive the bytes, confirm them; only what was verified is called uploaded.

A client promises what it will send. Content and object become `uploaded` in one transaction, together with the
jobs that make the variants, and only after the bytes in the store were read through and found to be as promised.
An upload that did not work out is `failed` with a code, and can be asked for again under a new key.
"""

import re
import unicodedata
from collections.abc import AsyncIterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from uuid import UUID, uuid4

import structlog

from imprint.blobs.key import new_key
from imprint.blobs.signing import BadUpload, Grant, LocalUploads
from imprint.blobs.store import Missing
from imprint.blobs.tally import Broken, Promise, Stored
from imprint.images.sniff import ALLOWED, HEAD_BYTES, sniff
from imprint.problem import Busy, Problem, Unavailable
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.store.wall import Wall
from imprint.work.plan import plan
from imprint.work.stores import Stores

log = structlog.get_logger()

PAGE = 100
# How long after its URL has expired an upload may still be on its way before it is looked at.
LATE = timedelta(minutes=10)
LONGEST_NAME = 200
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]")
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
_NOBODY = UUID(int=0)


@dataclass(frozen=True)
class Wanted:
    """What a client says that it will send."""

    filename: str
    content_type: str
    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class Asked:
    """Where a client can send its bytes, and what to call them afterwards."""

    upload_url: str
    file_id: UUID
    storage_key: str
    expires_at: datetime


@dataclass(frozen=True)
class Confirmed:
    """Bytes that are here and are what was promised."""

    file_id: UUID
    status: str
    size: int
    sha256: str
    content_type: str


@dataclass(frozen=True)
class Begun:
    """An upload that may begin."""

    content_id: UUID
    expires_at: datetime
    now: datetime


@dataclass(frozen=True)
class Moment:
    """What time it is."""

    now: datetime


@dataclass(frozen=True)
class Used:
    """An upload whose nonce was just used up."""

    id: UUID
    content_id: UUID
    store: str
    key: str
    expected_size: int
    expected_sha256: str | None


@dataclass(frozen=True)
class Taken:
    """Whether a lock was to be had."""

    taken: bool


@dataclass(frozen=True)
class Promised:
    """What was promised of a content's bytes, and what is known of them."""

    content_id: UUID
    owner: str
    content_status: str
    object_id: UUID
    object_status: str
    store: str | None
    key: str | None
    expected_size: int | None
    expected_sha256: str | None
    expected_type: str | None
    size: int | None
    sha256: str | None
    content_type: str | None
    error_code: str | None


@dataclass(frozen=True)
class Row:
    """A row that was changed."""

    id: UUID


@dataclass(frozen=True)
class Expired:
    """An upload whose time is over."""

    content_id: UUID
    expires_at: datetime


CONTENT = query("upload_content", Row)
BEGIN = query("upload_begin", Begun)
AGAIN = query("upload_again", Begun)
TIME = query("upload_time", Moment)
USE = query("upload_use", Used)
UNUSE = query("upload_unuse", Nothing)
LOCK = query("upload_lock", Taken)
PROMISED = query("upload_promised", Promised)
CONTENT_BEGINS = query("upload_content_begins", Nothing)
OBJECT_BEGINS = query("upload_object_begins", Nothing)
OBJECT_STORED = query("upload_object_stored", Row)
CONTENT_STORED = query("upload_content_stored", Row)
OBJECT_FAILED = query("upload_object_failed", Row)
CONTENT_FAILED = query("upload_content_failed", Row)
EXPIRED = query("upload_expired", Expired)


async def ask(database: Database, stores: Stores, settings: Settings, wanted: Wanted, owner: str) -> Asked:
    """Promise to take a file: make its content and give the URL to which its bytes may be sent."""
    grant = _granted(settings, wanted, owner)
    async with database.transaction(owner, "an upload was asked for") as connection:
        content = await CONTENT.one(connection, label(wanted.filename), owner)
        begun = await BEGIN.one(
            connection,
            content.id,
            stores.current,
            grant.key,
            wanted.size,
            wanted.sha256,
            wanted.content_type,
            grant.nonce,
            timedelta(minutes=settings.upload_url_minutes),
        )
    return await _asked(stores, grant, begun)


async def ask_again(
    database: Database, stores: Stores, settings: Settings, file_id: UUID, wanted: Wanted, owner: str
) -> Asked:
    """Give a new URL for content whose upload did not work out; the old one counts no more."""
    grant = _granted(settings, wanted, owner)
    async with database.transaction(owner, "the upload is tried again") as connection:
        begun = await AGAIN.first(
            connection,
            file_id,
            owner,
            stores.current,
            grant.key,
            wanted.size,
            wanted.sha256,
            wanted.content_type,
            grant.nonce,
            timedelta(minutes=settings.upload_url_minutes),
        )
        if begun is None:
            raise Problem("upload.not_open", "There is no such upload, or its bytes are here already.")
        await CONTENT_BEGINS.run(connection, file_id)
    return await _asked(stores, grant, begun)


async def receive(
    database: Database,
    stores: Stores,
    uploads: LocalUploads,
    method: str,
    target: str,
    chunks: AsyncIterable[bytes],
    *,
    content_type: str | None = None,
    length: int | None = None,
) -> Stored:
    """Take the bytes that a client sends to one of our own URLs, straight into the store."""
    async with database.connection() as connection:
        now = (await TIME.one(connection)).now
    grant = uploads.grant(method, target, now)
    if database.wall is not None:  # the address was signed for one owner, and opens nobody else's wall
        database = database.behind(Wall(grant.owner, grant.owner, changes=True))
    if content_type is not None and content_type.partition(";")[0].strip().lower() != grant.content_type:
        raise BadUpload("upload.refused", f"This upload URL is for {grant.content_type} and for nothing else.")
    if length is not None and length != grant.size:
        raise BadUpload("upload.refused", f"This upload URL is for {grant.size} bytes and not for {length}.")
    return await take(database, stores, grant.key, grant.owner, chunks, nonce=grant.nonce)


async def take(
    database: Database, stores: Stores, key: str, owner: str, chunks: AsyncIterable[bytes], *, nonce: str | None = None
) -> Stored:
    """Use an upload up and store its bytes; what is not as promised fails it, what is cut short does not.

    Whoever comes by a URL brings the nonce of it; one who has just asked needs none.
    """
    async with database.transaction(owner, "bytes begin to arrive") as connection:
        used = await USE.first(connection, key, nonce)
        if used is None:
            raise BadUpload("upload.used", "This upload URL was used before; ask for a new one.")
        await CONTENT_BEGINS.run(connection, used.content_id)
        await OBJECT_BEGINS.run(connection, used.id, used.key)
    promise = Promise(used.expected_size, used.expected_sha256)
    try:
        return await stores.of(used.store).put(used.key, chunks, promise)
    except Broken as broken:
        async with database.transaction(owner, broken.sentence) as connection:
            await _fail(connection, used.content_id, used.id, used.key, broken.code)
        raise
    except BaseException:
        # Nothing was stored: the same URL may be used for another try, until it expires.
        async with database.connection() as connection:
            await UNUSE.run(connection, used.id, used.key)
        raise


async def confirm(database: Database, stores: Stores, file_id: UUID, owner: str) -> Confirmed:
    """Verify what has come against what was promised; asked again, give the same answer.

    Everything is one transaction: nobody ever sees content without its object, or either without its jobs.
    """
    try:
        async with database.transaction(owner, "the upload was confirmed") as connection:
            outcome = await _settle(connection, stores, file_id, owner)
    except Missing:
        raise Problem("upload.missing", "No bytes have arrived yet; send them to the upload URL first.") from None
    return await _answered(stores, outcome)


async def reap(database: Database, stores: Stores) -> int:
    """Bring every upload to an end whose time is over: what came whole is confirmed, what did not come has failed."""
    ended, after, last = 0, _LONG_AGO, _NOBODY
    while True:
        async with database.connection() as connection:
            page = await EXPIRED.all(connection, LATE, after, last, PAGE)
        for expired in page:
            after, last = expired.expires_at, expired.content_id
            ended += await _reap(database, stores, expired.content_id)
        if len(page) < PAGE:
            return ended


async def _reap(database: Database, stores: Stores, file_id: UUID) -> bool:
    try:
        async with database.transaction("reaper", "the time for the upload is over") as connection:
            try:
                outcome = await _settle(connection, stores, file_id, None)
            except Missing:
                promised = await PROMISED.one(connection, file_id)
                await _fail(connection, file_id, promised.object_id, promised.key or "", "upload.expired")
                return True
        await _answered(stores, outcome)
    except (Unavailable, Busy) as problem:
        log.warning("an unfinished upload cannot be looked at now", content=str(file_id), why=problem.sentence)
        return False
    except Problem as problem:
        log.info("an unfinished upload has failed", content=str(file_id), code=problem.code)
    return True


@dataclass(frozen=True)
class _Refused:
    """Bytes that are not what was promised; the row says so already, the bytes are still to go."""

    problem: Problem
    store: str
    key: str


async def _settle(connection: Link, stores: Stores, file_id: UUID, owner: str | None) -> "Confirmed | _Refused":
    """Verify and record; raise Missing when there is nothing to verify."""
    if not (await LOCK.one(connection, file_id)).taken:
        raise Busy("upload.busy", "This upload is being confirmed already.")
    promised = await PROMISED.first(connection, file_id)
    if promised is None or (owner is not None and promised.owner != owner):
        raise Problem("content.missing", "There is no such content.")
    if promised.size is not None and promised.sha256 is not None:
        known = promised.content_type or ""
        return Confirmed(file_id, promised.content_status, promised.size, promised.sha256, known)
    if promised.store is None or promised.key is None:
        raise Missing
    blobs = stores.of(promised.store)
    try:
        stored = await blobs.accept(promised.key, Promise(promised.expected_size, promised.expected_sha256))
        head = b"".join([chunk async for chunk in blobs.read(promised.key, 0, HEAD_BYTES)])
    except Broken as broken:
        return await _refuse(connection, promised, broken)
    kind = sniff(head)
    if kind != promised.expected_type:
        problem = Broken(
            "upload.wrong_type",
            f"{promised.expected_type} was promised, and the bytes are {kind or 'of no known type'}.",
        )
        return await _refuse(connection, promised, problem)
    if promised.object_status == "failed":  # given up before its bytes came after all
        await CONTENT_BEGINS.run(connection, file_id)
        await OBJECT_BEGINS.run(connection, promised.object_id, promised.key)
    if await OBJECT_STORED.first(
        connection, promised.object_id, promised.key, stored.size, stored.sha256, kind
    ) is None or not await CONTENT_STORED.first(connection, file_id):
        raise Problem("upload.replaced", "A newer upload has taken the place of this one, or it was deleted.")
    await plan(connection, file_id)
    return Confirmed(file_id, "uploaded", stored.size, stored.sha256, kind or "")


async def _refuse(connection: Link, promised: Promised, problem: Problem) -> _Refused:
    await _fail(connection, promised.content_id, promised.object_id, promised.key or "", problem.code)
    return _Refused(problem, promised.store or "", promised.key or "")


async def _fail(connection: Link, content: UUID, row: UUID, key: str, code: str) -> None:
    """Say that an upload failed; content goes by way of `uploading`, since nothing can fail that has not begun."""
    if await OBJECT_FAILED.first(connection, row, key, code):
        await CONTENT_BEGINS.run(connection, content)
        await CONTENT_FAILED.first(connection, content, code)


async def _answered(stores: Stores, outcome: "Confirmed | _Refused") -> Confirmed:
    if isinstance(outcome, Confirmed):
        return outcome
    await stores.of(outcome.store).delete(outcome.key)
    raise outcome.problem


def label(filename: str) -> str:
    """Keep of a client's filename what a person reads; it never becomes a path or a key."""
    written = filename.encode("utf-8", "surrogateescape").decode(
        "utf-8", "replace"
    )  # a disk takes names that are no text
    name = _UNSEEN.sub("", unicodedata.normalize("NFC", re.split(r"[/\\]", written)[-1])).strip()
    if len(name) > LONGEST_NAME and 0 < len(suffix := PurePath(name).suffix) < LONGEST_NAME:
        return name[: LONGEST_NAME - len(suffix)] + suffix
    return name[:LONGEST_NAME] or "unnamed"


def _granted(settings: Settings, wanted: Wanted, owner: str) -> Grant:
    if wanted.content_type not in ALLOWED:
        raise BadUpload("upload.type_not_allowed", "Files of this type are not taken.")
    if wanted.size < 1:
        raise BadUpload("upload.empty", "A file without bytes is not taken.")
    if wanted.size > settings.upload_largest_mb * 1_000_000:
        raise BadUpload("upload.too_large", f"A file may have {settings.upload_largest_mb} megabytes at most.")
    Promise(wanted.size, wanted.sha256)  # raises when no bytes could keep it
    # The database decides when it expires; until then any time will do.
    return Grant(new_key(), wanted.size, wanted.content_type, owner, datetime(9999, 1, 1, tzinfo=UTC), uuid4().hex)


async def _asked(stores: Stores, grant: Grant, begun: Begun) -> Asked:
    final = Grant(grant.key, grant.size, grant.content_type, grant.owner, begun.expires_at, grant.nonce)
    return Asked(await stores.uploads.url(final, begun.now), begun.content_id, grant.key, begun.expires_at)
