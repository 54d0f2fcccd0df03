"""The embedded PostgreSQL: one server per home, up while somebody uses it, and stopped by whoever leaves last.

Who may do what is decided by locks of the kernel on two folders, so a killed process leaves nothing behind:
`postgres` is locked by the one that starts or stops the server, `postgres/run` is shared by all that use it.
"""

import asyncio
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from urllib.parse import quote

import asyncpg
import psutil
import structlog

from imprint.problem import Busy, Unavailable, WrongVersion
from imprint.store import binaries
from imprint.store.home import PORT, Home, disk_full, explained, prepared

log = structlog.get_logger()

DATABASE = "imprint"
USER = "postgres"

_POLL_SECONDS = 0.01
_STOP_SECONDS = 30
_QUIT_SECONDS = 10
_LOG_BYTES = 10_000_000
_LOG_TAIL_BYTES = 100_000
_WAL_SEGMENT_BYTES = 16 * 2**20

_OPTIONS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "io_method": "sync",
    "jit": "off",
    # Shared memory files fall to systemd's RemoveIPC when a person logs out and to the 64 MB of a container:
    # what the server itself needs is taken from its own memory, and queries do not run in parallel.
    "min_dynamic_shared_memory": "16MB",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "max_logical_replication_workers": "0",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
}

# The servers this process started, by their data. They must be asked about their end, or they stay as zombies.
_children: dict[Path, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Server:
    """A server that answers: how to reach it, where its data is and which process it is."""

    url: str
    data: Path
    pid: int


@dataclass(frozen=True)
class _PidFile:
    """What postmaster.pid says; it outlives a killed server."""

    pid: int
    sockets: Path | None
    ready: bool


@asynccontextmanager
async def running(home: Path, *, start_seconds: float = 120) -> AsyncIterator[Server]:
    """Yield the server of this home, started if it is not up; on leaving stop it unless somebody else uses it."""
    deadline = monotonic() + start_seconds
    with explained(home):
        here = await asyncio.to_thread(prepared, home)
        async with _gate(here, deadline) as gate:
            run = here.open_run(gate)
            try:
                await _locked(run, fcntl.LOCK_SH, here, deadline)
                await _initialised(here, gate)
                server = await _started(here, deadline)
            except BaseException as error:
                # A server that is still recovering goes on, or recovery would begin again with each try.
                if not (isinstance(error, Unavailable) and error.code == "database.start_timeout"):
                    await _stopped_if_unused(here, run)
                os.close(run)
                raise
    try:
        yield server
    finally:
        try:
            async with _gate(here, monotonic() + _STOP_SECONDS):
                await _stopped_if_unused(here, run)
        except (Busy, OSError) as error:
            log.warning("the embedded database stays up until its next user leaves", reason=str(error))
        finally:
            os.close(run)


@asynccontextmanager
async def _gate(home: Home, deadline: float) -> AsyncIterator[int]:
    """Let one process at a time start or stop the server."""
    gate = home.open()
    try:
        await _locked(gate, fcntl.LOCK_EX, home, deadline)
        yield gate
    finally:
        os.close(gate)  # not unlocked: an initdb that outlives a killed start keeps the gate shut until it has ended


async def _locked(folder: int, kind: int, home: Home, deadline: float) -> None:
    while not _lock(folder, kind):
        if monotonic() > deadline:
            raise Busy(
                "database.busy",
                f"Another process is still starting or stopping the database in {home.root}; try again later.",
            )
        await asyncio.sleep(_POLL_SECONDS)


def _lock(folder: int, kind: int) -> bool:
    try:
        fcntl.flock(folder, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _initialised(home: Home, gate: int) -> None:
    """Make the cluster aside and rename it when it is whole and on the disk, so that there is never half a one."""
    fresh = home.root / "data.new"
    await asyncio.to_thread(_removed, fresh)
    if await asyncio.to_thread(_has_cluster, home):
        return
    command = [
        *(os.fspath(binaries.binary("initdb", home.owner)), "--pgdata", os.fspath(fresh), "--username", USER),
        *("--auth=trust", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        "--no-instructions",
    ]
    # initdb syncs everything to the disk itself; it holds the gate too, should we be killed before it ends.
    process = binaries.start(command, home.owner, pass_fds=(gate,))
    written = await binaries.finish(process)
    if process.returncode:
        failure = _start_failure(home, written)
        await asyncio.to_thread(_removed, fresh)
        raise failure
    await asyncio.to_thread(fresh.rename, home.data)
    await asyncio.to_thread(os.fsync, gate)


def _removed(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _has_cluster(home: Home) -> bool:
    try:
        version = (home.data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        if not home.data.exists() or not any(home.data.iterdir()):
            return False
        raise Unavailable(
            "database.not_a_cluster",
            f"{home.data} holds files but no database of PostgreSQL; move them away or set IMPRINT_HOME.",
        ) from None
    if version != str(binaries.MAJOR):
        raise WrongVersion(
            "database.cluster_version",
            f"The database in {home.data} was made by PostgreSQL {version} and this Imprint brings {binaries.MAJOR}; "
            "back it up with the Imprint that made it and restore it here.",
        )
    return True


async def _started(home: Home, deadline: float) -> Server:
    """Start the server unless it is up, starting or stopping, and wait until it answers."""
    log_start: int | None = None
    while monotonic() < deadline:
        seen = await asyncio.to_thread(_pid_file, home)
        alive = await asyncio.to_thread(_server_process, home, seen)
        # A server that answers counts as up even if its process cannot be seen, as in another container.
        if seen and seen.sockets and (seen.ready if alive == seen.pid else not alive and _answers(seen.sockets)):
            if await _has_database(seen.sockets, home, deadline):
                host = quote(os.fspath(seen.sockets), safe="/")
                return Server(f"postgresql://{USER}@/{DATABASE}?host={host}&port={PORT}", home.data, seen.pid)
        elif not alive:
            if log_start is not None:
                written = await asyncio.to_thread(_log_since, home, log_start)
                if "pre-existing shared memory block" not in written:
                    raise _start_failure(home, written)
                await asyncio.to_thread(_end_orphans, home)
            # Not in a thread: a start that is cancelled must know its child.
            log_start = _spawn(home, seen)
        await asyncio.sleep(_POLL_SECONDS)
    raise Unavailable(
        "database.start_timeout",
        f"The database in {home.data} is not ready yet, perhaps because it recovers from a crash; try again later "
        "or raise IMPRINT_DATABASE_START_SECONDS.",
    )


def _pid_file(home: Home) -> _PidFile | None:
    """Read postmaster.pid: process, data, start, port, socket folder, address, shared memory, status."""
    try:
        text = (home.data / "postmaster.pid").read_text(errors="surrogateescape")
    except FileNotFoundError:
        return None
    lines = [line.strip() for line in text.split("\n")] + [""] * 8
    if not re.fullmatch(r"-?[1-9]\d*", lines[0]):
        return None
    # A copied or moved home still names the old one's sockets, behind which there is another server.
    sockets = lines[4] if lines[1] == os.fspath(home.data) else os.fspath(home.root / "run")
    return _PidFile(abs(int(lines[0])), Path(sockets) if sockets else None, ready=lines[7] == "ready")


def _server_process(home: Home, seen: _PidFile | None) -> int | None:
    """Say which living process is the server, be it our child that has not written its pid yet."""
    child = _children.get(home.data)
    if child and child.poll() is None:
        return child.pid
    return seen.pid if seen and _works_on(home, seen.pid) else None


def _works_on(home: Home, pid: int) -> bool:
    """Ask the process what it is, since a pid alone may be somebody else's by now."""
    try:
        process = psutil.Process(pid)
        return (
            process.name() == "postgres"
            and process.status() != psutil.STATUS_ZOMBIE
            and process.cwd() == os.fspath(home.data)
        )
    except psutil.Error:
        return False


def _answers(sockets: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0)
        try:
            probe.connect(os.fspath(sockets / f".s.PGSQL.{PORT}"))
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True


def _spawn(home: Home, stale: _PidFile | None) -> int:
    """Start the server, whatever pid a killed one left behind, and say where its part of the log begins."""
    sockets = home.sockets()
    for left in sockets.glob(".s.PGSQL.*"):
        left.unlink()
    if stale is None:  # a pid file without a pid is of a server killed as it began; PostgreSQL would stop at it
        (home.data / "postmaster.pid").unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        if home.log.stat().st_size > _LOG_BYTES:
            home.log.replace(home.log.with_suffix(".log.1"))
    options = _OPTIONS | {"unix_socket_directories": os.fspath(sockets)}
    command = [os.fspath(binaries.binary("postgres", home.owner)), "-D", os.fspath(home.data)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    output = os.open(home.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.fchown(output, home.owner.uid, home.owner.gid)
        log_start = os.fstat(output).st_size
        # PostgreSQL takes a pid file with its grandparent's pid for stale. So it starts even if that pid now is
        # another's, and still checks by the shared memory the file names that no old process works on the data.
        grandparent = str(stale.pid if stale else 0)
        _children[home.data] = binaries.start(command, home.owner, output=output, PG_GRANDPARENT_PID=grandparent)
    finally:
        os.close(output)
    return log_start


def _end_orphans(home: Home) -> None:
    """End the processes of a killed server: they hold the data back, and nothing they still do can be kept."""
    for process in psutil.process_iter():
        if _works_on(home, process.pid):
            with suppress(psutil.Error):
                process.kill()


async def _has_database(sockets: Path, home: Home, deadline: float) -> bool:
    """Connect, and make the database if it is missing; false if the server takes no connection now."""
    try:
        try:
            connection = await _connected(sockets, DATABASE, deadline)
        except asyncpg.InvalidCatalogNameError:
            connection = await _connected(sockets, "postgres", deadline)
            try:
                await connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'")
            finally:
                await connection.close()
        else:
            await connection.close()
    except (OSError, asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError):
        return False
    except asyncpg.TooManyConnectionsError:
        return True
    except asyncpg.PostgresError as error:
        raise _start_failure(home, f"FATAL: {error}") from error
    return True


async def _connected(sockets: Path, database: str, deadline: float) -> "asyncpg.Connection[asyncpg.Record]":
    seconds = max(deadline - monotonic(), 1)
    return await asyncpg.connect(host=os.fspath(sockets), port=PORT, user=USER, database=database, timeout=seconds)


def _log_since(home: Home, start: int) -> str:
    with home.log.open("rb") as file:
        file.seek(max(start, os.fstat(file.fileno()).st_size - _LOG_TAIL_BYTES))
        return file.read().decode(errors="replace")


def _start_failure(home: Home, written: str) -> Unavailable:
    # On a full disk the reason cannot even be written down: then what is left of the disk tells it.
    space = os.statvfs(home.root)
    full = not written.strip() and space.f_bavail * space.f_frsize < _WAL_SEGMENT_BYTES
    if full or binaries.says_disk_full(written):
        return disk_full(home.root)
    return Unavailable(
        "database.start_failed", f"The database in {home.data} does not start: {binaries.complaint(written)}."
    )


async def _stopped_if_unused(home: Home, run: int) -> None:
    """Give up our share, and stop the server if nobody else has one; the gate is shut, so that nobody comes in."""
    try:
        if _lock(run, fcntl.LOCK_EX):
            await _stopped(home)
    finally:
        fcntl.flock(run, fcntl.LOCK_UN)


async def _stopped(home: Home) -> None:
    """Ask for a fast shutdown, then for an immediate one, which loses nothing but makes the next start recover."""
    for request, seconds in ((signal.SIGINT, _STOP_SECONDS), (signal.SIGQUIT, _QUIT_SECONDS)):
        deadline = monotonic() + seconds
        asked = False
        while monotonic() < deadline:
            seen = await asyncio.to_thread(_pid_file, home)
            server = await asyncio.to_thread(_server_process, home, seen)
            if server is None:
                return
            if not asked:
                with suppress(ProcessLookupError):
                    os.kill(server, request)
                asked = True
            await asyncio.sleep(_POLL_SECONDS)
    log.warning("the embedded database does not stop", data=os.fspath(home.data))
