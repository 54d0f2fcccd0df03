"""The home: who may use which folder, and one clear sentence when it cannot be used."""

import os
import pwd
import subprocess
import sys
import sysconfig
from pathlib import Path

import asyncpg
import psutil
import pytest

import imprint
from imprint.store import binaries
from imprint.store.embedded import running
from tests.store.homes import ROOT, SECONDS, folder, problem

root_only = pytest.mark.skipif(not ROOT, reason="only root can be somebody else")

SCRIPT = """
import asyncio, sys
from pathlib import Path
import asyncpg
from imprint.problem import Problem
from imprint.store.embedded import running

async def main():
    try:
        async with running(Path(sys.argv[1])) as server:
            connection = await asyncpg.connect(server.url)
            print(await connection.fetchval("SELECT current_database()"))
            await connection.close()
    except Problem as problem:
        print(problem.code, problem.sentence)

asyncio.run(main())
"""


def as_nobody(home: Path) -> str:
    """Use a home as an ordinary user, in another process, and return what it says."""
    nobody = pwd.getpwnam("nobody")
    python = Path(sys.executable)
    if binaries.blocked(python.resolve(), binaries.Account("nobody", nobody.pw_uid, nobody.pw_gid)):
        python = Path(f"/usr/bin/python{sysconfig.get_python_version()}")
        if not python.exists():
            pytest.skip("there is no Python that an ordinary user can run")
    paths = [str(Path(asyncpg.__file__).parents[1]), str(Path(imprint.__file__).parents[1])]
    done = subprocess.run(
        [str(python), "-c", SCRIPT, str(home)],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        env={"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@root_only
def test_an_ordinary_user_runs_its_own_server() -> None:
    """Without root there is no other user: everything belongs to who started it."""
    with folder() as path:
        nobody = pwd.getpwnam("nobody")
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
        assert as_nobody(path / "new" / "home") == "imprint"
        for made in (path / "new" / "home", path / "new" / "home" / "postgres" / "data" / "base"):
            assert made.stat().st_uid == nobody.pw_uid
        assert (path / "new" / "home").stat().st_mode & 0o777 == 0o700


@root_only
def test_a_home_without_permission_to_write() -> None:
    """A folder that the user may not write to is named."""
    with folder() as path:
        said = as_nobody(path / "home")
        assert said.startswith("home.forbidden The user nobody may not use ")
        assert str(path / "home") in said


@root_only
async def test_the_database_of_another_user() -> None:
    """Neither an ordinary user nor root takes over a database that somebody else runs."""
    with folder() as path:
        async with running(path / "home"):
            said = as_nobody(path / "home")
            assert said.startswith("home.not_yours")
            assert "run Imprint as root" in said
        nobody = pwd.getpwnam("nobody")
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
        assert as_nobody(path / "theirs") == "imprint"
        (path / "theirs").chmod(0o711)
        found = await problem(path / "theirs")
        assert found.code == "home.not_yours"
        assert "run Imprint as nobody" in found.sentence


@root_only
async def test_root_gives_the_database_to_the_service_user() -> None:
    """As root the server and its files are the service user's, below a home that all may pass whatever the umask."""
    mask = os.umask(0o077)
    try:
        with folder() as path:
            async with running(path / "new" / "home") as server:
                owner = pwd.getpwnam("imprint").pw_uid
                assert psutil.Process(server.pid).uids().effective == owner
                below = (path / "new" / "home").rglob("*")
                assert {found.lstat().st_uid for found in below} == {owner}
                assert {(path / name).stat().st_mode & 0o777 for name in ("new", "new/home")} == {0o711}
    finally:
        os.umask(mask)


@root_only
async def test_a_home_that_the_service_user_cannot_enter() -> None:
    """A closed folder above the home is named and stays closed, and nothing is made in it."""
    with folder() as path:
        closed = path / "closed"
        closed.mkdir(mode=0o700)
        found = await problem(closed / "home")
        assert found.code == "home.unreachable"
        assert f"may not enter {closed}; set IMPRINT_HOME to a folder such as /var/lib/imprint." in found.sentence
        assert closed.stat().st_mode & 0o777 == 0o700
        assert not list(closed.iterdir())


@pytest.mark.parametrize("name", ["home", "home/below", "link/postgres"])
async def test_a_home_that_is_a_file(name: str) -> None:
    """A file, a folder below a file and a link where the database belongs are no home."""
    with folder() as path:
        (path / "home").write_text("a file")
        (path / "link").mkdir()
        (path / "link").chmod(0o711)
        (path / "link" / "postgres").symlink_to(path)
        home = path / "link" if name.startswith("link") else path / name
        found = await problem(home)
        assert found.code == "home.not_a_folder"
        assert (path / "home").read_text() == "a file"
        assert not (path / "run").exists()
