"""A scene with content: a database, stores on a disk, a maker, and what tests do with them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from imprint.blobs.local import LocalBlobs
from imprint.blobs.ring import Ring
from imprint.blobs.signing import LocalUploads
from imprint.blobs.store import Blobs
from imprint.engine.queue import Job
from imprint.images.maker import open_maker
from imprint.settings import Settings, load
from imprint.store.db import Database, open_database
from imprint.work.content import Line, history, show
from imprint.work.derive import Deriver, bounds
from imprint.work.stores import Stores
from imprint.work.upload import Asked, Wanted, ask, confirm, receive
from tests.images.pictures import noise, plain
from tests.work.reconnecting import reconnect

PNG: bytes = plain(8, 8).pngsave_buffer()
JPEG: bytes = noise(400, 300).jpegsave_buffer()
OWNER = "ada"


async def cut(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    """Give bytes as a network would, a few at a time."""
    for at in range(0, len(data), size):
        yield data[at : at + size]


@dataclass
class Scene:
    """Everything content needs."""

    database: Database
    stores: Stores
    settings: Settings
    deriver: Deriver
    folder: Path

    async def ask(self, data: bytes, kind: str = "image/png", *, hashed: bool = True, size: int | None = None) -> Asked:
        """Ask for an upload of these bytes."""
        wanted = Wanted("a.png", kind, size or len(data), sha256(data).hexdigest() if hashed else None)
        return await ask(self.database, self.stores, self.settings, wanted, OWNER)

    async def send(self, url: str, data: bytes) -> None:
        """Send bytes to a URL, as the HTTP door will."""
        uploads = self.stores.uploads
        assert isinstance(uploads, LocalUploads)
        await receive(self.database, self.stores, uploads, "PUT", urlsplit(url).path, cut(data))

    async def uploaded(self, data: bytes = PNG, kind: str = "image/png") -> UUID:
        """Upload bytes and confirm them."""
        asked = await self.ask(data, kind)
        await self.send(asked.upload_url, data)
        await confirm(self.database, self.stores, asked.file_id, OWNER)
        return asked.file_id

    async def processed(self, data: bytes = PNG, kind: str = "image/png") -> UUID:
        """Upload bytes and make their variants."""
        content = await self.uploaded(data, kind)
        await self.derive(content)
        return content

    async def derive(self, content: UUID, failures: int = 0) -> None:
        """Deliver a content's job."""
        await self.deriver.derive(Job("derive", str(content), failures))

    async def states(self, content: UUID) -> tuple[str, str, list[str]]:
        """Give the states of a content, of its original and of its wanted variants."""
        async with self.database.connection() as connection:
            shown = await show(connection, content)
        original = next(each for each in shown.objects if each.variant is None)
        return shown.content.status, original.status, sorted(v.status for v in shown.variants if v.wanted)

    async def code(self, content: UUID) -> str | None:
        """Give the reason why a content failed."""
        async with self.database.connection() as connection:
            return (await show(connection, content)).content.error_code

    async def story(self, content: UUID) -> list[Line]:
        """Give a content's history."""
        async with self.database.connection() as connection:
            return await history(connection, content)

    async def jobs(self) -> list[str]:
        """Give the contents whose jobs wait in the queue."""
        async with self.database.connection() as connection:
            rows = await connection.fetch("SELECT payload FROM pgqueuer WHERE entrypoint = 'derive' ORDER BY id")
        return [row["payload"].decode() for row in rows]

    async def forget_jobs(self) -> None:
        """Lose every job."""
        async with self.database.connection() as connection:
            await connection.execute("DELETE FROM pgqueuer")

    def files(self) -> list[Path]:
        """List the objects on the disk, seen through no store at all."""
        return sorted(each for each in (self.folder / "objects").rglob("*") if each.is_file())

    async def pass_time(self, time: timedelta) -> None:
        """Let time pass, for every connection that is opened from now on."""
        async with self.database.connection() as connection:
            name = await connection.fetchval("SELECT current_database()")
            await connection.execute(f"ALTER DATABASE {name} SET imprint.clock_offset = '{time.total_seconds()} s'")
        await reconnect(self.database)


def disk(settings: Settings, blobs: Blobs | None = None) -> Stores:
    """Give the stores of a home: a disk."""
    home = settings.home
    (home / "spool").mkdir(exist_ok=True)
    uploads = LocalUploads(Ring.new(), "http://127.0.0.1:7600/api/uploads/bytes")
    return Stores({"local": blobs or LocalBlobs(home / "blobs")}, "local", uploads, home / "spool")


@asynccontextmanager
async def scene(
    url: str, home: Path, blobs: Blobs | None = None, variables: Sequence[tuple[str, str]] = ()
) -> AsyncIterator[Scene]:
    """Set a scene up in a home."""
    settings = load({"IMPRINT_HOME": str(home), "IMPRINT_DATABASE_URL": url, **dict(variables)})
    stores = disk(settings, blobs)
    async with open_database(url) as database, open_maker(bounds(settings), 1) as maker:
        yield Scene(database, stores, settings, Deriver(database, stores, maker, settings), home / "blobs")
