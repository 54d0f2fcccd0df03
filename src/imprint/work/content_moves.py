"""The moves of content: what a person may do with it, one or many; every gate is here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import asyncpg

from imprint.engine.queue import Job, enqueue
from imprint.lifecycles.content import CONTENT, ContentStatus
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.content import PAGE, Content, NotAllowed, Row, living, show
from imprint.work.derive import CONTENT_BEGINS
from imprint.work.plan import ENTRYPOINT, plan

DERIVABLE = (ContentStatus.UPLOADED, ContentStatus.PROCESSED)
_FIRST = UUID(int=0)


@dataclass(frozen=True)
class Failed:
    """A content that failed."""

    id: UUID
    name: str
    error_code: str
    has_bytes: bool


@dataclass(frozen=True)
class Outcome:
    """What became of one row of many."""

    id: UUID
    done: bool
    code: str = ""
    sentence: str = ""


DELETE = query("content_delete", Row)
RESTORE = query("content_restore", Row)
ARCHIVE = query("content_archive", Row)
RETRY = query("content_retry", Row)
RETRY_OBJECT = query("content_retry_object", Nothing)
RETRY_DERIVATIONS = query("derive_retry_derivations", Nothing)
REMAKE = query("derive_remake", Row)
RETIRE = query("derive_retire", Nothing)
FAILED = query("content_failed", Failed)


async def delete(database: Database, settings: Settings, content: UUID, actor: str, *, force: bool = False) -> Content:
    """Delete a content softly; its bytes go after a while. While it is processing this needs force."""
    async with database.transaction(actor, "deleted") as connection:
        await living(connection, content)
        if await DELETE.first(connection, content, force, timedelta(days=settings.keep_deleted_days)) is None:
            raise NotAllowed("content.processing", "Its variants are being made; wait a moment, or force it.")
        return (await show(connection, content)).content


async def restore(database: Database, content: UUID, actor: str) -> Content:
    """Take a deletion back while the bytes are there; variants that were not made yet are put in again."""
    async with database.transaction(actor, "restored") as connection:
        if await RESTORE.first(connection, content) is None:
            raise NotAllowed("content.gone", "This content is not deleted, or its bytes are gone already.")
        await enqueue(connection, [Job(ENTRYPOINT, str(content))])
        return (await show(connection, content)).content


async def archive(database: Database, content: UUID, actor: str) -> None:
    """Keep a content that is no longer worked with."""
    async with database.transaction(actor, "archived") as connection:
        found = await living(connection, content)
        if await ARCHIVE.first(connection, content) is None:
            raise _cannot(found, ContentStatus.ARCHIVED)


async def retry(database: Database, content: UUID, actor: str) -> None:
    """Let a content that failed over its variants be tried again."""
    async with database.transaction(actor, "tried again") as connection:
        found = await living(connection, content)
        if found.status != ContentStatus.FAILED:
            raise _cannot(found, ContentStatus.PROCESSING)
        if await RETRY.first(connection, content) is None:
            raise NotAllowed("content.no_bytes", "Its bytes never came; upload them again.")
        await RETRY_OBJECT.run(connection, content)
        await RETRY_DERIVATIONS.run(connection, content)
        await plan(connection, content)


async def derive_again(
    database: Database, settings: Settings, content: UUID, actor: str, only: Sequence[UUID] | None = None
) -> None:
    """Let all variants of a content, or only some, be made again; from uploaded and processed alone."""
    async with database.transaction(actor, "its variants are made again") as connection:
        found = await living(connection, content)
        if found.status not in DERIVABLE:
            raise _cannot(found, ContentStatus.PROCESSING)
        await remake(connection, content, only, timedelta(days=settings.keep_deleted_days))


async def remake(connection: Link, content: UUID, only: Sequence[UUID] | None, grace: timedelta) -> bool:
    """Put variants back to be made, in the caller's transaction; False when the content is being processed already."""
    if await CONTENT_BEGINS.first(connection, content, list(DERIVABLE)) is None:
        return False
    chosen = None if only is None else list(only)
    await RETIRE.run(connection, content, chosen, grace)
    await REMAKE.all(connection, content, chosen)
    await plan(connection, content)
    return True


async def retry_failed(database: Database, actor: str) -> list[Outcome]:
    """Try every content again that failed, and say of each whether that was possible."""
    outcomes: list[Outcome] = []
    after = _FIRST
    while True:
        async with database.connection() as connection:
            page = await FAILED.all(connection, after, PAGE)
        for failed in page:
            after = failed.id
            outcomes.append(await _one(database, failed.id, ContentStatus.PROCESSING, actor))
        if len(page) < PAGE:
            return outcomes


async def update_many(
    database: Database, settings: Settings, contents: Sequence[UUID], target: str, actor: str
) -> list[Outcome]:
    """Move many contents, each checked by itself, and say of each what became of it.

    A person can ask for `archived` and for `processing`; the other states follow from bytes alone.
    """
    return [await _one(database, content, target, actor, settings) for content in contents]


async def _one(database: Database, content: UUID, target: str, actor: str, settings: Settings | None = None) -> Outcome:
    try:
        await _move(database, content, target, actor, settings)
    except Problem as problem:
        return Outcome(content, done=False, code=problem.code, sentence=problem.sentence)
    except asyncpg.CheckViolationError as refusal:
        return Outcome(content, done=False, code="content.refused", sentence=f"{refusal.message}.")
    return Outcome(content, done=True)


async def _move(database: Database, content: UUID, target: str, actor: str, settings: Settings | None) -> None:
    if target == ContentStatus.ARCHIVED:
        return await archive(database, content, actor)
    if target != ContentStatus.PROCESSING:
        raise NotAllowed("content.follows", f"Content becomes {target} by what happens to its bytes, not by request.")
    async with database.connection() as connection:
        found = await living(connection, content)
    if settings is None or found.status == ContentStatus.FAILED:
        return await retry(database, content, actor)
    return await derive_again(database, settings, content, actor)


def _cannot(found: Content, target: str) -> NotAllowed:
    ways = ", ".join(str(arrow.target) for arrow in CONTENT.open_to(found.status)) or "nowhere"
    return NotAllowed(
        "content.no_such_move", f"Content that is {found.status} cannot become {target}; from here it can go to {ways}."
    )
