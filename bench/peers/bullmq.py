"""BullMQ (Node, Redis) as a peer: our own small script drives it, this wrapper starts Redis and sums up."""

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import asyncpg

from bench.figures import ROUNDS, latency, rate
from bench.peers.redis import DEFAULT, DURABLE, TUNED, Setup, installed, redis
from bench.pickup import GAP_MS, PICKUPS

SOURCE = Path(__file__).parent / "bullmq"
FILES = ("package.json", "package-lock.json", "measure.js", "publish.js")
# Where node_modules is kept; Node finds packages only beside the script, so the script is copied there.
HOME_VARIABLE = "BENCH_BULLMQ_HOME"
# The best of 1, 10, 50 and 100 here; BullMQ's default is 1, which drains at a third of the rate.
CONCURRENCY = 50
# A lost job must not hang the bench; nobody adds or drains slower than this.
GIVES_UP = 120.0
SLOWEST_PER_S = 500
SLOWEST_PUBLISHED_PER_S = 20
# Published before the clock runs, so that connections are open and code is compiled.
WARM = 100


def home() -> Path:
    """Say where BullMQ is installed, or would be."""
    return Path(os.environ.get(HOME_VARIABLE) or SOURCE).absolute()


def available() -> str | None:
    """Say what is missing as "not installed: …", or None when BullMQ can be measured."""
    missing = []
    if shutil.which("node") is None:
        missing.append("node 20 or newer (Debian: apt-get install nodejs npm)")
    if not installed():
        missing.append("redis-server (Debian: apt-get install redis-server)")
    if not all((home() / "node_modules" / name / "package.json").exists() for name in ("bullmq", "pg")):
        missing.append("npm's bullmq and pg (python -m bench.peers)")
    return f"not installed: {', '.join(missing)}" if missing else None


async def install() -> None:
    """Install the pinned versions with `npm ci`; no package's own script is run."""
    if shutil.which("npm") is None:
        raise RuntimeError("npm is missing; on Debian: apt-get install nodejs npm")
    _copy_source()
    npm = await asyncio.create_subprocess_exec(
        *("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
        cwd=home(),
        stdout=asyncio.subprocess.DEVNULL,
    )
    if await npm.wait() != 0:
        raise RuntimeError("npm could not install BullMQ; what it said stands above")


async def drift(future: int, due: int, seconds: float, *, extra: Sequence[Setup] = (TUNED,)) -> dict[str, object]:
    """Measure how late delayed jobs start, with many far-future ones in the same queue."""
    asked = {"mode": "drift", "future": future, "due": due, "seconds": seconds, "concurrency": CONCURRENCY}

    async def once(setup: Setup) -> dict[str, object]:
        said = await _measure(setup, asked, GIVES_UP + seconds + future / SLOWEST_PER_S)
        return {**latency(said["late_ms"]), "redis": setup.sentence}

    return {**await once(DEFAULT), **{setup.name: await once(setup) for setup in extra}}


async def engine(
    jobs: int, concurrency: int = CONCURRENCY, *, extra: Sequence[Setup] = (DURABLE,)
) -> dict[str, object]:
    """Measure how many no-op jobs a second are added and drained, and how soon an idle worker picks one up."""
    asked = {"mode": "engine", "jobs": jobs, "rounds": ROUNDS, "concurrency": concurrency}
    asked |= {"pickups": PICKUPS, "gap_ms": GAP_MS}

    async def once(setup: Setup) -> dict[str, object]:
        said = await _measure(setup, asked, GIVES_UP + 2 * ROUNDS * jobs / SLOWEST_PER_S)
        return {
            **rate(jobs, said["enqueue_s"], "enqueue"),
            **rate(jobs, said["drain_s"], "drain"),
            **latency(said["pickup_ms"], "pickup_"),
            "concurrency": concurrency,
            "redis": setup.sentence,
        }

    return {**await once(DEFAULT), **{setup.name: await once(setup) for setup in extra}}


async def publish(
    dsn: str, url: str, tokens: Sequence[str], file: Path, jobs: int, concurrency: int, *, setup: Setup = DEFAULT
) -> float:
    """Publish with a careful worker (publish.js) and return the seconds from its start to its last completion.

    It has tables of its own in an empty database of the same PostgreSQL, where every update is a durable commit.
    """
    warm = min(jobs, WARM)
    await _plan(dsn, jobs + warm, len(tokens))
    asked = {
        "postgres": _parts(dsn),
        "url": url,
        "tokens": list(tokens),
        "file": str(file),
        "warm": warm,
        "concurrency": concurrency,
    }
    said = await _measure(setup, asked, GIVES_UP + jobs / SLOWEST_PUBLISHED_PER_S, "publish.js")
    connection = await asyncpg.connect(dsn)
    try:
        done = await connection.fetchval(
            "SELECT count(*) FROM publication WHERE status = 'success' AND intent_at IS NOT NULL"
        )
    finally:
        await connection.close()
    if said["jobs"] != jobs or done != jobs + warm:
        raise RuntimeError(f"of {jobs + warm} publications BullMQ's worker finished {done}")
    return float(said["seconds"])


async def _plan(dsn: str, count: int, accounts: int) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            """
            DROP TABLE IF EXISTS publication;
            CREATE TABLE publication (
                id uuid PRIMARY KEY DEFAULT gen_random_uuid(), account integer NOT NULL, title text NOT NULL,
                description text NOT NULL, tags text[] NOT NULL, status text NOT NULL DEFAULT 'pending',
                attempts integer NOT NULL DEFAULT 0, started_at timestamptz, item text, intent_at timestamptz,
                remote_id text, url text, ended_at timestamptz);
            CREATE INDEX publication_pending ON publication (status) WHERE status = 'pending';
            """
        )
        await connection.execute(
            "INSERT INTO publication (account, title, description, tags)"
            " SELECT i % $2::int, 'Harbour ' || i, 'Ink.', '{harbour,ink}' FROM generate_series(1, $1::int) i",
            count,
            accounts,
        )
        await connection.execute("VACUUM ANALYZE publication")
    finally:
        await connection.close()


def _parts(dsn: str) -> dict[str, object]:
    """Take a URL apart as Node's pg wants it: the folder of the socket is the host."""
    parts = urlsplit(dsn)
    query = dict(parse_qsl(parts.query))
    return {
        "host": query["host"],
        "port": int(query["port"]),
        "user": parts.username or parts.netloc.rstrip("@"),
        "database": parts.path.lstrip("/"),
    }


async def _measure(
    setup: Setup, asked: dict[str, object], gives_up: float, script: str = "measure.js"
) -> dict[str, Any]:
    """Run a script once on a fresh Redis and return what it said."""
    _copy_source()
    async with redis(setup) as port:
        node = await asyncio.create_subprocess_exec(
            *("node", script, json.dumps({**asked, "port": port})),
            cwd=home(),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(gives_up):
                said, _ = await node.communicate()
        finally:
            with suppress(ProcessLookupError):
                node.kill()
        if node.returncode != 0:
            raise RuntimeError("BullMQ could not be measured; what Node said stands above")
    figures: dict[str, Any] = json.loads(said)
    return figures


def _copy_source() -> None:
    """Put our script and its pinned versions beside node_modules when that is kept elsewhere."""
    if home() != SOURCE:
        home().mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copyfile(SOURCE / name, home() / name)
