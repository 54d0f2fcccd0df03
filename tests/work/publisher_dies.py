"""Publishers that die, or fall asleep, at a chosen step: `python -m tests.work.publisher_dies` takes orders as `dies`.

The steps are: before each statement that stands alone and after it; before a transaction, before its commit and after
it; before a request, when its bytes have left, and when the answer has been read; before files are written into a
folder and after. A step is chosen by its number or by its name.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

from imprint import log
from imprint.engine import wire
from imprint.engine.queue import Job
from imprint.images.maker import Maker
from imprint.platforms import folder
from imprint.platforms.answer import Answer
from imprint.platforms.request import Request
from imprint.settings import load
from imprint.store.db import Database, open_database
from imprint.store.query import Link, Query
from imprint.work import publish
from imprint.work.derive import Deriver, bounds
from imprint.work.desk import Desk
from imprint.work.journal import Journal
from imprint.work.publish import Publisher
from imprint.work.reconcile import Reconciler
from imprint.work.vault import Vault
from tests.work.scene import disk

TOGETHER = ContextVar("TOGETHER", default=False)  # inside a transaction only its end is a step


class Steps:
    """Counts the steps; at the chosen one the process is killed, or put to sleep."""

    def __init__(self, fatal: int | str, ends: signal.Signals) -> None:
        self.taken: list[str] = []
        self._fatal = fatal
        self._ends = ends

    def take(self, name: str) -> None:
        """Take a step; one that comes again is numbered."""
        before = sum(each.partition(" #")[0] == name for each in self.taken)
        name = f"{name} #{before + 1}" if before else name
        self.taken.append(name)
        if self._fatal in (name, len(self.taken)):
            self._fatal = 0
            os.kill(os.getpid(), self._ends)


def watched(steps: Steps) -> None:
    """Make every step of this process count."""
    _statements(steps)
    _transactions(steps)
    _requests(steps)
    _files(steps)


def _statements(steps: Steps) -> None:
    def around(inner: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stepping(self: Query[Any], *given: Any) -> Any:
            if TOGETHER.get():
                return await inner(self, *given)
            steps.take(f"before {self.name}")
            done = await inner(self, *given)
            steps.take(f"after {self.name}")
            return done

        return stepping

    for name in ("all", "first", "run"):
        setattr(Query, name, around(getattr(Query, name)))


def _transactions(steps: Steps) -> None:
    transaction = Database.transaction

    @asynccontextmanager
    async def committing(self: Database, actor: str, reason: str = "") -> AsyncIterator[Link]:
        steps.take(f"before {reason}")
        inside = TOGETHER.set(True)
        try:
            async with transaction(self, actor, reason) as connection:
                yield connection
                steps.take(f"commit {reason}")
        finally:
            TOGETHER.reset(inside)
        steps.take(f"after {reason}")

    setattr(Database, "transaction", committing)  # noqa: B010 - a method of a frozen class


def _requests(steps: Steps) -> None:
    send, flush = wire.Sender.send, wire._Watched._flush

    async def sending(self: wire.Sender, request: Request, *given: Any) -> Answer:
        steps.take(f"before {request.what}")
        answer = await send(self, request, *given)
        steps.take(f"after {request.what}")
        return answer

    async def leaving(self: wire._Watched, *given: Any) -> None:
        size = self._size
        await flush(self, *given)
        if size:
            steps.take("left")

    setattr(wire.Sender, "send", sending)  # noqa: B010
    setattr(wire._Watched, "_flush", leaving)  # noqa: B010


def _files(steps: Steps) -> None:
    write, appear = folder._write, folder._appear

    async def writing(*given: Any) -> None:
        steps.take("before a file")
        await write(*given)
        steps.take("after a file")

    def appearing(*given: Any) -> Any:
        steps.take("before it appears")
        done = appear(*given)
        steps.take("after it has appeared")
        return done

    setattr(folder, "_write", writing)  # noqa: B010
    setattr(folder, "_appear", appearing)  # noqa: B010


async def obey(order: dict[str, Any]) -> list[str]:
    """Do what was ordered and give the steps it took."""
    steps = Steps(order["fatal"], signal.Signals[order["ends"]])
    if order["seconds"]:
        setattr(publish, "SEND", timedelta(seconds=order["seconds"]))  # noqa: B010 - the deadline of the one request
    if order["note"]:
        Path(order["note"]).write_text(str(os.getpid()))
    settings = load({"IMPRINT_HOME": order["home"], "IMPRINT_DATABASE_URL": order["url"]})
    async with open_database(order["url"], size=3) as database:
        stores = disk(settings)
        desk = Desk(
            database,
            Vault.of(settings),
            wire.Wire(),
            Deriver(database, stores, Maker(bounds(settings), 1), settings),
            Journal.of(settings.home),
            settings,
            actor="a mortal worker",
        )
        watched(steps)
        does = Publisher(desk).publish if order["do"] == "publish" else Reconciler(desk).reconcile
        await does(Job(order["do"], order["about"]))
    return steps.taken


def main() -> None:
    """Fork for every order: everything is imported once, and each child is a process that can be killed."""
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, json.dumps(asyncio.run(obey(json.loads(line)))).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as told:
            said = told.read()
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        sys.stdout.write(json.dumps({"killed": killed, "steps": json.loads(said or "[]"), "status": status}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    log.configure("json", "critical")  # the answers are on standard output
    main()
