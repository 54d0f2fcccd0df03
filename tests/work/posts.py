"""An author: a person with posts, files and accounts in a database, and a worker who takes what is due."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

from imprint.decisions.schedule import Bounds
from imprint.engine.lease import PUBLICATIONS, Lease
from imprint.store.db import Database
from imprint.work.attach import attach
from imprint.work.post import Shown, create, ready, show
from imprint.work.schedule import Target, schedule
from tests.work.reconnecting import reconnect

OWNER = "ada"
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LIMITS = Bounds()
# No lead, not even the time a test needs, and no jitter.
AT_ONCE = Bounds(lead=timedelta(days=-1), jitter=timedelta(0))


@dataclass
class Author:
    """A person who writes posts."""

    database: Database
    owner: str = OWNER

    async def content(self, *, confirmed: bool = True, data: bytes | None = None) -> UUID:
        """Add content, by default with bytes that were verified."""
        digest = sha256(data or uuid4().bytes).hexdigest()
        async with self.database.connection() as connection:
            added: UUID = await connection.fetchval(
                "INSERT INTO content (name, owner) VALUES ('a.png', $1) RETURNING id", self.owner
            )
            row = await connection.fetchval(
                "INSERT INTO object (content_id, store, key, expected_size, expected_type, nonce, expires_at) "
                "VALUES ($1, 'local', $2, 8, 'image/png', $2, imprint_now()) RETURNING id",
                added,
                uuid4().hex,
            )
            if confirmed:
                await connection.execute("UPDATE content SET status = 'uploaded' WHERE id = $1", added)
                await connection.execute(
                    "UPDATE object SET status = 'uploaded', size = 8, sha256 = $2, content_type = 'image/png', "
                    "width = 4, height = 3 WHERE id = $1",
                    row,
                    digest,
                )
        return added

    async def account(self, label: str = "gallery", platform: str = "folder", *, default: bool = False) -> UUID:
        """Add an account."""
        async with self.database.connection() as connection:
            added: UUID = await connection.fetchval(
                "INSERT INTO account (platform, name, label, owner, is_default) "
                "VALUES ($1, $2, $2, $3, $4) RETURNING id",
                platform,
                label,
                self.owner,
                default,
            )
        return added

    async def review(self, files: int = 1, **fields: Any) -> UUID:
        """Write a post that is in review and lacks nothing."""
        post = await create(self.database, self.owner, {"title": "A lighthouse at dusk", **fields})
        for _ in range(files):
            await attach(self.database, self.owner, post, await self.content())
        return post

    async def draft(self, files: int = 1, **fields: Any) -> UUID:
        """Write a post that is ready."""
        post = await self.review(files, **fields)
        await ready(self.database, self.owner, post)
        return post

    async def scheduled(self, account: UUID | None = None, ahead: timedelta = 2 * HOUR, **fields: Any) -> UUID:
        """Write a post and schedule it on an account, or on a new one."""
        post = await self.draft(**fields)
        target = Target(account or await self.account(uuid4().hex))
        at = datetime.now(UTC) + ahead
        await schedule(self.database, AT_ONCE, self.owner, post, at, targets=[target])
        return post

    async def show(self, post: UUID) -> Shown:
        """Look at a post."""
        async with self.database.connection() as connection:
            return await show(connection, self.owner, post)

    async def status(self, post: UUID) -> str:
        """Read where a post stands."""
        return (await self.show(post)).post.status

    async def states(self, post: UUID) -> list[str]:
        """Read where the publications of a post stand, in order."""
        return [each.status for each in (await self.show(post)).publications]

    async def publication(self, post: UUID) -> UUID:
        """Give the only publication of a post."""
        (only,) = (await self.show(post)).publications
        return only.id

    async def claim(self, publication: UUID) -> Lease | None:
        """Take a publication as a worker does."""
        async with self.database.transaction("worker", "its time has come") as connection:
            return await PUBLICATIONS.claim(connection, publication, MINUTE)

    async def intend(self, lease: Lease) -> bool:
        """Make an intent as a worker does, under its fence."""
        return await self._under(lease, "phase = 'publishing', intent_at = imprint_now()")

    async def succeed(self, lease: Lease) -> bool:
        """Record a success."""
        return await self._under(lease, "status = 'success', remote_id = 'r', phase = NULL, lease_until = NULL")

    async def fail(self, lease: Lease) -> bool:
        """Record a failure."""
        return await self._under(lease, "status = 'failed', error_code = 'refused', phase = NULL, lease_until = NULL")

    async def lose(self, lease: Lease) -> bool:
        """Record that no answer came."""
        return await self._under(lease, "status = 'unknown', phase = NULL, lease_until = NULL")

    async def brought(self, state: str, **fields: Any) -> UUID:
        """Write a post with one publication and bring it into a state: pending, uploading, publishing, or an end."""
        ahead = 2 * HOUR if state == "pending" else timedelta(0)
        post = await self.scheduled(ahead=ahead, **fields)
        if state == "pending":
            return post
        lease = await self.claim(await self.publication(post))
        assert lease is not None
        if state == "uploading":
            return post
        if state == "failed":
            assert await self.fail(lease)
            return post
        assert await self.intend(lease)
        if state != "publishing":
            assert await {"success": self.succeed, "unknown": self.lose}[state](lease)
        return post

    async def reasons(self, row: UUID) -> list[tuple[str, str, str | None]]:
        """Read the audit of a row: move, actor and reason."""
        async with self.database.connection() as connection:
            lines = await connection.fetch("SELECT move, actor, reason FROM audit WHERE row_id = $1 ORDER BY id", row)
        return [tuple(line) for line in lines]

    async def read(self, sql: str, *values: Any) -> Any:
        """Read one value by raw SQL."""
        async with self.database.connection() as connection:
            return await connection.fetchval(sql, *values)

    async def pass_time(self, time: timedelta) -> None:
        """Let time pass, for every connection that is opened from now on."""
        async with self.database.connection() as connection:
            name = await connection.fetchval("SELECT current_database()")
            await connection.execute(f"ALTER DATABASE {name} SET imprint.clock_offset = '{time.total_seconds()} s'")
        await reconnect(self.database)

    async def _under(self, lease: Lease, changes: str) -> bool:
        async with self.database.transaction("worker", "it went so") as connection:
            return bool(
                await connection.fetchval(
                    f"UPDATE publication SET {changes} "
                    "WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING true",
                    lease.id,
                    lease.fence,
                )
            )
