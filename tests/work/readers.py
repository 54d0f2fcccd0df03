"""Readers: people who follow a series and are told of it at a real HTTP server; and a worker who tells them."""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from imprint.engine.courier import Courier
from imprint.engine.queue import Job
from imprint.settings import Settings, load
from imprint.sources.contract import Chapter
from imprint.store.db import Database
from imprint.work import target as targets
from imprint.work.notify import Notifier
from imprint.work.vault import Vault
from tests.work.reconnecting import reconnect
from tests.work.serials import add_series, add_source, chapter, follow, take_in

ADA = "ada"
SERIES = "The lighthouse"


@dataclass
class Receiver:
    """A server that keeps what it is sent, and answers as it is told."""

    port: int = 0
    status: int = 200
    heard: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    calls: int = 0
    may_answer: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Give the address at which Apprise reaches it."""
        return f"json://127.0.0.1:{self.port}/inbox"

    @property
    def bodies(self) -> list[str]:
        """Give the texts of the messages that it took."""
        return [each["message"] for each in self.heard]


class _Server(ThreadingHTTPServer):
    """A server that many may call at the same moment."""

    daemon_threads = True
    request_queue_size = 128


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver in a thread of its own."""
    receiver = Receiver()
    receiver.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Take a message."""
            receiver.calls += 1
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.raw.append(raw)
            receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
            body = json.loads(raw)
            if receiver.status == 200:
                receiver.heard.append(body)
            receiver.may_answer.wait(30)
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


def settings_of(home: Path, port: int, **more: str) -> Settings:
    """Make settings that let the receiver be told, at once."""
    return load(
        {
            "IMPRINT_HOME": str(home),
            "IMPRINT_ALLOWED_HOSTS": f"127.0.0.1:{port}",
            "IMPRINT_NOTICE_WINDOW_SECONDS": "0",
            **more,
        }
    )


@dataclass
class Readers:
    """A series, its readers, and whoever tells them."""

    database: Database
    settings: Settings
    receiver: Receiver
    courier: Courier
    vault: Vault
    series: UUID
    source: UUID

    @property
    def notifier(self) -> Notifier:
        """Give a worker's notifier, who never waits before another attempt."""
        return Notifier(self.database, self.vault, self.courier, self.settings, roll=lambda: 0.0)

    async def reader(self, person: str = ADA, *, digest: str = "off", url: str | None = None) -> UUID:
        """Let a person follow the series and be told."""
        async with self.database.connection() as connection:
            await follow(connection, self.series, person)
        return await self.target(person, digest=digest, url=url)

    async def target(self, person: str = ADA, *, digest: str = "off", url: str | None = None) -> UUID:
        """Give a person one more target; they look after the machine, or nothing of theirs would go to this one."""
        async with self.database.connection() as connection:
            await connection.execute(
                "INSERT INTO person (id, name, password_hash, role) VALUES ($1, $1, '$argon2id$', 'administrator') "
                "ON CONFLICT DO NOTHING",
                person,
            )
        address = SecretStr(url or self.receiver.url)
        made = await targets.add(self.database, self.vault, self.courier, person, address, digest=digest)
        return made.id

    async def news(self, *names: str | Chapter) -> None:
        """Let chapters be found, and their notices be put into messages."""
        await take_in(self.database, self.series, self.source, [_readable(each) for each in names])
        await self.gather()

    async def gather(self) -> None:
        """Deliver the job that puts notices into messages."""
        await self.notifier.notify(Job("notify", str(self.series)))

    async def due(self) -> list[int]:
        """Give the deliveries that the clock would hand over now."""
        async with self.database.connection() as connection:
            rows = await connection.fetch(
                "SELECT id FROM delivery WHERE wake_at <= imprint_now() AND ended_at IS NULL AND failed_at IS NULL "
                "ORDER BY id"
            )
        return [row[0] for row in rows]

    async def deliver(self) -> None:
        """Deliver everything that is due, once."""
        for each in await self.due():
            await self.notifier.deliver(Job("deliver", str(each)))

    async def value(self, sql: str, *values: object) -> Any:
        """Read one value."""
        async with self.database.connection() as connection:
            return await connection.fetchval(sql, *values)

    async def pass_time(self, ahead: timedelta) -> None:
        """Move the database's clock to so far ahead of the real one."""
        async with self.database.connection() as connection:
            name = await connection.fetchval("SELECT current_database()")
            await connection.execute(f"ALTER DATABASE {name} SET imprint.clock_offset = '{ahead.total_seconds()} s'")
        await reconnect(self.database)


def _readable(each: str | Chapter) -> Chapter:
    return chapter(each, url=f"https://read.example/{each.removeprefix('Chapter ')}") if isinstance(each, str) else each


@asynccontextmanager
async def readers(database: Database, home: Path, **more: str) -> AsyncIterator[Readers]:
    """Set the scene up."""
    with receiving() as receiver:
        settings = settings_of(home, receiver.port, **more)
        async with database.connection() as connection:
            series = await add_series(connection, SERIES)
            source = await add_source(connection, series)
        courier = targets.courier(settings)
        try:
            yield Readers(database, settings, receiver, courier, Vault.of(settings), series, source)
        finally:
            await courier.close()
