"""A rendition: a content's bytes as a place with limits takes them; made only when the original does not fit."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from imprint.blobs.store import Missing
from imprint.blobs.tally import Broken
from imprint.images.fit import VERSION, Limits, fits
from imprint.images.made import Made
from imprint.images.refusal import BadImage, MakerFailed
from imprint.platforms.contract import Platform
from imprint.platforms.limits import Misfit
from imprint.platforms.login import Login
from imprint.platforms.work import Bytes as Read
from imprint.platforms.work import File, Work
from imprint.problem import Busy, Problem
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.content import Bytes, NotAllowed
from imprint.work.content_moves import DERIVABLE
from imprint.work.derive import ACTOR, CLAIM, FAIL, LEASE, PLAN_ONE, RELEASE, SOURCE, Claimed, Deriver, Source

MADE = query("derive_made", Bytes)


@dataclass(frozen=True)
class Wanted:
    """Why a file cannot go as it is, and within which limits a rendition could; nothing when it fits."""

    why: tuple[Misfit, ...]
    limits: Limits


def unfit(to: Platform[Any], login: Login, work: Work, file: File) -> Wanted:
    """Say what of a file a platform does not take and a rendition would mend."""
    taken = to.limits_for(login)
    why = tuple(each for each in to.validate(login, replace(work, files=(file,))) if each.rendition)
    return Wanted(why, Limits(taken.types, taken.bytes, taken.edge, taken.pixels))


async def rendition(deriver: Deriver, content: UUID, limits: Limits) -> Bytes:
    """Give bytes within limits: the original's, or those of a rendition that is there or is made now.

    Raises what makes it impossible (BadImage), or Busy when somebody else is making it at this moment.
    """
    async with deriver.database.transaction(ACTOR, "a rendition is asked for") as connection:
        source = await SOURCE.first(connection, content)
        if source is None:
            raise Problem("content.missing", "There is no such content.")
        if source.status not in DERIVABLE:
            raise NotAllowed("content.not_derivable", f"Nothing is made of content that is {source.status}.")
        if source.facts and fits(source.facts, limits):
            return _original(source)
        if made := await MADE.first(connection, content, limits.variant, VERSION):
            return made
    async with deriver.stores.file(source.place) as path, deriver.folder() as folder:
        facts = source.facts
        if facts is None:
            facts = await deriver.maker.look(path)
            await deriver.remember(source, facts)
            if fits(facts, limits):
                return _original(source)
        claimed = await _claimed(deriver, source, limits)
        try:
            async with deriver.kept([claimed]):
                await deriver.keep(source, claimed, await _fit(deriver, path, limits, folder))
        except (BadImage, MakerFailed, Broken, Missing) as problem:
            async with deriver.database.transaction(ACTOR, problem.sentence) as connection:
                await FAIL.all(connection, [claimed.id], [claimed.fence], problem.code)
            raise
        except BaseException:
            async with deriver.database.connection() as connection:
                await RELEASE.all(connection, [claimed.id], [claimed.fence], 0)
            raise
    return await _made(deriver.database, content, limits)


def rendered(file: File, made: Bytes, read: Read) -> File:
    """Give a file as its rendition: the same label with another ending, and the rendition's bytes."""
    ending = made.content_type.partition("/")[2]
    return replace(
        file,
        name=f"{file.name.rpartition('.')[0] or file.name}.{ending}",
        type=made.content_type,
        size=made.size,
        sha256=made.sha256,
        width=None,
        height=None,
        open=read,
    )


async def _fit(deriver: Deriver, path: Path, limits: Limits, folder: Path) -> Made:
    made = await deriver.maker.fit(path, limits, folder)
    if made is None:  # pragma: no cover - the child agrees with us about what fits
        raise Problem("derive.bug", "What did not fit now does.")
    return made


async def _claimed(deriver: Deriver, source: Source, limits: Limits) -> Claimed:
    recipe = json.dumps({**asdict(limits), "types": sorted(limits.types)})
    async with deriver.database.transaction(ACTOR, "a rendition is to be made") as connection:
        await PLAN_ONE.run(connection, source.content_id, limits.variant, VERSION, recipe)
        claimed = await CLAIM.first(connection, source.content_id, limits.variant, LEASE)
    if claimed is None:
        raise Busy("derive.busy", "Somebody else is making this rendition at this moment.")
    return claimed


async def _made(database: Database, content: UUID, limits: Limits) -> Bytes:
    async with database.connection() as connection:
        return await MADE.one(connection, content, limits.variant, VERSION)


def _original(source: Source) -> Bytes:
    return Bytes(source.object_id, source.store, source.key, source.size, source.sha256, source.content_type)
