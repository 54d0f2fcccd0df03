"""Settled: a step that, once begun, is seen to its end, also by one who is cancelled meanwhile.

A thread or a request under way cannot be called back. Whoever lets go of it early closes a file that is still
being written, or says "nothing happened" while an object appears.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def settled(step: Awaitable[T], undo: Callable[[T], Awaitable[object]] | None = None) -> T:
    """Wait for a step; when cancelled, wait all the same, undo it if it worked, and only then stop."""
    task = asyncio.ensure_future(step)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if await _worked(task) and undo:
            await _worked(asyncio.ensure_future(undo(task.result())))
        raise


async def _worked(task: "asyncio.Future[T]") -> bool:
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue  # one is raised in the end; a second one does not make a thread any faster
    return not task.cancelled() and task.exception() is None
