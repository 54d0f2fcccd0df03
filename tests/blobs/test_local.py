"""What only a store on the local disk has to cope with: full disks, dying processes, other people's files."""

import asyncio
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from imprint.blobs.key import new_key
from imprint.blobs.local import LocalBlobs
from imprint.blobs.store import verified
from imprint.blobs.tally import Promise
from imprint.problem import Problem, Unavailable
from tests.blobs.conftest import Kind
from tests.blobs.family import child
from tests.blobs.stream import MB, cut, endless, noise, stream, whole
from tests.waiting import until

OPEN = Path("/proc/self/fd")


def open_files() -> int:
    """Count the files this process has open."""
    return len(list(OPEN.iterdir()))


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Give a disk of eight megabytes."""
    folder = Path(tempfile.mkdtemp(prefix="imprint-disk-"))
    mount = subprocess.run(
        [shutil.which("mount") or "false", "-t", "tmpfs", "-o", "size=8m,nr_inodes=1000", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    if mount.returncode:
        folder.rmdir()
        pytest.skip(f"this user may not mount a small disk: {mount.stderr.strip()}")
    yield folder
    subprocess.run([shutil.which("umount") or "false", str(folder)], check=True)
    folder.rmdir()


async def test_a_full_disk(small_disk: Path) -> None:
    """A disk that is full says so in one sentence, nothing of what did not fit stays, and what was there is whole."""
    blobs = LocalBlobs(small_disk / "blobs")
    kept = await blobs.put(new_key(), cut(noise(3 * MB)))
    for _ in range(3):
        key = new_key()
        with pytest.raises(Unavailable) as refused:
            await blobs.put(key, cut(noise(20 * MB)))
        assert refused.value.code == "blob.full"
        assert str(small_disk) in refused.value.sentence
        assert await blobs.stat(key) is None
        assert not any((small_disk / "blobs" / "temporary").iterdir())
    assert await verified(blobs, kept.key) == kept
    (small_disk / "rest").write_bytes(bytes(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize))
    with pytest.raises(Unavailable) as refused:
        await blobs.check()
    assert refused.value.code == "blob.full"
    (small_disk / "rest").unlink()
    await blobs.check()
    assert (await blobs.put(new_key(), cut(noise(MB)))).size == MB


async def test_four_processes_and_one_key(local_kind: Kind) -> None:
    """Of twenty puts by four processes one wins: the file system decides, not this program's memory."""
    assert local_kind.address
    key = new_key()
    async with (
        child("race", key, *local_kind.address) as first,
        child("race", key, *local_kind.address) as second,
        child("race", key, *local_kind.address) as third,
        child("race", key, *local_kind.address) as fourth,
    ):
        others = (first, second, third, fourth)
        assert [await other.heard() for other in others] == ["begun"] * 4
        await asyncio.gather(*(other.go() for other in others))
        outcomes = [outcome for other in others for outcome in await other.heard()]
    (won,) = [outcome for outcome in outcomes if outcome != "blob.exists"]
    assert len(outcomes) == 20
    assert (await verified(local_kind.blobs, key)).sha256 == won


async def test_killed_at_any_moment(local_kind: Kind) -> None:
    """Twelve processes are killed while they write one object after the other: what is seen is whole, always."""
    assert local_kind.address
    random, size = Random(3), 3 * MB  # noqa: S311 - repeatable, not secret
    for _ in range(12):
        async with child("fill", str(size), *local_kind.address) as other:
            assert await other.heard() == "begun"
            await asyncio.sleep(random.uniform(0.01, 0.15))
            await other.kill()
    found = [each async for each in local_kind.blobs.walk()]
    assert found
    for each in found:
        assert (await verified(local_kind.blobs, each.key, Promise(size=size))).size == each.size
    later = datetime.now(UTC) + timedelta(minutes=1)
    left = [leftover async for leftover in local_kind.blobs.leftovers(later)]
    assert await local_kind.blobs.reap(later) == len(left) > 0
    assert len(local_kind.files()) == len(found)


async def test_a_living_writer_is_not_reaped(local_kind: Kind) -> None:
    """However long a client takes, nobody takes the file away under it."""
    key, begun, more = new_key(), asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield bytes(2 * MB)
        begun.set()
        await more.wait()
        yield b"end"

    putting = asyncio.create_task(local_kind.blobs.put(key, slow()))
    await begun.wait()
    assert local_kind.folder
    (draft,) = (local_kind.folder / "temporary").iterdir()
    os.utime(draft, (1, 1))
    assert [left async for left in local_kind.blobs.leftovers(datetime.now(UTC))] == []
    assert await local_kind.blobs.reap(datetime.now(UTC)) == 0
    more.set()
    assert (await putting).size == 2 * MB + 3


@pytest.mark.parametrize("call", range(4))
async def test_what_cannot_be_made_durable_is_not_there(
    local_kind: Kind, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """When the disk fails as the file, or one of its folders, is made durable, the put fails and nothing is seen."""
    real, calls = os.fsync, iter(range(100))

    def failing(file: int) -> None:
        if next(calls) == call:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(file)

    key = new_key()
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(Unavailable) as refused:
        await local_kind.blobs.put(key, stream(b"bytes"))
    monkeypatch.undo()
    assert refused.value.code == "blob.unreachable"
    assert local_kind.files() == []
    assert (await local_kind.blobs.put(key, stream(b"bytes"))).size == 5
    assert next(calls) == call + 1


async def test_durable_before_seen(local_kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is made durable, then named, then its folders are made durable, up to the top."""
    steps: list[str] = []
    real_sync, real_link = os.fsync, os.link

    def sync(file: int) -> None:
        steps.append((OPEN / str(file)).readlink().name)
        real_sync(file)

    def link(source: Path, target: Path) -> None:
        steps.append("link")
        real_link(source, target)

    if not OPEN.exists():
        pytest.skip("this system does not tell which file is which")
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)
    key = new_key()
    await local_kind.blobs.put(key, stream(b"bytes"))
    assert steps[1:] == ["link", key[3:5], key[:2], "objects"]


async def test_no_links(local_kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that cannot name a file without replacing another is refused with the reason."""

    def refuse(*paths: Path) -> None:
        del paths
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(Unavailable) as refused:
        await local_kind.blobs.put(new_key(), stream(b"bytes"))
    assert refused.value.code == "blob.no_links"
    assert local_kind.files() == []


def test_a_folder_that_cannot_be_one(home: Path) -> None:
    """A file where the folder should be is a sentence, not a traceback."""
    (home / "blobs").write_text("I was here first")
    with pytest.raises(Problem) as refused:
        LocalBlobs(home / "blobs")
    assert refused.value.code == "blob.unreachable"
    assert str(home) in refused.value.sentence


async def test_other_peoples_files_are_left_alone(local_kind: Kind) -> None:
    """What is not an object is neither listed nor reaped by mistake, and hinders nothing."""
    assert local_kind.folder
    key = new_key()
    await local_kind.blobs.put(key, stream(b"bytes"))
    top = local_kind.folder / "objects"
    (top / ".DS_Store").write_text("x")
    (top / key[:2] / "notes.txt").write_text("x")
    (top / key[:5] / "copy of something").write_text("x")
    (top / "zz").mkdir()
    (top / "00").symlink_to("/etc")
    assert [found.key async for found in local_kind.blobs.walk()] == [key]


async def test_private(local_kind: Kind) -> None:
    """Nobody but the user that runs Imprint can read the files."""
    await local_kind.blobs.put(new_key(), stream(b"bytes"))
    assert local_kind.folder
    assert {each.stat().st_mode & 0o077 for each in local_kind.folder.rglob("*")} == {0}


async def test_read_in_place(local_kind: Kind) -> None:
    """The file of an object can be used directly."""
    key = new_key()
    await local_kind.blobs.put(key, stream(b"bytes"))
    path = local_kind.blobs.local_path(key)
    assert path
    assert path.read_bytes() == b"bytes"


async def test_no_file_stays_open(local_kind: Kind) -> None:
    """Puts and reads that end in every way there is leave no file open."""
    if not OPEN.exists():
        pytest.skip("this system does not tell which files are open")
    await local_kind.blobs.put(key := new_key(), cut(noise(3 * MB)))
    before = open_files()
    for _ in range(5):
        begun = asyncio.Event()
        putting = asyncio.create_task(local_kind.blobs.put(new_key(), endless(begun, 2)))
        await begun.wait()
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        with pytest.raises(Problem):
            await local_kind.blobs.put(key, stream(b"x"))
        with pytest.raises(Problem):
            await local_kind.blobs.put(new_key(), stream(b"x"), Promise(size=2))
        reading = asyncio.create_task(whole(local_kind.blobs, key))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await whole(local_kind.blobs, key)

    async def closed() -> bool:
        return open_files() <= before

    await until(closed)
