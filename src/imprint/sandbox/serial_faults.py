"""What the simulated sources do wrong: by rule, a number of times, or by chance."""

import asyncio
import random
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGI: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Kind(StrEnum):
    """The faults there are."""

    LATENCY = "latency"  # `seconds` before anything
    STATUS = "status"  # `status`, with `retry_after` when it is set
    RESET = "reset"  # the connection ends without a word
    CUT = "cut"  # half of the body, then the end of the connection
    SHUFFLE = "shuffle"  # items in no order
    REPEAT = "repeat"  # some items twice
    BROKEN = "broken"  # the body ends in the middle, politely
    ENCODING = "encoding"  # says UTF-8 and is not
    PAGE = "page"  # a friendly web page instead
    EMPTY = "empty"  # 200 and nothing


@dataclass
class Fault:
    """One rule: where, how often (None: always), how likely."""

    kind: Kind
    on: str = ""  # paths that begin like this
    times: int | None = None
    chance: float = 1.0
    status: int = 500
    retry_after: str | None = None
    seconds: float = 0.0


class Faults:
    """The rules in force."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._rules: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Put a rule in force."""
        self._rules.append(fault)

    def clear(self) -> None:
        """Behave from now on."""
        self._rules.clear()

    def due(self, path: str) -> list[Fault]:
        """Say what goes wrong with this request."""
        fired = []
        for fault in self._rules:
            if fault.times == 0 or not path.startswith(fault.on) or self._dice.random() >= fault.chance:
                continue
            if fault.times is not None:
                fault.times -= 1
            fired.append(fault)
        return fired

    def shake(self, items: list[Any], fired: list[Fault]) -> list[Any]:
        """Put items in the order, and the number, that the faults make of them."""
        kinds = {fault.kind for fault in fired}
        if Kind.REPEAT in kinds and items:
            items = items + [self._dice.choice(items) for _ in range(max(1, len(items) // 3))]
        if Kind.SHUFFLE in kinds:
            items = self._dice.sample(items, len(items))
        return items


def spoil(body: bytes, fired: list[Fault]) -> bytes:
    """Make of a body what the faults make of it."""
    for fault in fired:
        if fault.kind is Kind.BROKEN:
            body = body[: len(body) * 2 // 3]
        elif fault.kind is Kind.ENCODING:
            body = body.decode().encode("cp1251", "replace")
        elif fault.kind is Kind.EMPTY:
            body = b""
        elif fault.kind is Kind.PAGE:
            body = b"<!DOCTYPE html><html><head><title>One moment</title></head><body><p>Checking&hellip;</body></html>"
    return body


async def hang_up(receive: Receive) -> None:
    """End the connection without a word, as a crashed server does; uvicorn's own object knows the socket."""
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        await asyncio.sleep(0)  # the loop tells uvicorn that the connection is lost
