"""The proving ground: a home, a database, a sandbox, accounts and posts, all of it thrown away afterwards."""

import asyncio
import json
import shutil
import struct
import tempfile
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from imprint.platforms.folder import MANIFEST, FolderLogin
from imprint.platforms.login import Login
from imprint.proof.hops import Hops
from imprint.sandbox.log import Log
from imprint.sandbox.server import ASGI, Sandbox, sandbox
from imprint.settings import Settings, load
from imprint.store.db import Database, open_database
from imprint.store.embedded import running
from imprint.store.migrate import migrate
from imprint.store.query import Link, Nothing, query
from imprint.work.add import add
from imprint.work.post import Row
from imprint.work.stores import open_stores
from imprint.work.vault import Vault, platform

OWNER = "operator"
DEVIANTART, WEBHOOK, FOLDER = "deviantart", "webhook", "folder"
LOG = "sandbox.log"
WORKERS_LOG = "workers.log"
SIDE = 8

ACCOUNT = query("proof_account", Row)
POSTS = query("proof_posts", Row)
FILES = query("proof_files", Nothing)
READY = query("proof_ready", Nothing)
PLAN = query("proof_plan", Row)


@dataclass(frozen=True)
class Effect:
    """Something that others can see: what it is called, when it appeared on this machine's clock, and where."""

    title: str
    at: float
    site: str


@dataclass
class Ground:
    """Everything a proof stands on."""

    home: Path
    url: str
    box: Sandbox
    settings: dict[str, str]
    accounts: list[UUID] = field(default_factory=list)
    content: UUID | None = None
    planned: int = 0
    hops: Hops = field(default_factory=Hops)

    def environment(self) -> dict[str, str]:
        """Give what a worker that is born now finds in its environment."""
        return {"IMPRINT_HOME": str(self.home), "IMPRINT_DATABASE_URL": self.hops.url(self.url), **self.settings}

    def loaded(self) -> Settings:
        """Give the settings of a worker that is born now."""
        return load(self.environment())

    async def furnish(self, database: Database, platforms: Sequence[str], accounts: int) -> None:
        """Connect accounts at the platforms in turn, and store the one small picture that everything shows."""
        settings = self.loaded()
        vault = Vault.of(settings)
        async with database.transaction(OWNER, "a proof") as connection:
            for number in range(accounts):
                on = platforms[number % len(platforms)]
                made = await ACCOUNT.one(connection, on, f"{on}-{number}", OWNER)
                await vault.put(connection, made.id, self._login(on, f"{on}-{number}"))
                self.accounts.append(made.id)
        picture = self.home / "harbour.png"
        await asyncio.to_thread(picture.write_bytes, png(SIDE))
        self.content = (await add(database, open_stores(settings), settings, picture, OWNER)).file_id

    def _login(self, on: str, name: str) -> Login:
        if on == FOLDER:
            folder = self.home / "folders" / name
            folder.mkdir(parents=True)
            return FolderLogin(name=name, folder=folder)
        login: Login = platform(on).login_type.model_validate_json(self.box.login(on, name))
        # Hops must not make it end: that a renewal dies with its worker is another promise, and has its own tests.
        return login.model_copy(update={"expires_in": timedelta(days=30)})

    async def plan(self, connection: Link, seconds: Sequence[float]) -> list[UUID]:
        """Plan a post for each of these moments from now, on the accounts in turn, and give the publications."""
        places = range(self.planned, self.planned + len(seconds))
        self.planned += len(seconds)  # a title is used once, also when nobody can tell whether it was committed
        async with connection.transaction():
            posts = [row.id for row in await POSTS.all(connection, [f"Harbour {place:06}" for place in places])]
            await FILES.run(connection, posts, self.content)
            await READY.run(connection, posts)
            accounts = [self.accounts[place % len(self.accounts)] for place in places]
            made = await PLAN.all(connection, posts, accounts, list(seconds))
        return [row.id for row in made]

    def hop(self, seconds: float) -> None:
        """Skip time, at the sandbox as well."""
        self.hops.hop(seconds)
        for site in self.box.sites.values():
            site.ahead = self.hops.ahead

    def effects(self) -> list[Effect]:
        """Read what can be seen: in the sandbox's own log, from its file, and in the folders."""
        kept = Log(self.home / LOG)
        kept.close()
        seen = [Effect(str(each.data["title"]), each.at, each.site) for each in kept.effects()]
        for manifest in self.home.glob(f"folders/*/[!.]*/{MANIFEST}"):
            title = str(json.loads(manifest.read_bytes())["work"]["title"])
            seen.append(Effect(title, manifest.stat().st_mtime, FOLDER))
        return seen

    def faults(self) -> Counter[str]:
        """Count what the sandbox has done wrong on purpose."""
        return Counter(str(each.data["does"]) for each in self.box.log.entries("fault"))

    def last_words(self) -> str:
        """Give the last line that a worker has said."""
        path = self.home / WORKERS_LOG
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return lines[-1][:500] if lines else "nobody said why."

    def bugs(self) -> list[str]:
        """Give what the workers have said that none may ever say: that there is a bug, or that it came out twice."""
        path = self.home / WORKERS_LOG
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        said = [str(_told(line).get("event", line)) for line in lines]
        return [each[:500] for each in said if "bug" in each.lower() or "twice" in each]


def _told(line: str) -> dict[str, Any]:
    with suppress(ValueError):
        told = json.loads(line)
        return told if isinstance(told, dict) else {}
    return {}


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a home that is removed in the end; other users may enter it, since PostgreSQL is one for root."""
    home = Path(tempfile.mkdtemp(prefix="imprint-proof-"))
    home.chmod(0o711)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def ground(
    home: Path, *, seed: int, settings: dict[str, str], url: str | None = None, beside: Mapping[str, ASGI] | None = None
) -> AsyncIterator[Ground]:
    """Start the sandbox in a home, and the database unless one is given; `beside` is what else the sandbox serves."""
    async with AsyncExitStack() as stack:
        if url is None:
            url = (await stack.enter_async_context(running(home))).url
        box = await stack.enter_async_context(sandbox(log=home / LOG, seed=seed, beside=beside))
        await migrate(url)
        yield Ground(home, url, box, {"IMPRINT_LOG_LEVEL": "error", "IMPRINT_LOG_FORMAT": "json", **settings})


@asynccontextmanager
async def furnished(
    home: Path,
    platforms: Sequence[str],
    accounts: int,
    *,
    seed: int,
    settings: dict[str, str],
    url: str | None = None,
    beside: Mapping[str, ASGI] | None = None,
) -> AsyncIterator[Ground]:
    """Start everything, with accounts at the platforms and a picture to publish."""
    async with ground(home, seed=seed, settings=settings, url=url, beside=beside) as made:
        async with open_database(made.url, size=2) as database:
            await made.furnish(database, platforms, accounts)
        yield made


def png(side: int, shade: int = 90) -> bytes:
    """Draw a small grey square, without any library."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([shade]) * side) * side
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
