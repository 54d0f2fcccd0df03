"""Health: how the machine has done for a day, how it stands now, and what the doctor says; for administrators."""

import asyncio
from typing import Any

from fastapi.responses import Response

from imprint.store import backup
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work.day import CIRCUITS
from imprint.work.doctor import Level, examine
from imprint.work.metrics import GAUGES
from imprint.work.scope import Scope
from imprint.work.status import status

routes = pages()
PATIENCE = 60.0
OLDEST = {
    "publication": "a publication that is due",
    "running": "a publication on its way",
    "source": "a source that is due",
    "delivery": "a message that is due",
    "job": "a job in the queue",
}


@routes.get("/health", **seen_by(Scope.SYSTEM_READ))
async def health(look: Looking) -> Response:
    """Show the charts of the day, and how everything stands."""
    return look.page("health.html", title="Health", **await _now(look))


@routes.get("/health/now", **seen_by(Scope.SYSTEM_READ))
async def now(look: Looking) -> Response:
    """Show how everything stands, again."""
    return look.part("health_now.html", **await _now(look))


@routes.get("/health/work", **seen_by(Scope.SYSTEM_READ))
async def work(look: Looking) -> Response:
    """Show what waits, runs, is late and is stuck, again."""
    async with look.site.database.connection() as connection:
        return look.part("health_work.html", seen=await status(connection))


@routes.get("/health/findings", **seen_by(Scope.SYSTEM_READ))
async def findings(look: Looking) -> Response:
    """Show what the doctor finds, what is bad first."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await examine(look.site.settings, look.site.machine().url)
    except TimeoutError:
        return look.part("sorry_part.html", sentence="The doctor takes long today; run imprint doctor on the machine.")
    wrong = sorted((each for each in found if each.level is not Level.OK), key=lambda each: each.level is Level.WARN)
    return look.part("health_findings.html", wrong=wrong, good=[each for each in found if each.level is Level.OK])


async def _now(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        seen = await status(connection)
        gauges = await GAUGES.all(connection)
        circuits = await CIRCUITS.all(connection)
    oldest = max(
        ((each.value or 0, each.kind) for each in gauges if each.name == "oldest" and each.kind in OLDEST),
        default=(0, ""),
    )
    return {
        "seen": seen,
        "alive": sum(each.alive for each in seen.workers),
        "letters": sum(each.held for each in seen.dead_letters),
        "oldest_seconds": oldest[0],
        "oldest_of": OLDEST.get(oldest[1], ""),
        "circuits": circuits,
        "backup": await asyncio.to_thread(backup.last, look.site.settings.home),
    }
