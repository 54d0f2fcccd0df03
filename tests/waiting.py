"""Waiting for something to become true: by looking, with a deadline, never by sleeping and hoping."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

Value = TypeVar("Value")


async def until(look: Callable[[], Awaitable[Value]], seconds: float = 15) -> Value:
    """Look again and again until what is seen is true, and give it; fail when it never is."""
    deadline = monotonic() + seconds
    while not (value := await look()):
        if monotonic() > deadline:
            raise AssertionError(f"this did not become true in {seconds} seconds")
        await asyncio.sleep(0.01)
    return value
