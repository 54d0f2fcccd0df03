"""Stores: what the settings describe is opened, and everything works the same on a real S3 server."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from imprint.blobs.local import LocalBlobs
from imprint.blobs.s3 import S3Blobs
from imprint.blobs.signing import LocalUploads, S3Uploads
from imprint.images.maker import open_maker
from imprint.problem import Unavailable
from imprint.settings import load
from imprint.store.db import open_database
from imprint.work.backfill import Options, backfill
from imprint.work.content import bytes_of, read
from imprint.work.derive import Deriver, bounds
from imprint.work.orphans import collect
from imprint.work.stores import Place, open_stores, read_file
from imprint.work.upload import Wanted, ask, confirm
from tests.blobs.rclone import BUCKET, KEY, SECRET, Server, serving
from tests.work.scene import JPEG, OWNER, PNG, Scene
from tests.work.test_derive import DONE
from tests.work.test_upload import refused


@pytest.fixture
def s3() -> Iterator[Server]:
    """Start an S3 server."""
    with serving() as server:
        yield server


def variables(server: Server, home: Path) -> dict[str, str]:
    """Give the settings of a person who keeps files in S3."""
    return {
        "IMPRINT_HOME": str(home),
        "IMPRINT_BLOB_STORE": "s3",
        "IMPRINT_S3_BUCKET": BUCKET,
        "IMPRINT_S3_ENDPOINT": f"http://127.0.0.1:{server.port}",
        "IMPRINT_S3_ACCESS_KEY_ID": KEY,
        "IMPRINT_S3_SECRET_ACCESS_KEY": SECRET,
        "IMPRINT_S3_ALLOW_HTTP": "true",
    }


async def test_the_whole_way_on_s3(s3: Server, database_url: str, home: Path) -> None:
    """A client PUTs to the store itself; what it sent is confirmed, made, verified, and damage is found."""
    settings = load({**variables(s3, home), "IMPRINT_DATABASE_URL": database_url})
    stores = open_stores(settings)
    assert isinstance(stores.uploads, S3Uploads)
    async with (
        open_database(database_url) as database,
        open_maker(bounds(settings), 1) as maker,
        httpx2.AsyncClient() as client,
    ):
        at = Scene(database, stores, settings, Deriver(database, stores, maker, settings), home / "blobs")
        wanted = Wanted("a.jpg", "image/jpeg", len(JPEG), sha256(JPEG).hexdigest())
        asked = await ask(database, stores, settings, wanted, OWNER)
        await refused(confirm(database, stores, asked.file_id, OWNER), "upload.missing")
        assert (await client.put(asked.upload_url, content=JPEG)).is_success
        await confirm(database, stores, asked.file_id, OWNER)
        await at.derive(asked.file_id)
        assert await at.states(asked.file_id) == DONE
        # Sent again after it was confirmed: nobody looks at it any more.
        await client.put(asked.upload_url, content=PNG)
        async with database.connection() as connection:
            _, held = await bytes_of(connection, asked.file_id)
        assert b"".join([chunk async for chunk in read(stores, held)]) == JPEG
        report = await backfill(database, stores, settings, Options())
        assert (report.objects, report.found) == (4, 0)
        wrong = await ask(database, stores, settings, wanted, OWNER)
        await client.put(wrong.upload_url, content=JPEG[:-1] + b"?")
        await refused(confirm(database, stores, wrong.file_id, OWNER), "blob.wrong_hash")
        assert await at.states(wrong.file_id) == ("failed", "failed", [])
        assert await collect(database, stores, settings) == 0
        assert list(stores.spool.iterdir()) == []


async def test_a_store_is_opened_by_its_settings(s3: Server, home: Path) -> None:
    """Local by default; who has moved to S3 still reaches what is on the disk; an unknown store is one sentence."""
    stores = open_stores(load({"IMPRINT_HOME": str(home)}))
    assert (stores.current, list(stores.every)) == ("local", ["local"])
    assert isinstance(stores.blobs, LocalBlobs)
    assert isinstance(stores.uploads, LocalUploads)
    moved = open_stores(load(variables(s3, home)))
    assert (moved.current, sorted(moved.every)) == ("s3", ["local", "s3"])
    assert isinstance(moved.blobs, S3Blobs)
    with pytest.raises(Unavailable, match="the store s3"):
        stores.of("s3")


async def test_a_file_is_right_or_refused(at: Scene, tmp_path: Path) -> None:
    """On the disk it is read in place; changed by one bit it is not given at all."""
    file = tmp_path / "a"
    file.write_bytes(PNG)
    stored = await at.stores.blobs.put("ab/cd/abcd" + "0" * 28, read_file(file))
    async with at.stores.file(Place("local", stored.key, stored.size, stored.sha256)) as path:
        assert path.read_bytes() == PNG
    with pytest.raises(Exception, match="SHA-256"):
        async with at.stores.file(Place("local", stored.key, stored.size, "0" * 64)):
            pytest.fail("this is not what was promised")
