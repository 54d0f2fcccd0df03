"""Backups: the whole database in one file, written by pg_dump and read by pg_restore."""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import asyncpg

from imprint.problem import Busy, Problem, Unavailable
from imprint.store import incarnation, migrate
from imprint.store.binaries import binary
from imprint.store.db import connect
from imprint.store.query import Nothing, query

IS_EMPTY = query("backup_is_empty", migrate.There)
DROP_RESTORED = query("backup_drop_restored", Nothing)
CREATE_RESTORED = query("backup_create_restored", Nothing)
SET_ASIDE = query("backup_set_aside", Nothing)
PUT_IN_PLACE = query("backup_put_in_place", Nothing)
DROP_SET_ASIDE = query("backup_drop_set_aside", Nothing)
FORGET_WORKERS = query("worker_forget_all", Nothing)


async def back_up(url: str, target: Path, *, replace: bool = False) -> int:
    """Write the whole database into a file and say how many bytes; the file is whole or not there."""
    if target.name == "-" or (target.exists() and not target.is_file()):
        raise Problem("backup.not_a_file", f"A backup is written into a file; {target} is something else.")
    target = target.resolve()  # a link stays a link
    if target.exists() and not replace:
        raise Problem("backup.exists", f"{target} is already there; choose another name or use --force.")
    if not target.parent.is_dir():
        raise Unavailable("backup.unwritable", f"There is no folder {target.parent}.")
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        await _tool("pg_dump", url, "--format=custom", "--no-owner", "--no-acl", f"--file={partial}")
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
        return target.stat().st_size
    except OSError as error:
        raise Unavailable("backup.unwritable", f"{target} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def note(home: Path) -> None:
    """Remember that a backup was made now, wherever its file is."""
    folder = home / "backups"
    with suppress(OSError):  # a backup that is not remembered is still one
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "made").touch()


def last(home: Path) -> datetime | None:
    """Say when the last backup was made that this home knows of."""
    with suppress(OSError):
        times = [each.stat().st_mtime for each in (home / "backups").iterdir() if not each.name.startswith(".")]
        return datetime.fromtimestamp(max(times), UTC) if times else None
    return None


async def back_up_before(url: str, folder: Path, why: str, *, keep: int) -> Path:
    """Write a backup with the time and the reason in its name, and drop the oldest ones beyond `keep`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{why}.dump"
    await back_up(url, target)
    for old in sorted(folder.glob(f"*-{why}.dump"))[:-keep]:
        old.unlink(missing_ok=True)
    return target


async def restore_beside(url: str, file: Path, backups: Path, *, keep: int) -> Path | None:
    """Replace the embedded database by a backup and say where the old one was saved.

    The backup is read into a database beside the one in use; only when it is whole and ours do the two change
    places, in one transaction. Sends are held: the database has forgotten what was sent since.
    """
    await _check_readable(file)
    restored = _named(url, "imprint_restored")
    admin = await connect(_named(url, "postgres"))
    try:
        await DROP_RESTORED.run(admin)
        await DROP_SET_ASIDE.run(admin)  # a restore that was killed after the two had changed places
        await CREATE_RESTORED.run(admin)
        await _read_into(restored, file)
        empty = await _is_empty(url)
        saved = None if empty else await back_up_before(url, backups, "before-restore", keep=keep)
        try:
            async with admin.transaction():
                await SET_ASIDE.run(admin)
                await PUT_IN_PLACE.run(admin)
        except asyncpg.ObjectInUseError as error:
            raise Busy("database.in_use", "Somebody is still connected to the database; stop Imprint first.") from error
        await DROP_SET_ASIDE.run(admin)
    finally:
        await admin.close()
    return saved


async def restore_into(url: str, file: Path) -> None:
    """Read a backup into an empty database on a server."""
    await _check_readable(file)
    if not await _is_empty(url):
        raise Problem(
            "restore.not_empty",
            "The database is not empty; create a new one on the server and let IMPRINT_DATABASE_URL name it.",
        )
    await _read_into(url, file)


async def _read_into(url: str, file: Path) -> None:
    await asyncio.to_thread(_pour, url, file)
    connection = await connect(url)
    try:
        await migrate.pending(connection)
        await FORGET_WORKERS.run(connection)
        await incarnation.BEGIN.run(connection)
        await incarnation.HOLD.run(connection, f"it was restored from {file.name}")
    finally:
        await connection.close()


def _pour(url: str, file: Path) -> None:
    """Let pg_restore write SQL and psql run it in one transaction.

    Between the two the one setting is dropped that servers before 17 do not know.
    """
    bare, password = _without_password(url)
    reading: list[str | Path] = [binary("pg_restore"), "--no-owner", "--no-acl", "--file=-", file]
    writing: list[str | Path] = [binary("psql"), "--no-psqlrc", "--quiet", "--single-transaction"]
    writing += ["--set=ON_ERROR_STOP=1", bare]
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(reading, stdout=subprocess.PIPE, stderr=complaints, env=_environment()) as reader,  # noqa: S603
        subprocess.Popen(  # noqa: S603 - our own programs and arguments
            writing, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaints, env=_environment(password)
        ) as writer,
    ):
        if reader.stdout is None or writer.stdin is None:  # pragma: no cover - both were asked for
            raise RuntimeError("no pipes")
        with suppress(BrokenPipeError):
            for line in reader.stdout:
                if not line.startswith(b"SET transaction_timeout"):
                    writer.stdin.write(line)
                if line.startswith(b"SET row_security"):  # the last of the settings: what follows may be large
                    break
            shutil.copyfileobj(reader.stdout, writer.stdin)
        with suppress(BrokenPipeError):
            writer.stdin.close()
        if reader.wait() | writer.wait():
            complaints.seek(0)
            raise Problem("restore.failed", f"{file} cannot be restored: {_reason(complaints.read())}")


async def _is_empty(url: str) -> bool:
    connection = await connect(url)
    try:
        return (await IS_EMPTY.one(connection)).there
    finally:
        await connection.close()


async def _check_readable(file: Path) -> None:
    if not file.is_file():
        raise Problem("restore.missing", f"There is no file {file}.")
    listed = await _run([binary("pg_restore"), "--list", file], None, "restore.not_a_backup", f"{file} is not a backup")
    # Looked at before anything of it is run: what a dump holds is run with all rights.
    if not all(f" TABLE public {table} " in listed for table in ("migration", "incarnation", "lifecycle_move")):
        raise Problem("restore.not_ours", f"{file} is a backup, but not of Imprint.")


async def _tool(name: str, url: str, *arguments: str) -> None:
    bare, password = _without_password(url)
    await _run([binary(name), f"--dbname={bare}", *arguments], password, f"backup.{name}", f"{name} failed")


async def _run(command: list[str | Path], password: str | None, code: str, what: str) -> str:
    def run() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603 - our own program and arguments
            command,
            env=_environment(password),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            umask=0o077,  # a backup is everything Imprint knows
        )

    done = await asyncio.to_thread(run)
    if done.returncode:
        raise Problem(code, f"{what}: {_reason(done.stderr)}")
    return done.stdout


def _environment(password: str | None = None) -> dict[str, str]:
    """Give the password through the environment, where `ps` does not show it."""
    return {**os.environ, "LC_ALL": "C"} | ({"PGPASSWORD": password} if password else {})


def _reason(complaints: str) -> str:
    """Take the first thing PostgreSQL complains about, without the names of its programs."""
    lines = [line for line in complaints.splitlines() if "error" in line.lower()] or complaints.splitlines()
    first = lines[0] if lines else "no reason given"
    return re.sub(r"^(?:\S+: )*?(?:error|ERROR|fatal|FATAL): +", "", first).rstrip(".") + "."


def _named(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def _without_password(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    password = options.pop("password", None) or (unquote(parts.password) if parts.password else None)
    user_at = f"{parts.username}@" if parts.username else ""
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=user_at + place, query=urlencode(options, quote_via=quote))), password
