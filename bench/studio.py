"""A studio: Imprint with many accounts at the sandbox, posts with a small image each, and workers that publish them.

Rows are written by SQL, past the triggers where those only keep an audit of the making; what a worker meets is the same
as after a thousand visits of the command line: sealed sign-ins, verified objects on the disk, publications of its own.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg

from imprint.engine.roster import WORKERS
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.settings import Settings, load
from imprint.store.db import Database, open_database
from imprint.store.migrate import migrate
from imprint.store.query import Connection
from imprint.work.vault import Vault

OWNER = "operator"
STARTS_WITHIN = 30.0
STOPS_WITHIN = 40.0
GIVES_UP = 120.0
SLOWEST_PER_S = 20
LOOKS_EVERY = 0.02
OBJECT = ["id", "content_id", "status", "store", "key", "sha256", "size", "content_type", "width", "height", "frames"]


@dataclass(frozen=True)
class Studio:
    """A database and a home."""

    database: Database
    url: str
    settings: Settings
    accounts: list[UUID]

    @property
    def environment(self) -> dict[str, str]:
        """Give what a worker of this studio finds in its environment."""
        ours = {"IMPRINT_HOME": str(self.settings.home), "IMPRINT_DATABASE_URL": self.url, "IMPRINT_LOG_LEVEL": "error"}
        return {**{name: value for name, value in os.environ.items() if not name.startswith("IMPRINT_")}, **ours}

    async def plan(self, image: bytes, due_at: datetime, *, each: int = 1) -> list[UUID]:
        """Plan so many posts for every account, all due at one moment, and give their publications."""
        connection = await asyncpg.connect(self.url)
        try:
            targets = self.accounts * each
            posts = await _posts(connection, self.settings.home, image, len(targets))
            rows = await connection.fetch(
                "INSERT INTO publication (post_id, account_id, scheduled_at, zone, due_at)"
                " SELECT p, a, $3, 'UTC', $3 FROM unnest($1::uuid[], $2::uuid[]) AS u (p, a) RETURNING id",
                posts,
                targets,
                due_at,
            )
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()
        return [row["id"] for row in rows]

    async def finished(self, publications: Sequence[UUID], due_at: datetime) -> float:
        """Wait until everything is out, and give the seconds from the moment it was due to the last success."""
        count = len(publications)
        deadline = time.monotonic() + GIVES_UP + count / SLOWEST_PER_S
        connection = await asyncpg.connect(self.url)
        try:
            while True:
                rows = await connection.fetch(
                    "SELECT status, count(*) FROM publication WHERE id = ANY ($1) GROUP BY status", publications
                )
                states = {str(row["status"]): int(row["count"]) for row in rows}
                if states == {"success": count}:
                    break
                if set(states) - {"pending", "running", "success"} or time.monotonic() > deadline:
                    why = await connection.fetch(
                        "SELECT error_code, held_why, count(*) FROM publication WHERE id = ANY ($1)"
                        " AND status <> 'success' GROUP BY 1, 2",
                        publications,
                    )
                    raise RuntimeError(f"not everything was published: {states}, {[tuple(row) for row in why]}")
                await asyncio.sleep(max(LOOKS_EVERY, count / 20_000))
            last: datetime = await connection.fetchval(
                "SELECT max(published_at) FROM publication WHERE id = ANY ($1)", publications
            )
        finally:
            await connection.close()
        return (last - due_at).total_seconds()

    @asynccontextmanager
    async def workers(self, count: int, concurrency: int) -> AsyncIterator[None]:
        """Keep so many `imprint worker` processes running inside the block; they are at work when it begins."""
        command = (sys.executable, "-m", "imprint", "worker", "--concurrency", str(concurrency), "--until-stdin-closes")
        children = [
            await asyncio.create_subprocess_exec(
                *command, env=self.environment, stdin=asyncio.subprocess.PIPE, start_new_session=True
            )
            for _ in range(count)
        ]
        try:
            async with asyncio.timeout(STARTS_WITHIN):
                while await self._alive() < count:
                    if any(child.returncode is not None for child in children):
                        raise RuntimeError("a worker ended at once; what it said stands above")
                    await asyncio.sleep(LOOKS_EVERY)
            yield
        finally:
            for child in children:
                with suppress(ProcessLookupError):
                    child.terminate()
            for child in children:
                try:
                    await asyncio.wait_for(child.wait(), STOPS_WITHIN)
                except TimeoutError:
                    child.kill()

    async def _alive(self) -> int:
        async with self.database.connection() as connection:
            return sum(known.alive for known in await WORKERS.all(connection))


@asynccontextmanager
async def studio(url: str, home: Path, logins: Sequence[DeviantArtLogin]) -> AsyncIterator[Studio]:
    """Set a studio up in an empty database, with an account for each login."""
    await migrate(url)
    settings = load({"IMPRINT_HOME": str(home), "IMPRINT_DATABASE_URL": url})
    vault = Vault.of(settings)
    async with open_database(url) as database:
        accounts: list[UUID] = []
        async with database.transaction(OWNER, "bench") as connection:
            for login in logins:
                account: UUID = await connection.fetchval(
                    "INSERT INTO account (platform, name, label, owner) VALUES ('deviantart', $1, $1, $2) RETURNING id",
                    login.name,
                    OWNER,
                )
                # As after a sign-in: good for an hour.
                fresh = login.model_copy(update={"expires_at": datetime.now(UTC) + timedelta(hours=1)})
                await vault.put(connection, account, fresh)
                accounts.append(account)
        yield Studio(database, url, settings, accounts)


async def _posts(connection: Connection, home: Path, image: bytes, count: int) -> list[UUID]:
    """Write posts that are ready, each with a content and a file on the disk of its own."""
    contents, posts = [uuid4() for _ in range(count)], [uuid4() for _ in range(count)]
    keys = await asyncio.to_thread(_files, home / "blobs" / "objects", image, count)
    digest = sha256(image).hexdigest()
    facts = ("local", digest, len(image), "image/png", 64, 64, 1)
    for table in ("content", "object", "post", "post_file"):
        await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    await connection.copy_records_to_table(
        "content", records=[(each, "work.png", "uploaded") for each in contents], columns=["id", "name", "status"]
    )
    await connection.copy_records_to_table(
        "object",
        records=[
            (uuid4(), content, "uploaded", facts[0], key, *facts[1:])
            for content, key in zip(contents, keys, strict=True)
        ],
        columns=OBJECT,
    )
    await connection.copy_records_to_table(
        "post",
        records=[(each, "draft", f"Harbour {each.hex[:8]}", "Ink.", ["harbour", "ink"]) for each in posts],
        columns=["id", "status", "title", "description", "tags"],
    )
    await connection.copy_records_to_table(
        "post_file",
        records=[(post, content, 0) for post, content in zip(posts, contents, strict=True)],
        columns=["post_id", "content_id", "position"],
    )
    for table in ("content", "object", "post", "post_file"):
        await connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
    return posts


def _files(folder: Path, image: bytes, count: int) -> list[str]:
    keys = []
    for _ in range(count):
        name = uuid4().hex
        key = f"{name[:2]}/{name[2:4]}/{name}"
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(image)
        keys.append(key)
    return keys
