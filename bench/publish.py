"""`python -m bench.publish`: publications a second, end to end, beside a careful BullMQ worker; and how the cost grows.

Both publish small images to the same sandbox, which answers at once, and commit to the same PostgreSQL, with the same
number at the same time. Imprint's clock starts at the moment at which everything is due, BullMQ's when its worker is
told to run, with every job in Redis; both stop at the last success. Every account publishes once in a round: Imprint
keeps a pace for each account, as platforms want it, and BullMQ's worker does not.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from uuid import UUID

import uvloop

from bench.cluster import DISK, Cluster, cluster
from bench.figures import percentile
from bench.growth import SIZES, growth
from bench.machine import machine
from bench.peers import bullmq
from bench.peers.redis import DEFAULT, DURABLE
from bench.pictures import photograph
from bench.simulated import Simulated, simulated
from bench.studio import Studio, studio
from imprint.engine.lease import PUBLICATIONS
from imprint.engine.wire import Wire
from imprint.images.maker import Maker
from imprint.work.claim import claim
from imprint.work.derive import Deriver, bounds, children
from imprint.work.desk import Desk
from imprint.work.journal import Journal
from imprint.work.stores import open_stores
from imprint.work.vault import Vault

WARM = 100
CLAIMS = 300
# Until everything is due: the rows are written, and the statistics are fresh, before that.
LEAD = timedelta(seconds=4)
WRITTEN_PER_S = 300


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    accounts: int
    rounds: int
    concurrency: int
    rows: tuple[int, int]
    growth_rounds: int


FULL = Size(accounts=2000, rounds=3, concurrency=20, rows=SIZES, growth_rounds=400)
QUICK = Size(accounts=300, rounds=1, concurrency=20, rows=(10_000, 100_000), growth_rounds=100)


@dataclass
class Bench:
    """Everything that takes part."""

    size: Size
    postgres: Cluster
    sandbox: Simulated
    studio: Studio
    image: bytes
    file: Path
    tokens: Sequence[str]

    async def imprint(self, workers: int) -> float:
        """Publish once on every account, and give how many a second."""
        async with self.studio.workers(workers, self.size.concurrency):
            now = datetime.now(UTC)
            few = Studio(self.studio.database, self.studio.url, self.studio.settings, self.studio.accounts[:WARM])
            await few.finished(await few.plan(self.image, now), now)
            due_at = datetime.now(UTC) + LEAD + timedelta(seconds=len(self.studio.accounts) / WRITTEN_PER_S)
            planned = await self.studio.plan(self.image, due_at)
            if datetime.now(UTC) >= due_at:
                raise RuntimeError("the publications were not written before they were due")
            return len(planned) / await self.studio.finished(planned, due_at)

    async def bullmq(self, name: str, *, durable: bool = False) -> float:
        """Let a careful worker publish as many, and give how many a second."""
        url, count = await self.postgres.database(name), len(self.tokens)
        base = f"{self.sandbox.url}/deviantart"
        seconds = await bullmq.publish(
            url, base, self.tokens, self.file, count, self.size.concurrency, setup=DURABLE if durable else DEFAULT
        )
        return count / seconds

    async def claims(self) -> dict[str, float]:
        """Take publications that are due, one after the other, as a worker does before it sends; give each back."""
        settings, database = self.studio.settings, self.studio.database
        now = datetime.now(UTC)
        planned = (await self.studio.plan(self.image, now))[:CLAIMS]
        stores = open_stores(settings)
        deriver = Deriver(database, stores, Maker(bounds(settings), children(settings)), settings)
        desk = Desk(database, Vault.of(settings), Wire(), deriver, Journal.of(settings.home), settings)
        took = [await self._claimed(desk, publication) for publication in planned]
        return {"p50": round(percentile(took, 0.5), 2), "p99": round(percentile(took, 0.99), 2)}

    async def _claimed(self, desk: Desk, publication: UUID) -> float:
        began = time.perf_counter()
        taken = await claim(desk, publication)
        took = (time.perf_counter() - began) * 1000
        if taken is None:
            raise RuntimeError("a publication that was due could not be taken")
        async with desk.database.connection() as connection:
            await PUBLICATIONS.release(connection, taken.lease)
        return took

    async def duplicates(self) -> int:
        """Ask the sandbox's own log how many went out more than once."""
        keys = await self.sandbox.published()
        return len(keys) - len(set(keys))


@asynccontextmanager
async def opened(size: Size) -> AsyncIterator[Bench]:
    """Start everything, on a disk that is one."""
    home = Path(tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK))
    home.chmod(0o711)
    try:
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(cluster())
            sandbox = await stack.enter_async_context(simulated())
            logins = await sandbox.logins([f"artist-{number}" for number in range(size.accounts)])
            url = await postgres.database("ours")
            ours = await stack.enter_async_context(studio(url, home, logins))
            image: bytes = photograph(64, 64, 1).pngsave_buffer()
            file = home / "work.png"
            file.write_bytes(image)
            tokens = [login.access_token.get_secret_value() for login in logins]
            yield Bench(size, postgres, sandbox, ours, image, file, tokens)
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def measure(size: Size, *, grows: bool = True) -> None:
    """Measure everything, the contenders in turns, and print the one JSON object."""
    why = bullmq.available()
    one: list[float] = []
    two: list[float] = []
    peer: list[float] = []
    durable: list[float] = []
    async with opened(size) as bench:
        logins = await bench.sandbox.logins(["alone"])
        alone = await bench.sandbox.alone(logins[0], bench.image, 1000, size.concurrency, size.rounds)
        claim_ms = await bench.claims()
        for number in range(size.rounds):
            one.append(await bench.imprint(1))
            if why is None:
                peer.append(await bench.bullmq(f"bullmq_{number}"))
            two.append(await bench.imprint(2))
            if why is None:
                durable.append(await bench.bullmq(f"durable_{number}", durable=True))
        twice = await bench.duplicates()
        grown = None
        if grows:
            urls = [await bench.postgres.database(f"growth_{rows}") for rows in size.rows]
            grown = await growth(urls, size.rows, size.growth_rounds)
    imprint = {**_rate(one), "two_workers": _rate(two), "claim_ms": claim_ms, "duplicates": twice, "growth": grown}
    peers: dict[str, object] = {"bullmq": why or {**_rate(peer), "durable": _rate(durable)}}
    ratio = {}
    if why is None:
        ratio = {
            "bullmq": round(median(one) / median(peer), 2),
            "bullmq_two_workers": round(median(two) / median(peer), 2),
            "bullmq_durable": round(median(one) / median(durable), 2),
        }
    told = {
        "accounts": size.accounts,
        "concurrency": size.concurrency,
        "rounds": size.rounds,
        "image_bytes": len(bench.image),
    }
    print(
        json.dumps(
            {"imprint": imprint, **peers, "ratio": ratio, "sandbox": alone, "asked": told, "machine": machine()},
            indent=2,
        )
    )


def _rate(rounds: Sequence[float]) -> dict[str, object]:
    return {"per_s": round(median(rounds), 1), "range": [round(min(rounds), 1), round(max(rounds), 1)]}


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.publish", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute instead of many, for a first look")
    parser.add_argument("--accounts", type=int, help="how many accounts, each with one publication a round")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--concurrency", type=int, help="how many at once, in each worker")
    parser.add_argument("--no-growth", action="store_true", help="leave out how the cost grows")
    asked = parser.parse_args()
    size = QUICK if asked.quick else FULL
    given = {name: getattr(asked, name) for name in ("accounts", "rounds", "concurrency") if getattr(asked, name)}
    uvloop.run(measure(Size(**{**vars(size), **given}), grows=not asked.no_growth))


if __name__ == "__main__":
    main()
