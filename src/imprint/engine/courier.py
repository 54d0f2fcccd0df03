"""The courier: sends messages to the addresses of Apprise, in a child process that is there only while there is work.

Apprise blocks, takes 50 MB, and a service that answers one byte at a time can keep it for ever. In a child it cannot
stop our heartbeats, its memory goes back when nothing is left to send, and what is late is ended.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import structlog

from imprint.problem import Problem, Unavailable

log = structlog.get_logger()

THREADS = 16
SECONDS = 30.0  # for one message, what a service makes us wait included
START_SECONDS = 30.0
IDLE_SECONDS = 20.0
LAST_SECONDS = 1.0
LONGEST_ANSWER = 1 << 16
# All it gets: our own environment holds secrets and may name a proxy, past which addresses could not be vetted.
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "NETRC": "/dev/null", "NO_PROXY": "*"}


class NotSent(Problem):
    """A message that did not arrive, or an address that cannot be used; the sentence says why."""


@dataclass(eq=False)
class _Child:
    """One child and the orders it has not answered."""

    process: asyncio.subprocess.Process
    waiting: dict[int, "asyncio.Future[dict[str, Any]]"] = field(default_factory=dict)
    reading: "asyncio.Task[None] | None" = None
    tired: bool = False  # one of its threads hangs: it gets no more orders
    ended: bool = False

    @property
    def alive(self) -> bool:
        """Say whether it can be given an order."""
        return not self.tired and not self.ended and self.process.returncode is None

    def end(self) -> None:
        """End it at once, if nobody has done so."""
        if not self.ended:
            self.ended = True
            with suppress(ProcessLookupError):
                self.process.kill()

    async def read(self) -> None:
        """Hand its answers to those who wait, until it is gone."""
        assert self.process.stdout  # noqa: S101 - it was started with one
        with suppress(ValueError, OSError):  # a line without an end, or a pipe that broke
            while line := await self.process.stdout.readline():
                answer = json.loads(line)
                if (waiter := self.waiting.pop(int(answer["id"]), None)) and not waiter.done():
                    waiter.set_result(answer)
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self.process.wait()
        except TimeoutError:  # it closed its end and lives on
            self.end()
            await self.process.wait()
        for waiter in self.waiting.values():
            if not waiter.done():
                waiter.set_exception(NotSent("notice.courier_died", "The process that sends messages died."))
        self.waiting.clear()


class Courier:
    """Sends messages; `close` it, or let its process end by itself when it has been idle."""

    def __init__(
        self,
        allowed: frozenset[str] = frozenset(),
        *,
        seconds: float = SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._allowed = allowed
        self._seconds = seconds
        self._idle_seconds = idle_seconds
        self._child: _Child | None = None
        self._children: set[_Child] = set()  # those that end included
        self._starting = asyncio.Lock()
        self._numbers = count(1)
        self._idle: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """Give the process id of the child, if there is one."""
        return self._child.process.pid if self._child and self._child.alive else None

    async def look(self, url: str) -> str:
        """Give the name of the service an address belongs to; raise NotSent when it cannot be used."""
        answer = await self._ask({"do": "look", "url": url})
        if not answer["ok"]:
            raise NotSent("notice.bad_target", f"This address cannot be used: {answer['error']}.")
        return str(answer["service"])

    async def send(self, url: str, title: str, body: str, *, trusted: bool) -> None:
        """Send one message; raise NotSent when it did not arrive, or nobody can tell.

        Only for somebody trusted it goes to the private hosts that are allowed.
        """
        answer = await self._ask({"do": "send", "url": url, "title": title, "body": body, "trusted": trusted})
        if not answer["ok"]:
            raise NotSent("notice.not_sent", str(answer["error"]))

    async def close(self) -> None:
        """End the child, and wait for those that are ending."""
        self._child = None
        if self._idle is not None:
            self._idle.cancel()
        for child in self._children:
            child.end()
        await asyncio.gather(*(child.reading for child in self._children if child.reading))

    async def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        child = await self._ready()
        number = next(self._numbers)
        waiter: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        child.waiting[number] = waiter
        try:
            assert child.process.stdin  # noqa: S101 - it was started with one
            child.process.stdin.write(json.dumps({"id": number, **order}).encode() + b"\n")
            async with asyncio.timeout(self._seconds):
                return await waiter
        except TimeoutError:
            child.tired = True
            raise NotSent("notice.too_slow", f"There was no answer within {self._seconds:g} seconds.") from None
        except OSError:
            raise NotSent("notice.courier_died", "The process that sends messages died.") from None
        finally:
            child.waiting.pop(number, None)
            self._rest(child)

    def _rest(self, child: _Child) -> None:
        """Let a child go that hangs and has nothing else to do; one that is well stays for a while."""
        if child.waiting:
            return
        if child.tired:
            child.end()
        elif child is self._child:
            if self._idle is not None:
                self._idle.cancel()
            self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._dismiss, child)

    def _dismiss(self, child: _Child) -> None:
        if child is self._child and not child.waiting:
            self._child = None
            child.end()

    async def _ready(self) -> _Child:
        async with self._starting:
            if self._idle is not None:
                self._idle.cancel()
            if self._child is None or not self._child.alive:
                self._child = await self._start()
            return self._child

    async def _start(self) -> _Child:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "imprint.engine.courier_child"),
                *(json.dumps(sorted(self._allowed)), str(THREADS)),
                env=ENVIRONMENT,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what a library prints there may quote an address
                start_new_session=True,
                limit=LONGEST_ANSWER,
            )
        except OSError as error:
            raise Unavailable("notice.no_courier", "The process that sends messages cannot be started.") from error
        child = _Child(process)
        ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        child.waiting[0] = ready
        child.reading = asyncio.create_task(child.read())
        self._children.add(child)
        child.reading.add_done_callback(lambda _: self._children.discard(child))
        try:
            async with asyncio.timeout(START_SECONDS):
                await ready
        except (TimeoutError, NotSent) as error:
            child.end()
            log.warning("the process that sends messages did not start", exit_code=process.returncode)
            raise Unavailable("notice.no_courier", "The process that sends messages does not start.") from error
        return child
