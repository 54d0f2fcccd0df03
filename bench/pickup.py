"""Pick-up: how long one job waits for an idle worker, measured the same way for everyone."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import perf_counter

PICKUPS = 200
# The pause between two jobs, at random so that it falls in step with nobody's polling; long enough to fall idle.
GAP_MS = (50, 100)
GIVES_UP = 30.0


async def pickup(enqueue: Callable[[], Awaitable[object]], started: asyncio.Queue[float]) -> list[float]:
    """Enqueue single jobs, and return the milliseconds from that call to the handler's start (its perf_counter)."""
    waited = []
    for _ in range(PICKUPS):
        await asyncio.sleep(random.uniform(*GAP_MS) / 1000)
        began = perf_counter()
        await enqueue()
        async with asyncio.timeout(GIVES_UP):
            waited.append((await started.get() - began) * 1000)
    return waited
