"""A stage for publishing: real content, accounts at a real sandbox, and a worker's hands."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

from imprint.engine import circuit, pace
from imprint.engine.lease import PUBLICATIONS
from imprint.engine.queue import Job
from imprint.engine.wire import Wire
from imprint.platforms.folder import FolderLogin
from imprint.sandbox import site, webhook
from imprint.sandbox.faults import Fault, Rule
from imprint.sandbox.server import Sandbox, sandbox
from imprint.store.db import Database
from imprint.work.attach import attach
from imprint.work.desk import Desk
from imprint.work.journal import Journal
from imprint.work.post import create, ready
from imprint.work.publish import Publisher
from imprint.work.reconcile import Reconciler
from imprint.work.schedule import publish_now
from imprint.work.vault import Vault, platform
from tests.images.pictures import plain
from tests.work.posts import OWNER
from tests.work.scene import Scene, scene

DEVIANTART, WEBHOOK, FOLDER = "deviantart", "webhook", "folder"
BLUESKY, MASTODON, WORDPRESS = "bluesky", "mastodon", "wordpress"
UPLOAD, PUBLISH, GALLERY = "*stash/submit", "*stash/publish", "*gallery/all"


@dataclass
class Stage:
    """A person with posts and accounts, a sandbox, and a worker that does what it is told."""

    at: Scene
    box: Sandbox
    desk: Desk
    pictures: int = 0
    offset: timedelta = field(default=timedelta(0))

    @property
    def database(self) -> Database:
        """Give the database."""
        return self.at.database

    async def account(self, on: str = DEVIANTART, label: str | None = None) -> UUID:
        """Connect an account at a site of the sandbox, or a folder."""
        label = label or f"{on}-{uuid4().hex[:8]}"
        if on == FOLDER:
            folder = self.at.settings.home / label
            folder.mkdir()
            login: Any = FolderLogin(name=label, folder=folder)
        else:
            login = platform(on).login_type.model_validate_json(self.box.login(on, label))
        async with self.database.transaction(OWNER, "connected") as connection:
            added: UUID = await connection.fetchval(
                "INSERT INTO account (platform, name, label, owner) VALUES ($1, $2, $2, $3) RETURNING id",
                on,
                label,
                OWNER,
            )
            await self.desk.vault.put(connection, added, login)
        return added

    async def post(self, files: int = 1, **fields: Any) -> UUID:
        """Write a post that is ready, with pictures like no other."""
        post = await create(self.database, OWNER, {"title": f"A lighthouse {uuid4().hex[:8]}", **fields})
        for _ in range(files):
            self.pictures += 1
            shade = (self.pictures % 256, self.pictures // 256, 7)
            await attach(
                self.database, OWNER, post, await self.at.uploaded(plain(8, 8, shade).pngsave_buffer(compression=1))
            )
        await ready(self.database, OWNER, post)
        return post

    async def due(self, account: UUID | None = None, on: str = DEVIANTART, files: int = 1, **fields: Any) -> UUID:
        """Write a post and let it go now; give its publication."""
        post = await self.post(files, **fields)
        account = account or await self.account(on)
        return (await publish_now(self.database, OWNER, post, accounts=[account]))[0].id

    async def crowd(self, accounts: int, each: int, on: str = WEBHOOK) -> list[UUID]:
        """Write many posts in a few statements, articles or artworks of one file, all due now; give what is due."""
        rows = [await self.account(on) for _ in range(accounts)]
        content = await self.at.uploaded() if on == DEVIANTART else None
        async with self.database.transaction(OWNER, "a crowd") as connection:
            posts = await connection.fetch(
                "INSERT INTO post (title, owner, kind, body) SELECT 'Crowd ' || gen_random_uuid(), $1, $3, 'Once.' "
                "FROM generate_series(1, $2) RETURNING id",
                OWNER,
                accounts * each,
                "artwork" if content else "article",
            )
            ids = [post["id"] for post in posts]
            if content:
                file = (
                    "INSERT INTO post_file (post_id, content_id, position) SELECT id, $2, 0 FROM unnest($1::uuid[]) id"
                )
                await connection.execute(file, ids, content)
            await connection.execute("UPDATE post SET status = 'draft' WHERE id = ANY ($1)", ids)
            made = await connection.fetch(
                "INSERT INTO publication (post_id, account_id, scheduled_at, zone, due_at) "
                "SELECT post_id, account_id, imprint_now(), 'UTC', imprint_now() "
                "FROM unnest($1::uuid[], $2::uuid[]) AS u (post_id, account_id) RETURNING id",
                ids,
                rows * each,
            )
        return [row["id"] for row in made]

    async def publish(self, publication: UUID) -> None:
        """Do the job "publish"."""
        await Publisher(self.desk).publish(Job("publish", str(publication)))

    async def reconcile(self, publication: UUID) -> None:
        """Do the job "reconcile"."""
        await Reconciler(self.desk).reconcile(Job("reconcile", str(publication)))

    async def out(self, publication: UUID, **given: int) -> None:
        """Let workers do what is due, as time goes by, until nothing of a publication is left to do by itself."""
        for _ in range(given.get("steps", 40)):
            match await self.read("SELECT status FROM publication WHERE id = $1", publication):
                case "pending":
                    await self.wait_for(
                        "SELECT greatest(due_at, held_until) FROM publication WHERE id = $1", publication
                    )
                    await self.publish(publication)
                case "running":  # whoever has it is dead
                    await self.wait_for("SELECT lease_until FROM publication WHERE id = $1", publication)
                    await self.expire()
                case "unknown" if await self.read("SELECT look_at FROM publication WHERE id = $1", publication):
                    await self.wait_for("SELECT look_at FROM publication WHERE id = $1", publication)
                    await self.reconcile(publication)
                case _:
                    return
        raise AssertionError("it does not come to an end")

    async def all_out(self, publications: Sequence[UUID], steps: int = 60) -> None:
        """Do the same for many at once; a worker takes whatever is due in the order of its time."""
        many, open_ = list(publications), "wake_at < 'infinity' AND id = ANY ($1)"
        for _ in range(steps):
            soon = f"SELECT least(max(wake_at), min(wake_at) + interval '1 min') FROM publication WHERE {open_}"
            await self.wait_for(soon, many)
            await self.expire()
            async with self.database.connection() as connection:
                rows = await connection.fetch(
                    f"SELECT id, status, wake_at <= imprint_now() AS due FROM publication WHERE {open_} ORDER BY 3, id",
                    many,
                )
            if not rows:
                return
            turns = asyncio.Semaphore(10)
            await asyncio.gather(*[self._turn(turns, row["id"], row["status"]) for row in rows if row["due"]])
        raise AssertionError("they do not come to an end")

    async def together(self, publications: Sequence[UUID]) -> None:
        """Publish many, ten at a time, each account's one after the other."""
        async with self.database.connection() as connection:
            rows = await connection.fetch("SELECT id, account_id FROM publication WHERE id = ANY ($1)", publications)
        lanes: dict[UUID, list[UUID]] = {}
        for row in rows:
            lanes.setdefault(row["account_id"], []).append(row["id"])
        turns = asyncio.Semaphore(10)

        async def lane(waiting: list[UUID]) -> None:
            for publication in waiting:
                await self._turn(turns, publication, "pending")

        await asyncio.gather(*map(lane, lanes.values()))

    async def _turn(self, turns: asyncio.Semaphore, publication: UUID, status: str) -> None:
        async with turns:
            await {"pending": self.publish, "unknown": self.reconcile}[status](publication)

    async def expire(self) -> None:
        """Take back the leases of workers that died, as the clock does."""
        async with self.database.transaction("clock", "its time is over") as connection:
            await PUBLICATIONS.expire.all(connection, 500, 3)

    async def wait_for(self, sql: str, *values: Any) -> None:
        """Let time pass up to a moment in the database."""
        late = await self.read(f"SELECT extract(epoch FROM ({sql}) - imprint_now())::float8", *values)
        if late is not None and late > 0:
            await self.pass_time(timedelta(seconds=late + 0.01))

    async def pass_time(self, time: timedelta) -> None:
        """Let time pass, from where it is."""
        self.offset += time
        await self.at.pass_time(self.offset)

    def fault(self, does: Fault, path: str = PUBLISH, **rule: Any) -> None:
        """Let something go wrong at the sandbox."""
        self.box.faults.add(Rule(does, path=path, **rule))

    async def read(self, sql: str, *values: Any) -> Any:
        """Read one value by raw SQL."""
        async with self.database.connection() as connection:
            return await connection.fetchval(sql, *values)

    async def state(self, publication: UUID) -> str:
        """Say where a publication stands."""
        state: str = await self.read("SELECT status FROM publication WHERE id = $1", publication)
        return state

    async def lines(self, publication: UUID) -> list[str]:
        """Give the kinds of lines in the log of a publication."""
        async with self.database.connection() as connection:
            rows = await connection.fetch(
                "SELECT kind FROM publication_log WHERE publication_id = $1 ORDER BY id", publication
            )
        return [row[0] for row in rows]

    async def seen(self, *publications: UUID) -> list[int]:
        """Count how often each can be seen by others: at the sandbox, by its own log, and in the folders."""
        seen = Counter(title for _, title in self.effects())
        seen.update(self.folders())
        async with self.database.connection() as connection:
            rows = await connection.fetch(
                "SELECT u.id, p.title FROM publication u JOIN post p ON p.id = u.post_id WHERE u.id = ANY ($1)",
                publications,
            )
        titles = {row["id"]: row["title"] for row in rows}
        return [seen[titles[each]] for each in publications]

    async def column(self, name: str, publication: UUID) -> Any:
        """Read one column of a publication."""
        return await self.read(f"SELECT {name} FROM publication WHERE id = $1", publication)

    def effects(self) -> list[tuple[str, str]]:
        """Give what others can see at the sandbox: site and title."""
        return [(each.site, str(each.data["title"])) for each in self.box.log.effects()]

    def folders(self) -> list[str]:
        """Give the titles of what can be seen in the folders of this home."""
        manifests = self.at.settings.home.glob("folder-*/[!.]*/manifest.json")
        return [str(json.loads(each.read_bytes())["work"]["title"]) for each in manifests]

    def uploads(self) -> int:
        """Count the files that the sandbox has taken."""
        return len(self.box.log.entries("upload"))


@contextmanager
def unhurried() -> Iterator[None]:
    """Let accounts be called as often as one likes, and no circuit open: for tests about something else."""
    quick = pace.Policy(timedelta(microseconds=1), timedelta(seconds=60), 0.8, timedelta(days=1))
    closed = replace(circuit.PUBLISHING, rate_limits=10**6, errors=10**6)
    with patch.object(pace, "PUBLISHING", quick), patch.object(circuit, "PUBLISHING", closed):
        yield


@asynccontextmanager
async def stage(url: str, home: Path, **variables: str) -> AsyncIterator[Stage]:
    """Set everything up in a home; no call waits for the pace or spreads by chance."""
    async with scene(url, home, variables=tuple(variables.items())) as at, sandbox() as box:
        desk = Desk(
            at.database,
            Vault.of(at.settings),
            Wire(),
            at.deriver,
            Journal.of(home),
            at.settings,
            actor="worker of a test",
            roll=lambda: 0.5,
        )
        made = Stage(at, box, desk)
        # Time passes at the sandbox as well, or its gallery would be from another day.
        clock = SimpleNamespace(time=lambda: time.time() + made.offset.total_seconds())
        with ExitStack() as clocks:
            # Not at the webhook's receiver: what it is told is signed with this machine's own time.
            for module in {site, *(sys.modules[type(each).__module__] for each in box.sites.values())}:
                if hasattr(module, "time") and module is not webhook:
                    clocks.enter_context(patch.object(module, "time", clock))
            yield made
