"""Batches in a crowd: workers, clocks and people at the same posts, at the same time."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from imprint.decisions.schedule import Bounds
from imprint.engine.lease import PUBLICATIONS
from imprint.problem import Problem
from imprint.work.batch import create, pause, resume, stop
from imprint.work.schedule import cancel, retry
from tests.waiting import until
from tests.work.posts import OWNER, Author
from tests.work.rhythm import Rhythm

NOTHING = timedelta(0)
LIMITS = Bounds(jitter=NOTHING)


@dataclass
class Crowd:
    """Batches without an interval on the same accounts, and whoever is busy with them."""

    author: Author
    rhythm: Rhythm
    away: bool
    roll: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311 - the same crowd each time
    done: asyncio.Event = field(default_factory=asyncio.Event)
    accounts: list[UUID] = field(default_factory=list)
    posts: list[UUID] = field(default_factory=list)
    batches: list[UUID] = field(default_factory=list)

    async def begin(self) -> None:
        """Plan three batches; the last one will be stopped."""
        self.accounts = [await self.author.account(uuid4().hex) for _ in range(4)]
        for _ in range(3):
            posts = [await self.author.draft() for _ in range(3)]
            planned = await create(self.author.database, LIMITS, OWNER, posts, every=NOTHING, accounts=self.accounts)
            self.posts += posts
            self.batches.append(planned.batch.id)

    async def work(self) -> None:
        """Take whatever may go and end it somehow."""
        while not self.done.is_set():
            row = await self.rhythm.read(
                "SELECT id FROM publication WHERE status = 'pending' AND turn <> 'behind' ORDER BY random() LIMIT 1"
            )
            if row is None or (lease := await self.rhythm.claim(row)) is None:
                await asyncio.sleep(0)
                continue
            how = self.roll.choice(["published", "not_yet", "refused", "stopped"])
            await self.rhythm.end(lease, how, after=NOTHING)

    async def clock(self) -> None:
        """Give turns, hand over, and take back leases."""
        while not self.done.is_set():
            await self.rhythm.read("UPDATE batch_turn SET at = imprint_now() WHERE NOT paused AND at > imprint_now()")
            await self.rhythm.tick()
            await self.rhythm.hand_over()
            async with self.author.database.transaction("clock", "publication_lost") as connection:
                await PUBLICATIONS.expire.all(connection, 100, 9)

    async def person(self) -> None:
        """Pause, cancel, try again, stop, sign out and in again, as it comes."""
        acts = [self._pause, self._cancel, self._retry, self._leave if self.away else self._stop]
        for _ in range(15):
            with suppress(Problem):
                await self.roll.choice(acts)()

    async def over(self) -> bool:
        """Say whether everything has come to its end."""
        await asyncio.gather(*(resume(self.author.database, OWNER, each) for each in self.batches))
        return not await self.rhythm.read("SELECT count(*) FROM publication WHERE status IN ('pending', 'running')")

    async def _pause(self) -> None:
        await pause(self.author.database, OWNER, batch := self.roll.choice(self.batches))
        await resume(self.author.database, OWNER, batch)

    async def _cancel(self) -> None:
        await cancel(
            self.author.database, OWNER, self.roll.choice(self.posts), accounts=self.roll.sample(self.accounts, 1)
        )

    async def _retry(self) -> None:
        await retry(self.author.database, OWNER, self.roll.choice(self.posts))

    async def _stop(self) -> None:
        await stop(self.author.database, OWNER, self.batches[-1])

    async def _leave(self) -> None:
        account = self.roll.choice(self.accounts)
        for before, after in (("connected", "reconnect"), ("reconnect", "connected")):
            await self.rhythm.read(
                "UPDATE account SET status = $3 WHERE id = $1 AND status = $2", account, before, after
            )


@pytest.mark.parametrize("away", [False, True])
async def test_many_at_once(author: Author, away: bool) -> None:  # noqa: FBT001 - a case
    """Nobody waits crosswise, and everything has its end.

    The order in which they are tried first is kept, unless accounts go away meanwhile.
    """
    rhythm = Rhythm(author.database)
    crowd = Crowd(author, rhythm, away)
    await crowd.begin()
    busy = [crowd.work, crowd.work, crowd.work, crowd.clock, crowd.clock]
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for each in busy:
            group.create_task(each())
        await asyncio.gather(crowd.person(), crowd.person())
        await until(crowd.over, 40)
        crowd.done.set()
    for batch in crowd.batches[:2]:
        began = await rhythm.read(
            "SELECT array_agg(place ORDER BY began) FROM ("
            " SELECT u.batch_place AS place, min(a.began_at) AS began FROM publication u"
            " JOIN attempt a ON a.publication_id = u.id WHERE u.batch_id = $1 GROUP BY u.id) AS first",
            batch,
        )
        assert len(began) > 2
        assert away or began == sorted(began)
    assert await rhythm.read("SELECT count(*) FROM publication WHERE turn <> 'over'") == 0
    states = set(await rhythm.read("SELECT array_agg(status) FROM publication"))
    assert states <= {"success", "failed", "cancelled"}
