"""`imprint prove database`: PostgreSQL is stopped hard, again and again, while everybody works.

The prover plans publications, uploads files and takes in chapters; workers publish. Whatever was answered was
committed, so it must be there in the end, and what was published must have come out once. How long it takes until all
four go on is counted from the moment of the stop, the start of the server included. It is the embedded server, or one
that is lent with the commands that stop and start it.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from imprint.decisions.chapter_number import from_name
from imprint.problem import Problem, Unavailable
from imprint.proof.ground import FOLDER, OWNER, WEBHOOK, Ground, furnished, png
from imprint.proof.kills import LEASE, SETTINGS, judged
from imprint.proof.nursery import Nursery
from imprint.proof.server import Lent, Server, stoppable
from imprint.proof.storm import Asked, Storm
from imprint.sources.contract import Chapter, Fetched
from imprint.store.db import TROUBLE, Database, open_database
from imprint.store.query import query
from imprint.work.add import add
from imprint.work.ingest import Carrier, ingest
from imprint.work.post import Row
from imprint.work.stores import open_stores

WORKERS = 2
ACCOUNTS = 60
WITHIN = 10.0
GIVES_UP = 60.0
# Between two stops everything has gone on so often.
ENOUGH = 3
AGAIN = 0.1
EVERY = 0.3
STEP = 0.02
CHAPTERS = 5
PUBLISHED = "published"


@dataclass(frozen=True)
class Source:
    """A source and its series."""

    id: UUID
    series_id: UUID


@dataclass(frozen=True)
class Release:
    """A release, by its id at the source."""

    id: str


SOURCE = query("proof_source", Source)
RELEASES = query("proof_releases", Release)
CONTENTS = query("proof_contents", Row)
PUBLICATIONS = query("proof_publications", Row)


@dataclass
class Load:
    """What was asked for, and what of it was answered."""

    ground: Ground
    database: Database
    source: Source
    planned: list[UUID] = field(default_factory=list)
    uploaded: list[UUID] = field(default_factory=list)
    ingested: list[str] = field(default_factory=list)

    def counts(self) -> Counter[str]:
        """Count what was answered, and what has come out."""
        answered = {"planned": len(self.planned), "uploaded": len(self.uploaded), "ingested": len(self.ingested)}
        return Counter({**answered, PUBLISHED: len(self.ground.box.log.effects())})

    async def plan(self) -> None:
        """Plan a few publications."""
        async with self.database.connection() as connection:
            self.planned += await self.ground.plan(connection, [0.0] * 2)

    async def upload(self) -> None:
        """Upload a picture like no other."""
        settings, number = self.ground.loaded(), len(self.uploaded)
        path = self.ground.home / f"picture-{number}.png"
        await asyncio.to_thread(path.write_bytes, png(8 + number // 200, number % 200))
        stores = open_stores(settings)
        self.uploaded.append((await add(self.database, stores, settings, path, OWNER)).file_id)

    async def ingest(self) -> None:
        """Take in a few chapters."""
        first = len(self.ingested)
        names = [str(number) for number in range(first + 1, first + 1 + CHAPTERS)]
        chapters = tuple(Chapter(name, from_name(name, fallback=name)) for name in names)
        async with self.database.transaction(OWNER, "a proof") as connection:
            await ingest(connection, Carrier(self.source.id, self.source.series_id, first=False), Fetched(chapters))
        self.ingested += names

    async def missing(self) -> list[str]:
        """Say what was answered and is not there."""
        async with self.database.connection() as connection:
            releases = {each.id for each in await RELEASES.all(connection, self.source.id)}
            contents = {each.id for each in await CONTENTS.all(connection, self.uploaded)}
            publications = {each.id for each in await PUBLICATIONS.all(connection, self.planned)}
        return [
            *(f"chapter {each}" for each in self.ingested if each not in releases),
            *(f"content {each}" for each in self.uploaded if each not in contents),
            *(f"publication {each}" for each in self.planned if each not in publications),
        ]


async def prove_database(
    nursery: Nursery, home: Path, *, stops: int, seed: int, lent: Lent | None = None
) -> dict[str, Any]:
    """Stop the database, see everything go on, and in the end look for all that was answered."""
    dice = random.Random(seed)  # noqa: S311 - the same again for the same seed
    async with (
        stoppable(home, lent) as server,
        furnished(home, (WEBHOOK, FOLDER), ACCOUNTS, seed=seed, settings=SETTINGS, url=server.url) as ground,
    ):
        calm = Asked(0, 0, WORKERS, token=True, seed=seed, lease=LEASE, sleeps=0, long_sleeps=False, seconds=0)
        workers = Storm(calm, ground, nursery, dice)
        async with open_database(ground.url) as database:
            async with database.connection() as connection:
                source = await SOURCE.one(connection, "The Lighthouse Keeper")
            load = Load(ground, database, source)
            async with workers.living():
                took, kinds = await _under_load(load, server, stops, dice)
            drained = Storm(_drain(len(load.planned), seed), ground, nursery, dice)
            await drained.rage()
            missing = await load.missing()
        told = await judged(ground, drained)
    slow = [f"after stop {number} it took {each:.1f} s" for number, each in enumerate(took, 1) if each > WITHIN]
    return {
        "server": "embedded" if lent is None else "lent",
        "stops": len(took),
        "kinds": dict(kinds),
        "acknowledged": {
            "publications": len(load.planned),
            "uploads": len(load.uploaded),
            "chapters": len(load.ingested),
        },
        "missing": len(missing),
        **{name: told[name] for name in ("published", "duplicates", "lost", "stuck", "early", "unknown", "oldest_s")},
        "back_s": {"p50": round(sorted(took)[len(took) // 2], 2), "max": round(max(took), 2)} if took else {},
        "seed": seed,
        "wrong": [*missing, *slow, *told["wrong"]],
    }


def _drain(publishes: int, seed: int) -> Asked:
    seconds = 120 + publishes * 0.2
    return Asked(
        publishes, 0, WORKERS, token=True, seed=seed, lease=LEASE, sleeps=0, long_sleeps=False, seconds=seconds
    )


async def _under_load(load: Load, server: Server, stops: int, dice: random.Random) -> tuple[list[float], Counter[str]]:
    took: list[float] = []
    kinds: Counter[str] = Counter()
    working = [asyncio.create_task(on_and_on(each)) for each in (load.plan, load.upload, load.ingest)]
    try:
        for number in range(stops):
            await _gone_on(load, working, ENOUGH)
            await asyncio.sleep(dice.uniform(0, EVERY))
            stopped_at = time.monotonic()
            kinds[await server.stop(number)] += 1
            await server.start()
            await _gone_on(load, working, 1)
            took.append(time.monotonic() - stopped_at)
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    return took, kinds


async def on_and_on(work: Callable[[], Awaitable[None]], seconds: float = EVERY) -> None:
    """Do it again and again, through every outage; what was not answered is not counted."""
    while True:
        try:
            await work()
        except (*TROUBLE, Unavailable):
            await asyncio.sleep(AGAIN)
        else:
            await asyncio.sleep(seconds)


async def _gone_on(load: Load, working: Sequence[asyncio.Task[None]], often: int) -> None:
    """Wait until everything has gone on so often from now."""
    before, deadline = load.counts(), time.monotonic() + GIVES_UP
    while any(count < before[name] + often for name, count in load.counts().items()):
        for task in working:
            if task.done():
                task.result()
        if time.monotonic() > deadline:
            still = [name for name, count in load.counts().items() if count < before[name] + often]
            raise Problem("proof.stands_still", f"Nothing is {' or '.join(still)} any more since the database is back.")
        await asyncio.sleep(STEP)
