"""`imprint prove soak`: everything at once for some minutes, with faults, and nothing may grow.

Posts go out to every platform there is, pictures are uploaded and variants made of them, series are polled and people
told, a program reads over HTTP; workers are killed now and then, platforms fail, the database is stopped. One worker
and the HTTP server live through all of it: what they hold is sampled, and a line laid through the samples. In the end
everything must have come out once, by the sandbox's own log, and every chapter must be there.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from imprint.engine.address import listen
from imprint.proof.ground import furnished
from imprint.proof.kills import LEASE, SETTINGS, Deaths, judged
from imprint.proof.nursery import Nursery
from imprint.proof.outages import SOURCE, Load, on_and_on
from imprint.proof.server import Server, stoppable
from imprint.proof.steadiness import Sample, steadiness
from imprint.proof.storm import Asked, Storm
from imprint.proof.traffic import INBOX, Inbox, Traffic
from imprint.sandbox.faults import Fault, Rule
from imprint.sandbox.serial_world import World
from imprint.sandbox.serials import serials
from imprint.sandbox.server import ASGI
from imprint.store.db import TROUBLE, Database, open_database
from imprint.store.query import query

PLATFORMS = ("webhook", "folder", "deviantart", "mastodon", "bluesky", "wordpress")
# So many accounts that none is used for more than its platform allows: every site of the sandbox is at one address, and
# one that asks for fewer calls would keep all the others waiting, as no two real ones do.
ACCOUNTS, WORKERS = 180, 3
API = -1
MEGABYTE = 2**20
# How often, in seconds: a look at what is held, a kill, a stop of the database (and in a short soak once at least).
SAMPLE, KILL, STOP = 1.0, (4.0, 12.0), (40.0, 80.0)
WRITES, ASKS, READS, UPLOADS, PLANS = 0.7, 2.0, 0.1, 0.5, 0.7
CATCHES_UP = 60.0
# What platforms do wrong, and how often.
WRONG = {
    Fault.RESET_BEFORE: 0.01,
    Fault.RESET_AFTER: 0.01,
    Fault.ERROR_AFTER: 0.005,
    Fault.BLANK: 0.005,
    Fault.RATE_LIMIT: 0.003,
}


@dataclass(frozen=True)
class Made:
    """How many works have their variants, and how many failed to get them."""

    processed: int
    failed: int


CONNECTIONS = query("proof_connections", Deaths)
MADE = query("proof_made", Made)


@dataclass
class Weather(Storm):
    """Workers of whom one is killed now and then, never the first; and the HTTP server beside them."""

    pids: dict[int, int] = field(default_factory=dict)

    def serve(self, port: int) -> None:
        """Let the HTTP server be born."""
        told = {**self.ground.environment(), "IMPRINT_PORT": str(port)}
        self.nursery.bear(API, ["api", "--until-stdin-closes"], told, None)

    def strike(self) -> None:
        """Kill one of the workers, but not the one that is to live through everything."""
        mortal = [each for each in self._workers.values() if each.pid and each.number > 1]
        if mortal:
            self.random_kills += 1
            self._signal(self.dice.choice(mortal), signal.SIGKILL)

    def all_are_victims(self) -> None:
        """Remember that everybody was harmed: without a database a lease ends, whoever holds it."""
        self.victims.update(self._actors())

    def end(self) -> None:
        """End the HTTP server."""
        self.nursery.send(API, signal.SIGTERM)

    def _heard(self, told: dict[str, Any]) -> None:
        if "born" in told and told["number"] in {1, API}:
            self.pids[told["number"]] = told["born"]
        super()._heard(told)


async def prove_soak(nursery: Nursery, home: Path, *, minutes: float, seed: int) -> dict[str, Any]:
    """Let everything happen at once, and see that nothing grows and nothing is lost."""
    dice, world, inbox = random.Random(seed), World(seed=seed), Inbox()  # noqa: S311 - the same plan for the same seed
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    settings = {**SETTINGS, "IMPRINT_ALLOWED_HOSTS": "127.0.0.1", "IMPRINT_NOTICE_WINDOW_SECONDS": "1"}
    settings |= {"IMPRINT_FETCH_GAP_MS": "1"}
    beside: dict[str, ASGI] = {"feeds": serials(world), INBOX: inbox}
    async with (
        stoppable(home, None) as server,
        furnished(home, PLATFORMS, ACCOUNTS, seed=seed, settings=settings, url=server.url, beside=beside) as ground,
        open_database(ground.url) as database,
    ):
        async with database.connection() as connection:
            load = Load(ground, database, await SOURCE.one(connection, "Nobody reads it"))
        traffic = Traffic(ground, database, world, inbox, dice, f"http://127.0.0.1:{port}")
        await traffic.begin()
        calm = Asked(0, 0, WORKERS, token=False, seed=seed, lease=LEASE, sleeps=0, long_sleeps=False, seconds=0)
        weather = Weather(calm, ground, nursery, dice)
        async with weather.living():
            weather.serve(port)
            samples, stops = await _everything(load, traffic, weather, server, minutes * 60)
            unseen = await _caught_up(traffic)
            weather.end()
        drained = Storm(_drain(len(load.planned), seed), ground, nursery, dice, victims=weather.victims)
        await drained.rage()
        missing = await load.missing()
        async with database.connection() as connection:
            made = await MADE.one(connection)
        told = await judged(ground, drained)
    held, grown = steadiness(samples)
    wrong = [*missing, *(f"{each} was not taken in" for each in unseen), *grown, *told["wrong"], *_idle(traffic, made)]
    return {
        "minutes": minutes,
        **{name: told[name] for name in ("published", "duplicates", "lost", "stuck", "early", "unknown", "oldest_s")},
        "kills": weather.random_kills,
        "stops": stops,
        "faults": told["faults"],
        "did": {
            "publications": len(load.planned),
            "uploads": len(load.uploaded),
            "processed": made.processed,
            "chapters": traffic.chapters,
            "messages": inbox.messages,
        },
        "reads": dict(traffic.reads),
        "missing": len(missing) + len(unseen),
        **held,
        "samples": len(samples),
        "seed": seed,
        "wrong": wrong,
    }


def _idle(traffic: Traffic, made: Made) -> list[str]:
    """Name what did not happen at all, or went wrong for good."""
    told = {"message was sent": traffic.inbox.messages, "variant was made": made.processed}
    told["read was answered"] = traffic.reads["answered"]
    odd = [each for each in traffic.reads if each[0].isdigit() and not each.startswith("503")]
    return [
        *(f"no {what}" for what, count in told.items() if not count),
        *(f"{traffic.reads[each]} reads were answered with {each}" for each in odd),
        *([f"{made.failed} works have no variants"] if made.failed else []),
    ]


def _drain(publishes: int, seed: int) -> Asked:
    seconds = 120 + publishes * 0.2
    return Asked(
        publishes, 0, WORKERS, token=False, seed=seed, lease=LEASE, sleeps=0, long_sleeps=False, seconds=seconds
    )


async def _everything(
    load: Load, traffic: Traffic, weather: Weather, server: Server, seconds: float
) -> tuple[list[Sample], int]:
    """Do everything for so long; give what was seen meanwhile, and how often the database was stopped."""
    samples: list[Sample] = []
    stops: Counter[str] = Counter()
    for does, chance in WRONG.items():
        load.ground.box.faults.add(Rule(does, path="*", times=None, chance=chance, retry_after="1"))
    load.ground.box.faults.add(Rule(Fault.LATENCY, times=None, chance=0.3, seconds=0.05))

    async def stop() -> None:
        weather.all_are_victims()
        stops[await server.stop(sum(stops.values()))] += 1
        await server.start()

    async with traffic.client() as client:
        doing = [
            asyncio.create_task(each)
            for each in (
                on_and_on(load.plan, PLANS),
                on_and_on(load.upload, UPLOADS),
                on_and_on(traffic.write, WRITES),
                on_and_on(traffic.ask, ASKS),
                on_and_on(lambda: traffic.read(client), READS),
                on_and_on(lambda: _sample(load.database, weather, samples), SAMPLE),
                _now_and_then(_soon(weather.strike), KILL, weather.dice),
                _now_and_then(stop, (min(STOP[0], seconds / 3), min(STOP[1], seconds / 2)), weather.dice),
            )
        ]
        try:
            ends_at = time.monotonic() + seconds
            while time.monotonic() < ends_at:
                await asyncio.sleep(SAMPLE / 4)
                for task in doing:
                    if task.done():
                        task.result()
        finally:
            # A stop that has begun is brought to its end, or the database would stay away.
            await _ended(doing)
            load.ground.box.faults.clear()
            traffic.world.faults.clear()
    return samples, sum(stops.values())


async def _ended(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _soon(work: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def call() -> None:
        await asyncio.sleep(0)
        work()

    return call


async def _now_and_then(work: Callable[[], Awaitable[None]], between: tuple[float, float], dice: random.Random) -> None:
    while True:
        await asyncio.sleep(dice.uniform(*between))
        await asyncio.shield(asyncio.ensure_future(work()))


async def _sample(database: Database, weather: Weather, samples: list[Sample]) -> None:
    """See what the worker that lives through everything, the HTTP server and the database hold."""
    held: dict[str, float] = {}
    for name, number in (("worker", 1), ("api", API)):
        with suppress(psutil.Error, KeyError):
            process = psutil.Process(weather.pids[number])
            held[f"{name}_mb"] = process.memory_info().rss / MEGABYTE
            held[f"{name}_files"] = process.num_fds()
    with suppress(*TROUBLE):
        async with asyncio.timeout(SAMPLE), database.connection() as connection:
            held["connections"] = (await CONNECTIONS.one(connection)).count
    samples.append(Sample(time.monotonic(), held))


async def _caught_up(traffic: Traffic) -> list[str]:
    """Wait a while until every chapter is there, and name those that are not."""
    deadline = time.monotonic() + CATCHES_UP
    left = ["everything"]
    while left and time.monotonic() < deadline:
        with suppress(*TROUBLE):
            await traffic.ask()
            left = await traffic.unseen()
        await asyncio.sleep(SAMPLE)
    return left
