"""The home of the embedded database: its folders, whom they belong to, and in a sentence why they cannot be used."""

import errno
import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from imprint.problem import Unavailable
from imprint.store import binaries

PORT = 5432  # only a part of the socket's name; said everywhere, since a PGPORT would change it

_PRIVATE = 0o700  # the server trusts everybody who can reach its socket
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103


@dataclass(frozen=True)
class Home:
    """Where one server keeps everything, and which user of the operating system runs it."""

    root: Path
    owner: binaries.Account

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.root / "data"

    @property
    def log(self) -> Path:
        """What the server writes down."""
        return self.root / "postgres.log"

    def open(self) -> int:
        """Open the folder that is locked by whoever starts or stops the server."""
        return os.open(self.root, _FOLDER)

    def open_run(self, root: int) -> int:
        """Open the folder that all users of the server lock together; what is in the way of the server is set right."""
        with suppress(FileExistsError):
            os.mkdir("run", _PRIVATE, dir_fd=root)
        run = os.open("run", _FOLDER, dir_fd=root)
        # Through the open folders and not by name, so that root can be led nowhere else.
        for folder in (run, root):
            if os.fstat(folder).st_uid != self.owner.uid:
                os.fchown(folder, self.owner.uid, self.owner.gid)
            if stat.S_IMODE(os.fstat(folder).st_mode) != _PRIVATE:
                os.fchmod(folder, _PRIVATE)
        return run

    def sockets(self) -> Path:
        """Choose a private folder whose path is short and plain enough for a socket, and make it if need be."""
        run = self.root / "run"
        if _fits(run):
            return run
        name = f"imprint-{self.owner.uid}-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]}"
        for parent in (Path(tempfile.gettempdir()).resolve(), Path("/tmp").resolve()):  # noqa: S108 - checked below
            folder = parent / name
            if not _fits(folder) or binaries.blocked(parent, self.owner):
                continue
            with suppress(FileExistsError):
                folder.mkdir(_PRIVATE)
            found = folder.lstat()
            if found.st_uid == os.geteuid() != self.owner.uid:
                os.chown(folder, self.owner.uid, self.owner.gid, follow_symlinks=False)
                found = folder.lstat()
            if found.st_uid == self.owner.uid and found.st_mode == stat.S_IFDIR | _PRIVATE:
                return folder
            raise Unavailable(
                "database.socket_folder", f"{folder} is not a private folder of the user {self.owner.name}; remove it."
            )
        raise Unavailable("database.socket_folder", f"The path {run} is too long; set IMPRINT_HOME to a shorter one.")


def prepared(folder: Path) -> Home:
    """Make the folders down to the one that will be locked, if the user that runs the server can come there."""
    folder = folder.resolve()
    home = Home(folder / "postgres", binaries.account())
    if closed := binaries.blocked(folder, home.owner):
        raise Unavailable(
            "home.unreachable",
            f"The database runs as the user {home.owner.name}, who may not enter {closed}; "
            "set IMPRINT_HOME to a folder such as /var/lib/imprint.",
        )
    for missing in [path for path in reversed([folder, *folder.parents]) if not path.exists()]:
        with suppress(FileExistsError):
            missing.mkdir(_PRIVATE)
            if home.owner.uid != os.geteuid():
                missing.chmod(0o711)  # also below a strict umask: the server's user must pass
    if not folder.is_dir():
        raise _not_a_folder(folder)
    home.root.mkdir(_PRIVATE, exist_ok=True)
    if (uid := home.root.lstat().st_uid) not in {home.owner.uid, os.geteuid()}:
        owner = binaries.user_name(uid)
        starter = "root" if owner == binaries.SERVICE_USER else owner
        raise Unavailable(
            "home.not_yours",
            f"{home.root} belongs to the user {owner}, but the database would run as {home.owner.name}; "
            f"run Imprint as {starter} or set IMPRINT_HOME to another folder.",
        )
    return home


def exists(folder: Path) -> bool:
    """Say whether there is a database in this home already."""
    with explained(folder):
        return (folder / "postgres" / "data").exists()


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Say in a sentence what the operating system said in a number."""
    try:
        yield
    except OSError as error:
        path = Path(os.fsdecode(error.filename)) if error.filename else folder
        if explain := _SENTENCES.get(error.errno or 0):
            raise explain(path) from error
        raise Unavailable("home.unusable", f"{path} cannot be used: {error.strerror or error}.") from error


def disk_full(path: Path) -> Unavailable:
    """Say that there is no space left."""
    return Unavailable(
        "database.disk_full", f"The disk that holds {path} is full; nothing is lost: free some space and start again."
    )


def _read_only(path: Path) -> Unavailable:
    return Unavailable(
        "home.read_only", f"{path} is on a read-only disk; set IMPRINT_HOME to a folder that can be written to."
    )


def _forbidden(path: Path) -> Unavailable:
    return Unavailable(
        "home.forbidden",
        f"The user {binaries.user_name(os.geteuid())} may not use {path}; "
        "run Imprint as its owner, or set IMPRINT_HOME to a folder that this user may write to.",
    )


def _not_a_folder(path: Path) -> Unavailable:
    return Unavailable("home.not_a_folder", f"{path} is not a folder; set IMPRINT_HOME to one.")


_SENTENCES = {
    errno.ENOSPC: disk_full,
    errno.EDQUOT: disk_full,
    errno.EROFS: _read_only,
    errno.EACCES: _forbidden,
    errno.EPERM: _forbidden,
    errno.ENOTDIR: _not_a_folder,
    errno.ELOOP: _not_a_folder,
    errno.EEXIST: _not_a_folder,
}


def _fits(folder: Path) -> bool:
    # A comma, a colon or a quote would mean something else in a list of hosts.
    length = len(os.fsencode(folder / f".s.PGSQL.{PORT}"))
    return length <= _SOCKET_PATH_BYTES and re.fullmatch(r"[\w/.@+~ -]+", os.fspath(folder)) is not None
