"""Derive: the job that makes a content's variants, once, whatever is killed meanwhile.

One job is about one content, not about one variant: the original is read and hashed once and decoded once for all of
them. Each variant is guarded by its own row: a lease that ends by itself and a fence under which the result is
recorded. Bytes go to the store first and the row follows, so that a variant that is recorded always exists; bytes
whose row never came are collected as orphans.
"""

import asyncio
import errno
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import structlog

from imprint.blobs.key import new_key
from imprint.blobs.store import Missing
from imprint.blobs.tally import Broken, Promise
from imprint.engine.queue import Job, enqueue
from imprint.images.bounds import Bounds
from imprint.images.facts import Facts
from imprint.images.made import Made
from imprint.images.maker import Maker
from imprint.images.recipes import Recipe
from imprint.images.refusal import BadImage, MakerFailed
from imprint.problem import Problem, Unavailable
from imprint.settings import Settings
from imprint.store.db import GONE, Database
from imprint.store.query import Link, Nothing, query
from imprint.work.plan import ENTRYPOINT
from imprint.work.stores import Place, Stores, read_file

log = structlog.get_logger()

ATTEMPTS = 7
# Shorter than the queue takes to hand a dead worker's job to another one, who then finds the lease over.
LEASE = timedelta(seconds=10)
# A child that died over an image gets one more chance; a third hardly ever goes better.
MAKER_FAILURES = 2
# While a store cannot be reached nothing is wrong with the content; after this long a person should know.
GIVE_UP = timedelta(hours=24)
LOST_AFTER = timedelta(minutes=2)
LOST_PAGE = 1000
ACTOR = "worker"
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO})


@dataclass(frozen=True)
class Source:
    """An original, and where its content stands."""

    content_id: UUID
    status: str
    object_id: UUID
    object_status: str
    store: str
    key: str
    size: int
    sha256: str
    content_type: str
    width: int | None
    height: int | None
    frames: int | None
    has_alpha: bool | None
    orientation: int | None

    @property
    def place(self) -> Place:
        """Say where its bytes are and what they must be."""
        return Place(self.store, self.key, self.size, self.sha256)

    @property
    def facts(self) -> Facts | None:
        """Say what it is, if a decoder has looked at it."""
        if self.width is None or self.height is None:
            return None
        return Facts(
            self.content_type,
            self.width,
            self.height,
            self.frames or 1,
            bool(self.has_alpha),
            self.orientation or 1,
            self.size,
        )


@dataclass(frozen=True)
class Claimed:
    """A variant that is ours to make, for as long as the lease is kept."""

    id: UUID
    variant: str
    recipe_version: int
    recipe: str
    fence: int
    crashes: int
    failures: int
    since: timedelta


@dataclass(frozen=True)
class Row:
    """A row that was changed."""

    id: UUID


@dataclass(frozen=True)
class Tally:
    """How the variants of a content stand."""

    open: int
    failed: int
    processed: int
    error_code: str | None


@dataclass(frozen=True)
class Lost:
    """A content that has been forgotten."""

    content_id: UUID


PLAN_ONE = query("derive_plan_one", Nothing)
SOURCE = query("derive_source", Source)
CONTENT_BEGINS = query("derive_content_begins", Row)
OBJECT_BEGINS = query("derive_object_begins", Row)
CLAIM = query("derive_claim", Claimed)
RENEW = query("derive_renew", Row)
RELEASE = query("derive_release", Row)
FAIL = query("derive_fail", Row)
FACTS = query("derive_facts", Nothing)
OBJECT_CREATE = query("derive_object_create", Row)
OBJECT_STORED = query("derive_object_stored", Nothing)
FINISH = query("derive_finish", Row)
SUPERSEDE = query("derive_supersede", Nothing)
TALLY = query("derive_tally", Tally)
CONTENT_FINISHED = query("derive_content_finished", Row)
OBJECT_FINISHED = query("derive_object_finished", Row)
CONTENT_FAILED = query("derive_content_failed", Row)
OBJECT_FAILED = query("derive_object_failed", Row)
LOST = query("derive_lost", Lost)


class Overtaken(Problem):
    """The lease was lost or the content deleted while variants were being made: what was made no longer counts."""

    def __init__(self) -> None:
        super().__init__("derive.overtaken", "The content was deleted, or taken over by another worker, meanwhile.")


@dataclass(frozen=True)
class Deriver:
    """Makes variants; one in each worker."""

    database: Database
    stores: Stores
    maker: Maker
    settings: Settings

    async def derive(self, job: Job) -> None:
        """Make every variant that a content lacks and that nobody else is making; a second delivery finds none."""
        content = UUID(job.key)
        while work := await self._claim(content):
            source, claimed = work
            if not await self._made(source, claimed, last=job.failures + 1 >= ATTEMPTS):
                return

    async def _claim(self, content: UUID) -> tuple[Source, Sequence[Claimed]] | None:
        async with self.database.transaction(ACTOR, "its variants are to be made") as connection:
            source = await SOURCE.first(connection, content)
            if source is None or source.status not in ("uploaded", "processing"):
                return None
            await CONTENT_BEGINS.first(connection, content, ["uploaded"])
            await OBJECT_BEGINS.first(connection, source.object_id)
            claimed = await CLAIM.all(connection, content, None, LEASE)
            deadly = [each for each in claimed if each.crashes >= self.settings.crashes_before_quarantine]
            await FAIL.all(connection, *_mine(deadly), "quarantined")
            alive = [each for each in claimed if each not in deadly]
            if not alive:
                await settle(connection, source)
                return None
            return source, alive

    async def _made(self, source: Source, claimed: Sequence[Claimed], *, last: bool) -> bool:
        """Make what was claimed, and decide what a failure means; False when there is nothing more to do now."""
        try:
            async with self.kept(claimed):
                await self._make(source, claimed)
        except Overtaken:
            return False
        except (*GONE, asyncpg.PostgresError):
            with suppress(*GONE, asyncpg.PostgresError):  # the database is away: the lease ends by itself
                await self._release(claimed)
            raise
        except Problem as problem:
            return await self._judged(source, claimed, problem, last=last)
        except Exception:
            if last:
                await self._fail(source, claimed, "derive.bug", "there is a mistake in Imprint")
            else:
                await self._release(claimed)
            raise
        except BaseException:
            await self._release(claimed)  # the worker was told to stop
            raise
        return True

    async def _judged(self, source: Source, claimed: Sequence[Claimed], problem: Problem, *, last: bool) -> bool:
        """Fail what will never work; put back what may work later, and let the queue come again."""
        died = isinstance(problem, MakerFailed)
        hopeless = isinstance(problem, BadImage | Broken | Missing)
        tried = died and max(each.failures for each in claimed) + 1 >= MAKER_FAILURES
        if hopeless or tried or max(each.since for each in claimed) > GIVE_UP:
            await self._fail(source, claimed, problem.code, problem.sentence)
            return True
        await self._release(claimed, failures=int(died))
        if died or not last:
            raise problem
        # No dead letter: nothing is wrong with the content, and the chore comes back to it.
        log.warning("variants wait until bytes can be had", content=str(source.content_id), why=problem.sentence)
        return False

    async def _make(self, source: Source, claimed: Sequence[Claimed]) -> None:
        recipes = [Recipe(**json.loads(each.recipe)) for each in claimed]
        async with self.folder() as folder:
            async with self.stores.file(source.place) as path:
                if source.facts is None:
                    facts = await self.maker.look(path)
                    await self.remember(source, facts)
                made = await self.maker.make(path, recipes, folder)
            for each, variant in zip(claimed, made, strict=True):
                await self.keep(source, each, variant)

    async def keep(self, source: Source, claimed: Claimed, made: Made) -> None:
        """Store the bytes, then record them; bytes that nobody may record are taken away again."""
        key, facts = new_key(), made.facts
        try:
            await self.stores.blobs.put(key, read_file(made.path), Promise(facts.size, made.sha256))
        except Broken as broken:
            raise Unavailable("derive.spool", "A file on its way to the store has changed.") from broken
        async with self.database.transaction(ACTOR, "a variant was made") as connection:
            kept = await record(connection, source, claimed, self.stores.current, key, made, self._grace)
            if kept:
                await settle(connection, source)
        if not kept:
            await self.stores.blobs.delete(key)
            raise Overtaken

    @property
    def _grace(self) -> timedelta:
        return timedelta(days=self.settings.keep_deleted_days)

    async def remember(self, source: Source, facts: Facts) -> None:
        """Write down what a decoder has seen of an original."""
        async with self.database.connection() as connection:
            await FACTS.run(
                connection,
                source.object_id,
                facts.width,
                facts.height,
                facts.frames,
                facts.has_alpha,
                facts.orientation,
            )

    async def _fail(self, source: Source, claimed: Sequence[Claimed], code: str, why: str) -> None:
        async with self.database.transaction(ACTOR, why) as connection:
            await SOURCE.first(connection, source.content_id)
            await FAIL.all(connection, *_mine(claimed), code)
            await settle(connection, source)

    async def _release(self, claimed: Sequence[Claimed], failures: int = 0) -> None:
        async with self.database.connection() as connection:
            await RELEASE.all(connection, *_mine(claimed), failures)

    @asynccontextmanager
    async def kept(self, claimed: Sequence[Claimed]) -> AsyncIterator[None]:
        """Renew the leases while the body runs; should that fail, the fence keeps the result from counting."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(LEASE.total_seconds() / 3)
                with suppress(*GONE, asyncpg.PostgresError):
                    async with self.database.connection() as connection:
                        await RENEW.all(connection, *_mine(claimed), LEASE)

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[Path]:
        """Give a folder for what is made; the chore removes those of workers that were killed."""
        try:
            folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="derive-", dir=self.stores.spool))
        except OSError as error:
            raise Unavailable("home.no_spool", f"There is no room for files in {self.stores.spool}.") from error
        try:
            yield folder
        except OSError as error:
            if error.errno in _DISK:
                raise Unavailable("home.no_spool", f"There is no room for files in {self.stores.spool}.") from error
            raise
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def bounds(settings: Settings) -> Bounds:
    """Say what one image may cost."""
    return Bounds(
        pixels=settings.image_megapixels * 1_000_000,
        memory_bytes=settings.image_memory_mb << 20,
        cpu_seconds=settings.image_seconds,
        wall_seconds=settings.image_seconds * 2,
    )


def children(settings: Settings) -> int:
    """Say how many processes for images one worker keeps: no more than there are processors for."""
    return min(settings.derivations_at_once, os.cpu_count() or 1)


async def record(
    connection: Link, source: Source, claimed: Claimed, store: str, key: str, made: Made, grace: timedelta
) -> bool:
    """Record a variant whose bytes are in the store; False when it is no longer ours to record."""
    if await SOURCE.first(connection, source.content_id) is None:
        return False
    facts = made.facts
    created = await OBJECT_CREATE.first(
        connection, claimed.id, claimed.fence, store, key, facts.width, facts.height, facts.frames, facts.has_alpha
    )
    if created is None:
        return False
    await OBJECT_STORED.run(connection, created.id, facts.size, made.sha256, facts.type)
    await FINISH.one(connection, claimed.id, claimed.fence, created.id)
    await SUPERSEDE.run(connection, claimed.id, grace)
    return True


async def settle(connection: Link, source: Source) -> None:
    """Let the content follow its variants: processed when all are there, failed when none is open and one failed."""
    tally = await TALLY.one(connection, source.content_id)
    if tally.open:
        return
    if tally.failed:
        await CONTENT_FAILED.first(connection, source.content_id, tally.error_code)
        await OBJECT_FAILED.first(connection, source.object_id, tally.error_code)
    elif tally.processed:
        await CONTENT_FINISHED.first(connection, source.content_id)
        await OBJECT_FINISHED.first(connection, source.object_id)


async def requeue_lost(database: Database) -> int:
    """Put the job of every content in again that has variants to make and that nobody is working on."""
    async with database.transaction("chore", "nobody was working on it") as connection:
        lost = await LOST.all(connection, LOST_AFTER, LOST_PAGE)
        return await enqueue(connection, [Job(ENTRYPOINT, str(row.content_id)) for row in lost])


def _mine(claimed: Sequence[Claimed]) -> tuple[list[UUID], list[int]]:
    return [each.id for each in claimed], [each.fence for each in claimed]
