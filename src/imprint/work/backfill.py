"""Backfill: go through every content, read its bytes and those of its variants, and put right what is not.

The five steps of the design: find originals, look which variants exist, verify their bytes by hash, mend states that
disagree, queue what is missing. A page at a time in the order of ids, so that memory stays flat, the cost of a row
does not grow with the number of rows, and a run that was stopped goes on where it was.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from uuid import UUID

from imprint.engine.queue import Job, enqueue
from imprint.settings import Settings
from imprint.store.db import ACT, Database
from imprint.store.query import Link, Nothing, query
from imprint.work.content_moves import REMAKE, RETIRE
from imprint.work.derive import SOURCE, settle
from imprint.work.plan import ENTRYPOINT, plan, wanted
from imprint.work.stores import Place, Stores
from imprint.work.sweep import DONE, MOVED, READ, alone
from imprint.work.verify import verify

PAGE = 500
NAME = "backfill"
ACTOR = "backfill"
_FIRST = UUID(int=0)


@dataclass(frozen=True)
class Count:
    """How many contents there are."""

    contents: int


@dataclass(frozen=True)
class Original:
    """A content whose original is here."""

    id: UUID
    name: str
    status: str
    error_code: str | None
    object_id: UUID
    store: str
    key: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Variant:
    """A variant, and its bytes if it is made; idle: it is open and nobody is making it."""

    id: UUID
    parent_id: UUID
    variant: str
    recipe_version: int
    wanted: bool
    status: str
    idle: bool
    store: str | None
    key: str | None
    size: int | None
    sha256: str | None


@dataclass(frozen=True)
class Row:
    """A row that was changed."""

    id: UUID


@dataclass(frozen=True)
class Queued:
    """Whether a job waits or runs."""

    queued: bool


COUNT = query("backfill_count", Count)
QUEUED = query("backfill_queued", Queued)
ORIGINALS = query("backfill_page", Original)
VARIANTS = query("backfill_variants", Variant)
BROKEN_RENDITION = query("backfill_broken_rendition", Nothing)
LOST = query("backfill_lost", Row)
OPEN = query("backfill_open", Row)


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be, and what was done, or would be done, about it."""

    content: UUID
    name: str
    variant: str | None
    code: str
    done: str


@dataclass
class Report:
    """What a run has seen and done."""

    contents: int = 0
    objects: int = 0
    bytes: int = 0
    broken_originals: int = 0
    broken_variants: int = 0
    missing_variants: int = 0
    wrong_states: int = 0
    states_mended: int = 0
    queued: int = 0
    left: int = 0  # what a person must see to
    resumed: bool = False

    @property
    def found(self) -> int:
        """Count what is not as it should be."""
        return self.broken_originals + self.broken_variants + self.missing_variants + self.wrong_states


Tell = Callable[[Finding], None]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What a run may change."""

    fix_status: bool = False
    dry_run: bool = False

    @property
    def sweep(self) -> str:
        """Name what a run is gone on with under."""
        return f"{NAME} --fix-status" if self.fix_status else NAME


def _quiet(_: Finding) -> None:
    """Tell nobody."""


def _still(_done: int, _all: int) -> None:
    """Show nobody how far it is."""


async def backfill(
    database: Database,
    stores: Stores,
    settings: Settings,
    options: Options,
    tell: Tell = _quiet,
    progress: Progress = _still,
) -> Report:
    """Look at everything once; tell of each finding as it is found, and give the sums."""
    for name in stores.every:
        await stores.of(name).check()  # a store that is away must not look like one that has lost everything
    async with alone(database, NAME) as connection:
        run = _Run(connection, stores, options, timedelta(days=settings.keep_deleted_days), tell)
        after = await run.resume()
        everything = (await COUNT.one(connection, after)).contents
        progress(0, everything)
        seen = 0
        while page := await ORIGINALS.all(connection, after, PAGE):
            await run.look(page)
            after = page[-1].id
            await run.remember(after)
            seen += len(page)
            progress(seen, max(everything, seen))
        await run.finish()
        progress(max(everything, seen), max(everything, seen))
        return run.report


@dataclass
class _Run:
    """One run; its connection holds the lock of the sweep."""

    connection: Link
    stores: Stores
    options: Options
    grace: timedelta
    tell: Tell
    report: Report

    def __init__(self, connection: Link, stores: Stores, options: Options, grace: timedelta, tell: Tell) -> None:
        self.connection, self.stores, self.options, self.grace, self.tell = connection, stores, options, grace, tell
        self.report = Report()

    async def resume(self) -> UUID:
        """Go on where a run with the same options was stopped."""
        stand = None if self.options.dry_run else await READ.first(self.connection, self.options.sweep)
        if stand is None:
            return _FIRST
        known = {field.name for field in fields(Report)}
        self.report = Report(**{key: value for key, value in json.loads(stand.tally).items() if key in known})
        self.report.resumed = True
        return UUID(stand.cursor)

    async def remember(self, after: UUID) -> None:
        """Write down how far this run has come."""
        if not self.options.dry_run:
            await MOVED.run(self.connection, self.options.sweep, str(after), json.dumps(asdict(self.report)))

    async def finish(self) -> None:
        """Forget how far this run had come: the next one begins at the beginning."""
        if not self.options.dry_run:
            await DONE.run(self.connection, self.options.sweep)

    async def look(self, page: Sequence[Original]) -> None:
        """Verify the bytes of a page, then put right what is wrong, content by content."""
        variants: dict[UUID, list[Variant]] = defaultdict(list)
        for variant in await VARIANTS.all(self.connection, [content.id for content in page]):
            variants[variant.parent_id].append(variant)
        wrong = await self._verified(page, variants)
        for content in page:
            self.report.contents += 1
            await self._judge(content, variants[content.id], wrong)

    async def _verified(self, page: Sequence[Original], variants: dict[UUID, list[Variant]]) -> dict[UUID, str]:
        """Give the code of what is wrong with the bytes of an original or of a variant, by its id."""
        places = {c.id: Place(c.store, c.key, c.size, c.sha256) for c in page}
        for each in (each for found in variants.values() for each in found):
            if each.store and each.key and each.size and each.sha256:
                places[each.id] = Place(each.store, each.key, each.size, each.sha256)
        codes = await verify(self.stores, list(places.values()))
        self.report.objects += len(places)
        self.report.bytes += sum(place.size for place in places.values())
        return {row: code for row, code in zip(places, codes, strict=True) if code}

    async def _judge(self, content: Original, variants: Sequence[Variant], wrong: dict[UUID, str]) -> None:
        """Decide about one content; what is right costs nothing but the look."""
        broken = [variant for variant in variants if variant.id in wrong]
        self.report.broken_variants += len(broken)
        if content.id in wrong or content.status == "archived":
            for variant in broken:
                self._say(content, variant.variant, wrong[variant.id], "")
            if content.id in wrong:
                await self._lost(content, wrong[content.id])
            return
        expected = {(recipe.variant, recipe.version) for recipe in wanted()}
        there = {(variant.variant, variant.recipe_version): variant for variant in variants if variant.wanted}
        missing = sorted(name for name, version in expected if (name, version) not in there)
        current = [variant for key, variant in there.items() if key in expected]
        if broken or (missing and content.status in ("uploaded", "processed")):
            await self._remake(content, broken, missing, wrong)
        elif any(variant.idle for variant in current) and content.status in ("uploaded", "processing"):
            await self._requeue(content)
        elif not any(variant.status in ("created", "processing") for variant in current):
            await self._mend(content, current)

    async def _lost(self, content: Original, code: str) -> None:
        """Say that an original is lost, which is all that can be done: nothing makes it again."""
        if content.status == "failed" and content.error_code == code:
            return  # that is known
        self.report.broken_originals += 1
        mends = self.options.fix_status and content.status != "archived"
        self._say(content, None, code, "failed" if mends else "")
        if not mends or self.options.dry_run:
            return
        async with self.connection.transaction():
            await ACT.one(self.connection, ACTOR, "its original is damaged or gone")
            await OPEN.first(self.connection, content.id)
            if await LOST.first(self.connection, content.id, code):
                self.report.states_mended += 1

    async def _remake(
        self, content: Original, broken: Sequence[Variant], missing: Sequence[str], wrong: dict[UUID, str]
    ) -> None:
        for variant in broken:
            self._say(content, variant.variant, wrong[variant.id], "made again" if variant.wanted else "let go")
        for name in missing:
            self.report.missing_variants += 1
            self._say(content, name, "derive.missing", "queued")
        if self.options.dry_run:
            return
        async with self.connection.transaction():
            await ACT.one(self.connection, ACTOR, "a variant is damaged or missing")
            for variant in broken:
                if not variant.wanted:
                    await BROKEN_RENDITION.run(self.connection, variant.id)
            again = [variant.id for variant in broken if variant.wanted]
            if again or missing:
                await self._put_back(content.id, again)

    async def _put_back(self, content: UUID, again: list[UUID]) -> None:
        """Let variants be made again, also of content that failed or is being processed."""
        source = await SOURCE.first(self.connection, content)
        if source is None or source.status == "archived":
            return  # somebody was faster
        await OPEN.first(self.connection, content)
        await RETIRE.run(self.connection, content, again, self.grace)
        await REMAKE.all(self.connection, content, again)
        self.report.queued += await plan(self.connection, content)

    async def _requeue(self, content: Original) -> None:
        """Put a job in that was lost; one that waits is not put in twice, and is then nothing to be told of."""
        if (await QUEUED.one(self.connection, ENTRYPOINT, str(content.id))).queued:
            return
        self.report.missing_variants += 1
        self._say(content, None, "derive.lost", "queued")
        if not self.options.dry_run:
            async with self.connection.transaction():
                self.report.queued += await enqueue(self.connection, [Job(ENTRYPOINT, str(content.id))])

    async def _mend(self, content: Original, variants: Sequence[Variant]) -> None:
        """Let a state follow from its variants, where it does not."""
        states = {variant.status for variant in variants}
        should = "failed" if "failed" in states else "processed"
        if not variants or content.status == should:
            return
        self.report.wrong_states += 1
        self._say(content, None, f"state.{content.status}", should if self.options.fix_status else "")
        if self.options.dry_run or not self.options.fix_status:
            return
        async with self.connection.transaction():
            await ACT.one(self.connection, ACTOR, "its state did not follow from its variants")
            source = await SOURCE.first(self.connection, content.id)
            if source is not None:
                await OPEN.first(self.connection, content.id)
                await settle(self.connection, source)
                self.report.states_mended += 1

    def _say(self, content: Original, variant: str | None, code: str, done: str) -> None:
        self.report.left += self.options.dry_run or done in ("", "failed")
        self.tell(Finding(content.id, content.name, variant, code, "" if self.options.dry_run else done))
