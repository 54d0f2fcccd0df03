"""A nursery: forks workers that are doomed to die, or to fall asleep, at a chosen kill point.

Everything is imported once, so that a worker costs a fork and not a start; what it runs is `imprint worker` all the
same. Nobody lives longer than the proof: when that ends, however it ends, the nursery ends everybody.
"""

import asyncio
import gc
import importlib
import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imprint import killpoint
from imprint.settings import PREFIX

Work = Callable[[list[str]], int]

LOOKS_EVERY = 0.02
CHUNK = 65_536
# What a worker would otherwise import when it first needs it, each for itself.
LATE = ("uvloop", "anyio._backends._asyncio")


@dataclass(frozen=True)
class Doom:
    """Where a worker ends: at the so-manieth passing of a point, killed or put to sleep."""

    point: str
    passing: int = 1
    ends: signal.Signals = signal.SIGKILL


@dataclass
class Nursery:
    """The process that forks, seen from the proof."""

    pid: int
    orders: int
    reports: int
    lifeline: int

    def bear(self, number: int, arguments: Sequence[str], environment: Mapping[str, str], doom: Doom | None) -> None:
        """Order a worker; that it is born, ends and passes its point comes back as a report with its number."""
        told = None if doom is None else {"point": doom.point, "passing": doom.passing, "ends": int(doom.ends)}
        order = {"number": number, "arguments": list(arguments), "environment": dict(environment), "doom": told}
        os.write(self.orders, json.dumps(order).encode() + b"\n")

    def send(self, number: int, kind: signal.Signals) -> None:
        """Have a signal sent to a worker: only its parent knows that its pid is not somebody else's by now."""
        os.write(self.orders, json.dumps({"number": number, "signal": int(kind)}).encode() + b"\n")

    async def listen(self, heard: Callable[[dict[str, Any]], None]) -> None:
        """Hand every report over, until the nursery ends."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(self.reports), "rb", 0)
        )
        try:
            while line := await reader.readline():
                heard(json.loads(line))
        finally:
            transport.close()

    def close(self) -> None:
        """End the nursery and everybody in it."""
        for descriptor in (self.orders, self.lifeline):
            os.close(descriptor)
        os.waitpid(self.pid, 0)
        os.close(self.reports)


def open_nursery(work: Work, log: Path) -> Nursery:
    """Fork the nursery; call it while this process has neither threads nor a loop. `log` takes what workers say."""
    orders, reports, lifeline = os.pipe(), os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for ours in (orders[1], reports[0], lifeline[1]):
                os.close(ours)
            os.setsid()  # Ctrl-C is for the proof, which then ends us
            _Nurse(work, log, orders[0], reports[1], lifeline[0]).run()
        finally:
            os._exit(1)
    for theirs in (orders[0], reports[1], lifeline[0]):
        os.close(theirs)
    return Nursery(pid, orders[1], reports[0], lifeline[1])


class _Nurse:
    """The nursery, seen from inside."""

    def __init__(self, work: Work, log: Path, orders: int, reports: int, lifeline: int) -> None:
        self._work, self._log = work, log
        self._orders, self._reports, self._lifeline = orders, reports, lifeline
        self._born: dict[int, int] = {}

    def run(self) -> None:
        for module in LATE:
            importlib.import_module(module)
        gc.freeze()  # what is shared with every child stays so
        left = b""
        while True:
            ready, _, _ = select.select([self._orders], [], [], LOOKS_EVERY)
            self._reap()
            if not ready:
                continue
            if not (data := os.read(self._orders, CHUNK)):
                break
            *lines, left = (left + data).split(b"\n")
            for line in lines:
                self._obey(json.loads(line))
        for pid in self._born:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)

    def _obey(self, order: dict[str, Any]) -> None:
        if "signal" not in order:
            self._bear(order)
            return
        for pid, number in self._born.items():  # whoever is in here has not been reaped, so its number is its own
            if number == order["number"]:
                os.kill(pid, order["signal"])

    def _bear(self, order: dict[str, Any]) -> None:
        if (pid := os.fork()) == 0:
            try:
                self._live(order)
            finally:
                os._exit(1)
        self._born[pid] = order["number"]
        self._report(born=pid, number=order["number"])

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                self._report(ended=pid, number=self._born.pop(pid), signal=status & 0x7F, code=status >> 8)

    def _live(self, order: dict[str, Any]) -> None:
        said = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for descriptor, place in ((self._lifeline, 0), (said, 1), (said, 2)):
            os.dup2(descriptor, place)
        os.close(self._orders)
        random.seed()
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            del os.environ[name]
        os.environ.update(order["environment"])
        if order["doom"] is not None:
            self._doom(order["number"], **order["doom"])
        code = self._work(order["arguments"])
        sys.stderr.flush()
        os._exit(code)

    def _doom(self, number: int, point: str, passing: int, ends: int) -> None:
        left = passing

        def passed(name: str) -> None:
            nonlocal left
            left -= name == point
            if name == point and left == 0:
                self._report(hit=point, number=number, ends=ends)
                os.kill(os.getpid(), ends)

        killpoint.watch(passed)

    def _report(self, **told: object) -> None:
        # Shorter than what a pipe takes at once, so that those of many processes never mix.
        os.write(self._reports, json.dumps({**told, "at": time.time()}).encode() + b"\n")
