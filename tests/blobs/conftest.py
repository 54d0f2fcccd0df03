"""The three stores the behaviour kit runs over."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from imprint.blobs.local import LocalBlobs
from imprint.blobs.memory import MemoryBlobs
from imprint.blobs.s3 import S3Blobs
from imprint.blobs.store import Blobs
from tests.blobs.rclone import BUCKET, Server, serving


@dataclass(frozen=True)
class Kind:
    """A store under test, and how another process finds it (None: it cannot)."""

    name: str
    blobs: Blobs
    address: tuple[str, ...] | None
    folder: Path | None

    def files(self) -> list[Path]:
        """List what is on the disk behind the store, seen through no store at all."""
        return [each for each in self.folder.rglob("*") if each.is_file()] if self.folder else []


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Server]:
    """Start the S3 server of this test process."""
    with serving() as server:
        yield server


@pytest.fixture
def s3_kind(s3_server: Server) -> Kind:
    """Give a part of a bucket that nothing is in yet."""
    prefix = uuid4().hex
    address = ("s3", str(s3_server.port), str(s3_server.folder), prefix)
    return Kind("s3", S3Blobs(s3_server.place(prefix)), address, s3_server.folder / BUCKET / prefix)


@pytest.fixture
def local_kind(home: Path) -> Kind:
    """Give a new folder."""
    return Kind("local", LocalBlobs(home / "blobs"), ("local", str(home / "blobs")), home / "blobs")


@pytest.fixture(params=["local", "s3", "memory"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Give each of the three in turn."""
    if request.param == "memory":
        return Kind("memory", MemoryBlobs(), None, None)
    found = request.getfixturevalue(f"{request.param}_kind")
    assert isinstance(found, Kind)
    return found


@pytest.fixture
def blobs(kind: Kind) -> Blobs:
    """Give the store alone."""
    return kind.blobs
