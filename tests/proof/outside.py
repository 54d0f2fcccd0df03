"""A PostgreSQL of somebody else, on a port of this machine: `python -m tests.proof.outside start FOLDER`."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import asyncpg
import psutil

from imprint.store import binaries

PORT_FILE = "port"
SECONDS = 30


def make(folder: Path) -> str:
    """Make a cluster, and give the address at which it will be."""
    who = binaries.account()
    data = folder / "data"
    data.mkdir(mode=0o700)
    os.chown(data, who.uid, who.gid)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / PORT_FILE).write_text(str(port))
    command: list[str | os.PathLike[str]] = [
        binaries.binary("initdb", who),
        "--pgdata",
        data,
        "--username",
        "lender",
        "--auth=trust",
        "--no-sync",
    ]
    made = binaries.start(command, who)
    written, _ = made.communicate()
    assert made.returncode == 0, written
    return f"postgresql://lender@127.0.0.1:{port}/postgres"


def start(folder: Path) -> None:
    """Start it, and come back when its port answers."""
    who, port = binaries.account(), int((folder / PORT_FILE).read_text())
    options = {"listen_addresses": "127.0.0.1", "port": str(port), "unix_socket_directories": "", "io_method": "sync"}
    command: list[str | os.PathLike[str]] = [binaries.binary("postgres", who), "-D", folder / "data"]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    deadline = time.monotonic() + SECONDS
    # While processes of a killed one are still there, a new one does not start.
    while time.monotonic() < deadline:
        server = binaries.start(command, who, output=subprocess.DEVNULL)
        while server.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.02)
        time.sleep(0.1)
    sys.exit("it does not start")


def stop(folder: Path, how: signal.Signals) -> None:
    """Send a signal to the server, and come back when it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, how)
        deadline = time.monotonic() + SECONDS
        with suppress(psutil.NoSuchProcess):
            # One that nobody has asked how it ended is over as well.
            while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
                time.sleep(0.02)


async def databases(url: str) -> set[str]:
    """Name the databases it has."""
    connection = await asyncpg.connect(url)
    try:
        return {row["datname"] for row in await connection.fetch("SELECT datname FROM pg_database")}
    finally:
        await connection.close()


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "start":
        start(where)
    else:
        stop(where, signal.Signals[what])
