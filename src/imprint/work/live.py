"""Live: tells those who watch what changes, as it commits; one connection to the database for a whole process.

As long as somebody watches, the database rings, once for each transaction. Then everything new is read in one statement
for everybody and handed to the streams of those whose it is. A stream that cannot keep up is cut: whoever reads it
comes back and says how far it came, and is told what it missed.
"""

import asyncio
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from uuid import UUID, uuid4

import asyncpg
import structlog

from imprint.decisions.retry import pause
from imprint.decisions.watermark import LAST, Watermark
from imprint.problem import Problem
from imprint.store.db import GONE, TROUBLE, Database
from imprint.store.query import Connection, Link
from imprint.work.event import (
    BEGIN,
    BOUND,
    KINDS,
    LISTEN,
    READ,
    UNLISTEN,
    Line,
    Position,
    reset,
    sees,
    written,
)

log = structlog.get_logger()

CHANNEL = "imprint_events"
LONGEST_SLEEP = 15.0  # should a ring ever be missed, this is how late its news can be
LISTENS = timedelta(minutes=1)  # longer than it sleeps: a sign of life comes before that is over
IDLE_SECONDS = 60.0  # after so long without anybody who watches, nobody rings any more
SETTLING_SLEEP = 0.05
SETTLING_SECONDS = 2.0
REACHING_LOOKS = 10
PAGE = 2000
MOST_MISSED = 2000  # whoever missed more loads everything anew
MOST_WAITING = 256
MOST_STREAMS = 2000
MOST_OF_PERSON = 100


@dataclass(eq=False)
class Stream:
    """What one watcher is told, in order; `over` when there will be no more."""

    owner: str
    lifecycles: frozenset[str]
    early: bool = False  # opened before it was sure that nothing is missed
    over: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: "asyncio.Queue[tuple[int, bytes]]" = field(default_factory=lambda: asyncio.Queue(MOST_WAITING))
    caught_up: set[int] = field(default_factory=set)

    def wants(self, line: Line) -> bool:
        """Say whether something is for this watcher."""
        return line.owner == self.owner and line.lifecycle in self.lifecycles

    def tell(self, number: int, text: bytes) -> None:
        """Hand something over; a reader who does not keep up is cut off, and not waited for."""
        try:
            self.waiting.put_nowait((number, text))
        except asyncio.QueueFull:
            self.over.set()

    async def next(self, seconds: float) -> bytes | None:
        """Give what is next, all that waits at once; None when there was nothing for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                told = [await self.waiting.get()]
                while not self.waiting.empty():
                    told.append(self.waiting.get_nowait())
                return b"".join(text for number, text in told if number not in self.caught_up)
        return None


class Live:
    """Everybody who watches, in one process; it listens as long as somebody does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._streams: dict[str, set[Stream]] = {}
        self._count = 0
        self._watermark: Watermark | None = None
        self._place = ""
        self._settles_after = 0
        self._oldest = 0
        self._wanted_at = 0.0
        self._settled = asyncio.Event()
        self._rung = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def count(self) -> int:
        """Say how many watch."""
        return self._count

    async def position(self) -> Position | None:
        """Say how far everything is told by now; None when that cannot be said yet.

        Whoever loads what is there after this, and watches from here on, misses nothing.
        """
        self._wanted_at = monotonic()
        self._listen()
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLING_SECONDS):
                await self._settled.wait()
        return self._at() if self._settled.is_set() else None

    async def open(self, owner: str, scopes: frozenset[str], after: str | None = None) -> tuple[Stream, bytes]:
        """Begin to tell somebody what changes, and give what they missed since a position."""
        if self._closed:
            raise Problem("events.closing", "Imprint is stopping.")
        if self._count >= MOST_STREAMS or len(self._streams.get(owner, ())) >= MOST_OF_PERSON:
            raise Problem("events.too_many", "Too many pages and programs are watching already.")
        at = await self.position()
        stream = Stream(owner, sees(scopes), early=at is None)
        self._streams.setdefault(owner, set()).add(stream)
        self._count += 1
        try:
            return stream, await self._missed(stream, after, at)
        except BaseException:
            self.leave(stream)
            raise

    def leave(self, stream: Stream) -> None:
        """Tell somebody nothing any more."""
        stream.over.set()
        of_owner = self._streams.get(stream.owner, set())
        if stream in of_owner:
            of_owner.remove(stream)
            self._count -= 1
        if not of_owner:
            self._streams.pop(stream.owner, None)

    def end_with(self, stop: asyncio.Event) -> None:
        """End every stream when that happens."""

        async def end() -> None:
            await stop.wait()
            await self.close()

        if self._ending is None:
            self._ending = asyncio.create_task(end())

    async def close(self) -> None:
        """End every stream; there will be no new ones."""
        self._closed = True
        for stream in list(self._all()):
            stream.over.set()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    def at(self) -> Position | None:
        """Say how far everything was handed over, if that is sure."""
        return self._at() if self._settled.is_set() else None

    def _at(self, number: int = LAST) -> Position:
        assert self._watermark  # noqa: S101 - once it has settled it is there
        return Position(self._place, min(self._watermark.settled, number))

    async def _missed(self, stream: Stream, after: str | None, at: Position | None) -> bytes:
        """Read what somebody missed since they last heard; everything is to be loaded anew when that is too much."""
        if after is None or at is None:
            return b""  # not sure yet: this stream is told to load anew as soon as it is
        since = Position.read(after)
        if since is None or since.place != at.place or not await self._reaches(since.number):
            return reset(at)
        async with self._database.connection() as connection:
            lines = await READ.all(connection, [since.number + 1], [LAST], MOST_MISSED + 1, [stream.owner])
        if lines[0].old or len({line.id for line in lines}) > MOST_MISSED:
            return reset(at)
        mine = {line.id: line for line in lines if line.id and stream.wants(line)}
        stream.caught_up = set(mine)
        return b"".join(written(line, Position(at.place, min(at.number, number))) for number, line in mine.items())

    async def _reaches(self, number: int) -> bool:
        """Wait a moment until this process has read as far as another one had; False when it does not come to that."""
        assert self._watermark  # noqa: S101 - as above
        for _ in range(REACHING_LOOKS):
            if self._watermark.newest >= number:
                return True
            self._rung.set()
            await asyncio.sleep(SETTLING_SLEEP)
        return False

    def _listen(self) -> None:
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Listen until nobody has watched for a while, through any outage of the database."""
        failures, listener = 0, uuid4()
        while not self._closed:
            try:
                connection = await asyncpg.connect(
                    self._database.url, server_settings={"application_name": "imprint events"}
                )
                try:
                    connection.add_termination_listener(lambda _: self._rung.set())
                    await connection.add_listener(CHANNEL, lambda *_: self._rung.set())
                    await LISTEN.run(connection, listener, LISTENS)
                    await self._begin(connection)
                    failures = 0
                    await self._watch(connection, listener)
                    with suppress(*TROUBLE):  # then its minute ends by itself
                        await UNLISTEN.run(connection, listener)
                    return
                finally:
                    await _close(connection)
            except TROUBLE as error:
                failures += 1
                log.warning("the database does not serve; those who watch wait", error=type(error).__name__)
                wait = pause(failures, random.uniform(0.5, 1), longest=timedelta(seconds=5))  # noqa: S311
                await asyncio.sleep(wait.total_seconds())

    async def _begin(self, connection: Link) -> None:
        """Find where to begin; after an outage go on where it was, unless this is another database now.

        Whatever began before this does not ring, and is looked for until all of it has ended.
        """
        begin = await BEGIN.one(connection)
        self._settles_after = begin.following
        if self._watermark is not None and begin.place == self._place and begin.newest >= self._watermark.newest:
            return
        self._settled.clear()
        for stream in self._all():
            stream.early = True
        self._watermark, self._place = Watermark(begin.newest), begin.place

    async def _watch(self, connection: Link, listener: UUID) -> None:
        """Read whenever it rings, until nobody has watched for a while."""
        said_at = monotonic()
        while True:
            self._rung.clear()
            while await self._read(connection):
                pass
            sleep = LONGEST_SLEEP if self._oldest >= self._settles_after else SETTLING_SLEEP
            with suppress(TimeoutError):
                async with asyncio.timeout(sleep):
                    await self._rung.wait()
            now = monotonic()
            if self._count:
                self._wanted_at = now
            elif now - self._wanted_at > IDLE_SECONDS:
                self._rest()
                return
            if now - said_at >= LONGEST_SLEEP:
                await LISTEN.run(connection, listener, LISTENS)
                if now - said_at >= LISTENS.total_seconds():  # meanwhile nobody rang
                    self._settles_after = (await BOUND.one(connection)).following
                said_at = now

    def _rest(self) -> None:
        """Forget how far it was read; whoever comes next begins anew."""
        self._listening = None
        self._watermark = None
        self._settled.clear()

    async def _read(self, connection: Link) -> bool:
        """Read what is new and hand it over; say whether there may be more."""
        assert self._watermark  # noqa: S101 - this comes after the beginning
        spans = self._watermark.spans
        firsts, lasts = [first for first, _ in spans], [last for _, last in spans]
        lines = await READ.all(connection, firsts, lasts, PAGE, list(self._streams))
        numbers = sorted({line.id for line in lines if line.id})
        self._oldest = lines[0].oldest
        more = self._watermark.read(numbers, PAGE, self._oldest)
        if not self._settled.is_set() and self._oldest >= self._settles_after:
            self._settle()
        elif self._settled.is_set():  # before that, nobody could say how far they have read
            self._tell(lines)
        if self._watermark.boundless:
            self._watermark.bound((await BOUND.one(connection)).following)
        return more

    def _tell(self, lines: Iterable[Line]) -> None:
        for line in lines:
            if line.id is None or line.owner not in self._streams or line.lifecycle not in KINDS:
                continue
            text = written(line, self._at(line.id))
            for stream in self._streams[line.owner]:
                if stream.wants(line):
                    stream.tell(line.id, text)

    def _settle(self) -> None:
        """From now on nothing is missed; whoever came before may have."""
        self._settled.set()
        for stream in self._all():
            if stream.early:
                stream.early = False
                stream.tell(0, reset(self._at()))

    def _all(self) -> Iterable[Stream]:
        return (stream for of_owner in list(self._streams.values()) for stream in list(of_owner))


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=5)
    except GONE:
        connection.terminate()
