"""Homes for tests: folders that the server's user can enter, and that go with everything in them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from imprint.problem import Problem
from imprint.store import embedded
from imprint.store.embedded import running

ROOT = os.geteuid() == 0
SECONDS = 20

# Both are everybody's, as the server's user must get there; in them we make folders of our own.
_MEMORY = Path("/dev/shm")  # noqa: S108 - see above
_DISK = Path("/tmp")  # noqa: S108 - see above
_ENOUGH_BYTES = 2**30


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder for homes, in memory where there is enough, and leave no server and no file behind."""
    memory = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES
    path = Path(tempfile.mkdtemp(prefix="imprint-test-", dir=_MEMORY if memory else _DISK)).resolve()
    path.chmod(0o711)
    try:
        yield path
    finally:
        _end_all_in(path)
        shutil.rmtree(path)


def _end_all_in(path: Path) -> None:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd().startswith(f"{path}/"):
                process.kill()
    for data, child in embedded._children.items():
        if path in data.parents:
            child.wait(SECONDS)


def copied(source: Path, target: Path) -> None:
    """Copy a home with its owners."""
    plain = ["--sparse=never"] if sys.platform == "linux" else []  # GNU's way to look for holes takes a second
    subprocess.run(["/bin/cp", "-a", *plain, source, target], check=True)


async def problem(home: Path, start_seconds: float = SECONDS) -> Problem:
    """Try to use the server and return the problem there is."""
    with pytest.raises(Problem) as caught:
        async with running(home, start_seconds=start_seconds):
            pytest.fail("it started")
    sentence = caught.value.sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return caught.value


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """Mount a small disk."""
    mount: list[str | Path] = ["/bin/mount", "-t", "tmpfs", "-o", f"size={size},mode=0711", "tmpfs", path]
    if not ROOT or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        yield
    finally:
        subprocess.run(["/bin/umount", path], check=True)


def make_read_only(path: Path) -> None:
    """Make a mounted disk read-only."""
    subprocess.run(["/bin/mount", "-o", "remount,ro", path], check=True)
