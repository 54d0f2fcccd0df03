"""Folders: they appear whole or not at all, once for each key, and never outside."""

import errno
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.platforms.failure import NotYet, Refused
from imprint.platforms.folder import MANIFEST, Folder, FolderLogin
from imprint.platforms.work import Work
from tests.platforms.recorded import Recorded
from tests.platforms.works import picture, work

HTTP = Recorded()
NOBODY = 65_534


async def put(login: FolderLogin, made: Work) -> Path:
    """Upload and publish; give the folder."""
    for file in made.files:
        made = made.with_upload(await Folder().upload(HTTP, login, made, file, lambda _: None))
    receipt = await Folder().publish(HTTP, login, made)
    return login.folder / receipt.remote_id


async def test_a_published_folder_is_whole(tmp_path: Path) -> None:
    """Every file is there with the bytes that the manifest names, and nothing else."""
    made = work(files=(picture(name="a.PNG"), picture(seed=2, name="b")))
    folder = await put(FolderLogin(folder=tmp_path), made)
    told = json.loads((folder / MANIFEST).read_bytes())
    assert told["key"] == made.key
    assert told["work"]["title"] == made.title
    assert [each["sha256"] for each in told["files"]] == [file.sha256 for file in made.files]
    for each in told["files"]:
        data = (folder / each["path"]).read_bytes()
        assert (len(data), sha256(data).hexdigest()) == (each["size"], each["sha256"])
    assert len(list(folder.iterdir())) == 3
    assert list(tmp_path.iterdir()) == [folder]


TITLES = st.text(max_size=80) | st.sampled_from(
    ["..", ".", "/", "../..", "/etc/passwd", "~root", "a/../../b", "\\\\x\\y", "CON", "\0", ".git", "x" * 5000]
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TITLES, TITLES)
async def test_no_title_leads_outside(tmp_path: Path, title: str, name: str) -> None:
    """Whatever a work and its file are called, all that is written is one folder inside."""
    inside = tmp_path / "inside"
    inside.mkdir(exist_ok=True)
    before = set(inside.iterdir())
    folder = await put(FolderLogin(folder=inside), work(title=title, files=(picture(100, name=name),)))
    assert set(inside.iterdir()) - before == {folder}
    assert folder.resolve().parent == inside.resolve()
    assert all(path.parent == folder and path.is_file() for path in folder.rglob("*"))
    assert list(tmp_path.iterdir()) == [inside]


async def test_a_name_that_is_taken_by_something_else_is_left_alone(tmp_path: Path) -> None:
    """What a person has put at the same place is not replaced."""
    made = work()
    login = FolderLogin(folder=tmp_path)
    (request, *_) = await Folder().preview(login, made)
    target = Path(request.url.removeprefix("file://")).parent
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(Refused) as refused:
        await put(login, made)
    assert refused.value.code == "folder.taken"
    assert (target / "mine.txt").read_text() == "mine"


async def test_a_changed_title_finds_the_same_folder(tmp_path: Path) -> None:
    """The key decides, not the title."""
    made = work()
    login = FolderLogin(folder=tmp_path)
    folder = await put(login, made)
    renamed = replace(made, title="Another")
    found = await Folder().find(HTTP, login, renamed, datetime.now(UTC))
    assert found
    assert found.remote_id == folder.name
    assert await put(login, renamed) == folder


async def test_an_attempt_that_died_leaves_nothing_to_see(tmp_path: Path) -> None:
    """What was staged and never published is hidden, and the next attempt uses or replaces it."""
    made = work()
    login = FolderLogin(folder=tmp_path)
    remote = await Folder().upload(HTTP, login, made, made.files[0], lambda _: None)
    (staging,) = tmp_path.iterdir()
    assert staging.name.startswith(".")
    assert await Folder().find(HTTP, login, made, datetime.now(UTC)) is None
    (staging / remote.id).write_bytes(b"torn")
    folder = await put(login, made)
    assert sha256((folder / remote.id).read_bytes()).hexdigest() == made.files[0].sha256


async def test_a_death_just_before_it_appears_is_not_taken_for_a_publish(tmp_path: Path) -> None:
    """The hidden folder is complete, manifest and all, and still nobody has seen it."""
    made = work()
    login = FolderLogin(folder=tmp_path)
    folder = await put(login, made)
    staging = tmp_path / f".imprint-{folder.name.rpartition('-')[2]}"
    folder.rename(staging)
    assert await Folder().find(HTTP, login, made, datetime.now(UTC)) is None
    assert await put(login, made) == folder
    assert not staging.exists()


async def test_somebody_tidied_up_in_between(tmp_path: Path) -> None:
    """A file that was uploaded and then removed is simply written again by the publish."""
    made = work()
    login = FolderLogin(folder=tmp_path)
    remote = await Folder().upload(HTTP, login, made, made.files[0], lambda _: None)
    next(tmp_path.rglob(remote.id)).unlink()
    receipt = await Folder().publish(HTTP, login, made.with_upload(remote))
    assert (tmp_path / receipt.remote_id / remote.id).stat().st_size == made.files[0].size


async def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A disk that is not mounted is waited for; nothing is written beside it."""
    login = FolderLogin(folder=tmp_path / "disk")
    for call in (
        Folder().check(HTTP, login, work()),
        Folder().publish(HTTP, login, work()),
        Folder().upload(HTTP, login, work(), picture(), lambda _: None),
        Folder().find(HTTP, login, work(), datetime.now(UTC)),
        Folder().begin(HTTP, {"folder": str(login.folder)}, ""),
    ):
        with pytest.raises(NotYet) as seen:
            await call
        assert seen.value.code == "folder.missing"
    assert list(tmp_path.iterdir()) == []


@contextmanager
def powerless() -> Iterator[None]:
    """Be a user without rights for a while: root may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_folder_that_cannot_be_written_to_is_refused(home: Path) -> None:
    """Rights do not come by waiting: the person is told."""
    home.chmod(0o555)
    with powerless():
        with pytest.raises(Refused) as refused:
            await Folder().check(HTTP, FolderLogin(folder=home), work())
        assert refused.value.code == "folder.read_only"
        with pytest.raises(Refused):
            await Folder().publish(HTTP, FolderLogin(folder=home), work())


async def test_a_staging_folder_of_somebody_else_is_refused(home: Path) -> None:
    """Rights that are missing deeper down are named the same way."""
    made = work()
    login = FolderLogin(folder=home)
    await Folder().upload(HTTP, login, made, made.files[0], lambda _: None)
    (staging,) = home.iterdir()
    staging.chmod(0o555)
    home.chmod(0o777)
    with powerless(), pytest.raises(Refused) as refused:
        await Folder().upload(HTTP, login, made, made.files[0], lambda _: None)
    assert refused.value.code == "folder.read_only"
    staging.chmod(0o755)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_full_disk_is_not_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The kernel's word that the disk is full becomes a wait; filling a real one would take the machine's."""

    def full(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    made = work()
    login = FolderLogin(folder=tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(NotYet) as seen:
            await put(login, made)
    assert seen.value.code == "folder.full"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert (await put(login, made)).is_dir()


async def test_a_real_disk_that_is_full(home: Path) -> None:
    """A disk of 64 kilobytes takes no file of 200, says so, and takes it when there is room."""
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", home], capture_output=True, check=False)  # noqa: S607
    if mount.returncode != 0:
        pytest.skip("only root may mount a small disk")
    try:
        made = work()
        with pytest.raises(NotYet) as seen:
            await put(FolderLogin(folder=home), made)
        assert seen.value.code == "folder.full"
        assert [path for path in home.rglob("*") if path.is_file()] == []
        subprocess.run(["mount", "-o", "remount,size=1m", home], check=True)  # noqa: S607
        assert (await put(FolderLogin(folder=home), made)).is_dir()
    finally:
        subprocess.run(["umount", home], check=True)  # noqa: S607
