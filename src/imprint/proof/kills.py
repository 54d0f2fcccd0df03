"""`imprint prove kills`: workers publish while they are killed and put to sleep, and the sandbox's log tells the truth.

Half of the kills are at named points, the rarest first, the other half at random moments; some workers sleep past their
lease and wake up. On top of it the sandbox cuts connections before and after it has acted. The time in which everybody
would wait is skipped; leases, quiet periods, looks and retries are as they are shipped, but for the lease of a row,
which is as short as can be set, and the quarantine, which would be right to set aside what dies so often.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import UUID

from imprint.proof.ground import DEVIANTART, FOLDER, WEBHOOK, Ground, furnished
from imprint.proof.nursery import Nursery
from imprint.proof.storm import LOOK, Asked, Storm
from imprint.proof.verdict import End, Intent, judge
from imprint.sandbox.faults import Fault, Rule
from imprint.store.db import connect
from imprint.store.query import query

LEASE = 5
SETTINGS = {
    "IMPRINT_LEASE_SECONDS": str(LEASE),
    "IMPRINT_CRASHES_BEFORE_QUARANTINE": "100",
    "IMPRINT_SHUTDOWN_SECONDS": "3",
    "IMPRINT_LATE_HOURS": "8784",
}
# How often the sandbox breaks off, before and after it has acted, and how long it may take.
RESETS, LATENCY = 0.02, 0.05
# Of so many kills on it is the long form, which has hit every point often enough or has proved nothing.
LONG, ENOUGH = 1000, 50
# A lease that has ended is taken back within so many seconds.
OLDEST = 30.0
SLEEPS = 0.05
SHOWN = 20


@dataclass(frozen=True)
class Deaths:
    """How many attempts were given up for dead."""

    count: int


ENDS = query("proof_ends", End)
INTENTS = query("proof_intents", Intent)
DEATHS = query("proof_deaths", Deaths)


def asked(publishes: int, kills: int, workers: int, *, token: bool, seed: int) -> Asked:
    """Say how much is to be proved; the time it may take grows with it."""
    sleeps, long = round(kills * SLEEPS), kills >= LONG
    return Asked(publishes, kills, workers, token, seed, LEASE, sleeps, long, 180 + publishes * 0.5 + kills * 3)


async def prove_kills(nursery: Nursery, home: Path, of: Asked) -> dict[str, Any]:
    """Let the storm rage, and judge."""
    began = monotonic()
    platforms = (WEBHOOK, FOLDER) if of.token else (DEVIANTART,)
    accounts = max(of.workers * 2, min(500, of.publishes // 3))
    async with furnished(home, platforms, accounts, seed=of.seed, settings=SETTINGS) as ground:
        _unreliable(ground)
        storm = Storm(of, ground, nursery, random.Random(of.seed))  # noqa: S311 - the same plan for the same seed
        await storm.rage()
        return {**await judged(ground, storm), "seconds": round(monotonic() - began, 1)}


def _unreliable(ground: Ground) -> None:
    """Let the sandbox break off, take its time, and accept a second publish, so that one can be seen."""
    for path in ("*stash/publish", "/webhook-*"):
        for does in (Fault.RESET_BEFORE, Fault.RESET_AFTER):
            ground.box.faults.add(Rule(does, path=path, times=None, chance=RESETS))
    ground.box.faults.add(Rule(Fault.LATENCY, times=None, chance=0.3, seconds=LATENCY))
    ground.box.sites[DEVIANTART].switch("refuses_second_publish", on=False)


async def judged(ground: Ground, storm: Storm) -> dict[str, Any]:
    """Compare what Imprint believes with what was seen, and report."""
    connection = await connect(ground.hops.url(ground.url))
    try:
        ends = await ENDS.all(connection)
        unknown = [end.id for end in ends if end.status == "unknown"]
        intents: dict[UUID, list[Intent]] = defaultdict(list)
        for intent in await INTENTS.all(connection, unknown):
            intents[intent.publication_id].append(intent)
        deaths = (await DEATHS.one(connection)).count
    finally:
        await connection.close()
    told = judge(ends, ground.effects(), intents, storm.victims, ground.hops)
    of = storm.asked
    if storm.oldest > OLDEST:
        told.wrong.append(f"a lease that had ended was not taken back for {storm.oldest:.0f} s")
    told.wrong += [f"a worker said: {line}" for line in ground.bugs()]
    seldom = [point for point in of.points if storm.hits[point] < ENOUGH] if of.kills >= LONG else []
    if not storm.over:
        seldom.append("fewer kills than asked for")
    return {
        "published": told.published,
        "duplicates": told.duplicates,
        "lost": told.lost,
        "stuck": told.stuck,
        "early": told.early,
        "unknown": told.unknown,
        "kills": storm.kills,
        "hits": {point: storm.hits[point] for point in of.points},
        "named_kills": storm.named_kills,
        "random_kills": storm.random_kills,
        "sleeps": storm.sleeps,
        "faults": dict(ground.faults()),
        "recovery_ms": _recovery(storm.recovered, deaths),
        "oldest_s": round(storm.oldest, 1),
        "seed": of.seed,
        "publishes": ground.planned,
        "workers": of.workers,
        "token": of.token,
        "hops": ground.hops.count,
        "skipped_s": round(ground.hops.ahead),
        "proved_nothing": seldom,
        "wrong": told.wrong[:SHOWN],
    }


def _recovery(seen: Sequence[float], deaths: int) -> dict[str, int]:
    """Say how long it took from the end of a dead worker's lease until others had taken back what it held.

    Whoever was never seen waiting was taken back between two looks.
    """
    took = sorted([*seen, *[LOOK] * max(0, deaths - len(seen))]) or [0.0]
    return {name: round(took[int((len(took) - 1) * part)] * 1000) for name, part in (("p50", 0.5), ("p99", 0.99))}
