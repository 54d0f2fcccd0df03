"""Stores: the places that hold bytes, by the names that rows know them by, and the one that new bytes go to."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from imprint.blobs.local import LocalBlobs
from imprint.blobs.ring import Ring, load
from imprint.blobs.s3 import S3Blobs, S3Place
from imprint.blobs.signing import LocalUploads, S3Uploads, Uploads
from imprint.blobs.store import CHUNK, Blobs, verified
from imprint.blobs.tally import Broken, Promise
from imprint.images.spool import spooled
from imprint.problem import BadSettings, Unavailable
from imprint.settings import Settings

LOCAL, S3 = "local", "s3"
UPLOADS_PATH = "/api/uploads/bytes"


@dataclass(frozen=True)
class Place:
    """Where an object is, and what it must be."""

    store: str
    key: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Stores:
    """Every store this process can reach; `spool` is a folder of its own for files on their way."""

    every: Mapping[str, Blobs]
    current: str
    uploads: Uploads
    spool: Path

    @property
    def blobs(self) -> Blobs:
        """Give the store that new bytes go to."""
        return self.every[self.current]

    def of(self, name: str) -> Blobs:
        """Give a store by its name; one that the settings no longer describe cannot be reached."""
        if name not in self.every:
            raise Unavailable(
                "blob.no_store", f"These bytes are in the store {name}, which this Imprint is not set up to reach."
            )
        return self.every[name]

    @asynccontextmanager
    async def file(self, place: Place) -> AsyncIterator[Path]:
        """Give an object as a file whose bytes were read through and are right; raise Missing or Broken."""
        blobs = self.of(place.store)
        promise = Promise(place.size, place.sha256)
        path = blobs.local_path(place.key)
        if path is not None:
            await verified(blobs, place.key, promise)
            yield path
            return
        async with aclosing(_stream(blobs, place.key)) as chunks, spooled(chunks, self.spool) as copy:
            promise.check_size(copy.size)
            if copy.sha256 != place.sha256:
                raise Broken("blob.wrong_hash", "The bytes do not have the SHA-256 that was promised.")
            yield copy.path


def open_stores(settings: Settings) -> Stores:
    """Open what the settings describe; the folder on the local disk is one of them whenever it is there."""
    spool = settings.home / "spool"
    try:
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable("home.no_spool", f"There is no place for files on their way in {spool}.") from error
    folder = settings.blob_folder or settings.home / "blobs"
    every: dict[str, Blobs] = {}
    if settings.blob_store == LOCAL or folder.is_dir():
        every[LOCAL] = LocalBlobs(folder)
    if settings.blob_store == S3 or settings.s3_bucket:
        every[S3] = blobs = _s3(settings)
        if settings.blob_store == S3:
            return Stores(every, S3, S3Uploads(blobs), spool)
    return Stores(every, LOCAL, local_uploads(settings), spool)


def local_uploads(settings: Settings) -> LocalUploads:
    """Give what signs our own upload URLs, and recognises them."""
    ring = Ring.parse(settings.upload_keys) if settings.upload_keys else load(settings.home)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return LocalUploads(ring, f"http://{host}:{settings.port}{UPLOADS_PATH}")


def _s3(settings: Settings) -> S3Blobs:
    if not settings.s3_bucket:
        raise BadSettings("settings.no_bucket", "IMPRINT_S3_BUCKET must name the bucket that holds the files.")
    return S3Blobs(
        S3Place(
            bucket=settings.s3_bucket,
            endpoint=settings.s3_endpoint,
            region=settings.s3_region,
            access_key_id=settings.s3_access_key_id,
            secret_access_key=settings.s3_secret_access_key,
            prefix=settings.s3_prefix,
            path_style=settings.s3_path_style,
            allow_http=settings.s3_allow_http,
        )
    )


async def _stream(blobs: Blobs, key: str) -> AsyncGenerator[bytes, None]:
    async for chunk in blobs.read(key):
        yield chunk


async def read_file(path: Path) -> AsyncIterator[bytes]:
    """Read a local file in a thread, a chunk at a time."""
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
    finally:
        file.close()
