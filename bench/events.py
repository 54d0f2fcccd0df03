"""`python -m bench.events [--quick]`: a thousand open event streams: what they weigh, and how late they are told.

The server is a process of its own; the delay is from the return of a commit until the event was read from a socket.
"""

import argparse
import asyncio
import os
import random
import signal
import socket
import sys
import tempfile
from dataclasses import dataclass, field
from time import perf_counter

import psutil

from bench.cluster import DISK, cluster
from bench.figures import latency, show
from imprint.store.db import Database, open_database
from imprint.store.migrate import migrate
from imprint.work import api_key

PEOPLE = 100
SCOPES = ("posts:read",)
GAP = 0.02
PATIENCE = 30.0


@dataclass
class Reader:
    """One open stream."""

    owner: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    arrived: dict[str, float] = field(default_factory=dict)

    async def read(self) -> None:
        """Note when each event arrives."""
        while line := await self.reader.readline():
            if line.startswith(b'data: {"id": "'):
                self.arrived[line[14:50].decode()] = perf_counter()


async def measure(streams: int, events: int) -> None:
    """Open the streams, make events, and print what it took."""
    async with cluster() as server:
        url = await server.database("events")
        await migrate(url)
        home = tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK)
        port = _free_port()
        environment = {**os.environ, "IMPRINT_HOME": home, "IMPRINT_DATABASE_URL": url, "IMPRINT_PORT": str(port)}
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "imprint", "api", env=environment)
        try:
            async with open_database(url) as database:
                secrets = await _people(database)
                await _answers(port)
                first = await _open(port, *secrets[0])  # loads the web framework, which is not what a stream weighs
                before = _weight(process.pid)
                readers = [await _open(port, *secrets[number % PEOPLE]) for number in range(streams)]
                reading = [asyncio.create_task(each.read()) for each in (first, *readers)]
                await asyncio.sleep(1)
                weight = _weight(process.pid)
                delays, lost = await _tell(database, readers, events)
                began = perf_counter()
                process.send_signal(signal.SIGTERM)
                await process.wait()
                stopped = perf_counter() - began
                await asyncio.gather(*reading)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    show(
        {
            "streams": streams,
            "people": PEOPLE,
            "events": events,
            "deliveries": len(delays),
            "lost": lost,
            **latency(delays, "commit_to_arrival_"),
            "slowest_ms": round(max(delays), 3),
            "wanted_p99_ms": 100,
            "server_mb_before": round(before, 1),
            "server_mb_with_streams": round(weight, 1),
            "kb_per_stream": round((weight - before) * 1024 / streams, 1),
            "stop_with_streams_s": round(stopped, 2),
        },
        {},
    )


async def _people(database: Database) -> list[tuple[str, str]]:
    """Make people, and a key for each."""
    made = []
    for number in range(PEOPLE):
        name = f"person-{number}"
        async with database.connection() as connection:
            await connection.execute(
                "INSERT INTO person (id, name, password_hash, role) VALUES ($1, $1, '$argon2id$', 'administrator')",
                name,
            )
        made.append((name, (await api_key.add(database, name, name, "bench", SCOPES)).secret))
    return made


async def _open(port: int, owner: str, secret: str) -> Reader:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()
    )
    async with asyncio.timeout(PATIENCE):
        status = await reader.readline()
        if b" 200 " not in status:
            raise SystemExit(f"no stream: {status!r}")
        while b"retry" not in await reader.readline():
            pass
    return Reader(owner, reader, writer)


async def _tell(database: Database, readers: list[Reader], events: int) -> tuple[list[float], int]:
    """Commit one event after the other, and give how many milliseconds each took to each of its readers."""
    committed: dict[str, tuple[str, float]] = {}
    owners = sorted({each.owner for each in readers})
    for number in range(events):
        owner = owners[number % len(owners)]
        async with database.connection() as connection:
            made = await connection.fetchval("INSERT INTO post (title, owner) VALUES ('x', $1) RETURNING id", owner)
        committed[str(made)] = (owner, perf_counter())
        await asyncio.sleep(random.uniform(0.5, 1.5) * GAP)
    await asyncio.sleep(2)
    delays, lost = [], 0
    for key, (owner, moment) in committed.items():
        for each in readers:
            if each.owner == owner:
                arrived = each.arrived.get(key)
                lost += arrived is None
                if arrived is not None:
                    delays.append(max(arrived - moment, 0) * 1000)
    return delays, lost


async def _answers(port: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def _weight(process: int) -> float:
    return float(psutil.Process(process).memory_full_info().uss) / 2**20


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer events, the same streams")
    chosen = parser.parse_args()
    asyncio.run(measure(1000, 100 if chosen.quick else 1000))
