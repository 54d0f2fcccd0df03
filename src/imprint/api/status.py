"""How things stand, and what publishing has done so far: of one's own for everybody, of all for administrators."""

import asyncio
from datetime import datetime
from typing import Any

from imprint.api.gate import needs, router
from imprint.api.shape import Shape, shape
from imprint.api.site import Here, Me
from imprint.work import day as day_
from imprint.work import figures as figures_
from imprint.work import overview
from imprint.work.doctor import Level, examine
from imprint.work.scope import Scope
from imprint.work.status import status as look

routes = router("status")
PATIENCE = 3.0
LONG_PATIENCE = 60.0


class Work(Shape):
    """How much of one kind waits for its time, runs, is late and is stuck."""

    waiting: int
    running: int
    late: int
    stuck: int


class Worker(Shape):
    """A worker, and whether it is alive."""

    name: str
    version: str
    concurrency: int
    started_at: datetime
    seen_at: datetime
    alive: bool


class Status(Shape):
    """How the machine stands; `sendsHeld` says why nothing is sent, where that is so."""

    work: dict[str, Work]
    dead_letters: dict[str, int]
    unknown: int
    asking_person: int
    duplicates: int
    failed: int
    failing_sources: int
    workers: list[Worker]
    sends_held: str | None


class OwnPublications(Shape):
    """Where one's publications stand: `asking` are for a person to decide, `nextAt` is the next to go."""

    waiting: int
    running: int
    late: int
    unknown: int
    asking: int
    failed: int
    out: int
    next_at: datetime | None


class OwnStatus(Shape):
    """How one's own things stand, by their states."""

    posts: dict[str, int]
    content: dict[str, int]
    accounts: dict[str, int]
    publications: OwnPublications
    sources: int
    failing_sources: int


class Drift(Shape):
    """How many seconds late the attempts of the last hour began: half of them, and all but a hundredth."""

    attempts: int
    p50: float
    p99: float


class Figures(Shape):
    """What publishing has done: attempts and seconds by how they ended, and how many publications are still open."""

    published: int
    rate_limits: int
    recoveries: int
    duplicates: int
    attempts: dict[str, int]
    seconds: dict[str, float]
    open: dict[str, int]
    drift_last_hour: Drift


DayPart = shape(
    "DayPart",
    day_.Part,
    example={
        "at": "2030-05-01T16:00:00Z",
        "published": 12,
        "failed": 1,
        "putOff": 2,
        "p50": 0.4,
        "p99": 2.1,
        "waited": 3,
        "workers": 1,
    },
)


class Day(Shape):
    """The last 24 hours: how many seconds a part is long, and every part, the oldest first."""

    seconds: int
    items: list[DayPart]  # type: ignore[valid-type] # a shape made from its dataclass


class Finding(Shape):
    """One thing that was looked at, what was seen, and what to do about it."""

    level: Level
    subject: str
    seen: str
    do: str


class Health(Shape):
    """What the doctor found; `ok` unless something is bad."""

    ok: bool
    items: list[Finding]


@routes.get("/status", response_model=Status, openapi_extra=needs(Scope.SYSTEM_READ))
async def status(site: Here) -> dict[str, Any]:
    """Give what waits, runs, is late or stuck, and which workers are alive; for administrators."""
    async with asyncio.timeout(PATIENCE), site.database.connection() as connection:
        return (await look(connection)).as_data()


@routes.get("/status/own", response_model=OwnStatus, openapi_extra=needs(Scope.POSTS_READ))
async def own_status(site: Here, me: Me) -> dict[str, Any]:
    """Give how one's own posts, publications, content, accounts and sources stand."""
    async with site.database.connection() as connection:
        return (await overview.overview(connection, me.owner)).as_data()


@routes.get("/figures", response_model=Figures, openapi_extra=needs(Scope.SYSTEM_READ))
async def figures(site: Here) -> dict[str, Any]:
    """Count what publishing has done for everybody; for administrators."""
    async with site.database.connection() as connection:
        return (await figures_.figures(connection)).as_data()


@routes.get("/figures/own", response_model=Figures, openapi_extra=needs(Scope.POSTS_READ))
async def own_figures(site: Here, me: Me) -> dict[str, Any]:
    """Count what publishing has done for oneself: attempts by how they ended, recoveries, rate limits, drift."""
    async with site.database.connection() as connection:
        return (await overview.figures(connection, me.owner)).as_data()


@routes.get("/figures/day", response_model=Day, openapi_extra=needs(Scope.SYSTEM_READ))
async def figures_of_day(site: Here) -> dict[str, Any]:
    """Give throughput, drift, queue depth and workers of the last 24 hours, as charts show them; for administrators."""
    async with asyncio.timeout(LONG_PATIENCE), site.database.connection() as connection:
        return {"seconds": day_.SECONDS, "items": [each.as_data() for each in await day_.day(connection)]}


@routes.get("/health", response_model=Health, openapi_extra=needs(Scope.SYSTEM_READ))
async def health(site: Here) -> dict[str, Any]:
    """Look for what is wrong or soon will be, and say what to do about it, as the doctor does; for administrators."""
    async with asyncio.timeout(LONG_PATIENCE):
        found = await examine(site.settings, site.machine().url)
    return {"ok": all(each.level is not Level.BAD for each in found), "items": [vars(each) for each in found]}
