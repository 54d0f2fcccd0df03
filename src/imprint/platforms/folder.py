"""Folder: publishes a work as a folder of files with a manifest, which appears whole or not at all.

The path follows from the once-key, so the same work sent twice is one folder. Everything is written into a hidden
folder beside it, made to last (fsync) and then renamed: a power cut leaves nothing, or all of it.
"""

import asyncio
import errno
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, ClassVar
from uuid import uuid4

from imprint.killpoint import here
from imprint.platforms.answer import Answer
from imprint.platforms.contract import TOKEN, Http, Once, Quota, Receipt
from imprint.platforms.failure import Evidence, Failure, NoAnswer, NotYet, Refused, SignInAgain, Stage
from imprint.platforms.limits import Limits, Misfit, misfits
from imprint.platforms.login import Ask, Errand, Login
from imprint.platforms.options import Options
from imprint.platforms.request import Progress, Raw, Request, Text
from imprint.platforms.work import File, RemoteFile, Work

LIMITS = Limits()
MANIFEST = "manifest.json"
LONGEST_SLUG = 60
# A person has to do something about it: all attempts together last half an hour.
AWAY = timedelta(minutes=5)
_FULL = {errno.ENOSPC, errno.EDQUOT}
_FORBIDDEN = {errno.EROFS, errno.EACCES, errno.EPERM}
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENODEV, errno.ENXIO}
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY}


class FolderLogin(Login):
    """The folder that works are published into."""

    folder: Path


class Folder:
    """The folder platform."""

    name: ClassVar[str] = "folder"
    limits: ClassVar[Limits] = LIMITS
    once: ClassVar[Once] = TOKEN
    can_look: ClassVar[bool] = True
    login_type = FolderLogin
    options: ClassVar[type[Options]] = Options
    asks: ClassVar[tuple[Ask, ...]] = (Ask("folder", "The folder to publish into; it must be there already."),)

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> FolderLogin | Errand:
        """Add a folder that is there and can be written to."""
        del http, redirect_url
        folder = Path(given["folder"]).expanduser().absolute()
        login = FolderLogin(name=str(folder), folder=folder)
        _see(login)
        return login

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> FolderLogin:
        """Refuse: nobody is ever sent away by a folder."""
        del http, errand, returned_to
        raise Refused("sign_in.not_begun", "A folder needs no browser.")

    async def renew(self, http: Http, login: FolderLogin) -> FolderLogin:
        """Refuse: a folder has nothing to renew."""
        del http, login
        raise SignInAgain("folder.no_token", "A folder has no access to renew.", renewable=False)

    async def revoke(self, http: Http, login: FolderLogin) -> bool:
        """Give nothing back: a folder has no token."""
        del http, login
        return False

    def host(self, login: FolderLogin) -> str:
        """Name none: each folder is on a disk of its own."""
        del login
        return ""

    def quota(self, answer: Answer) -> Quota | None:
        """Read nothing: a disk does not count calls."""
        del answer
        return None

    def limits_for(self, login: FolderLogin) -> Limits:
        """Give the limits: what fits on the disk."""
        del login
        return self.limits

    def validate(self, login: FolderLogin, work: Work) -> list[Misfit]:
        """List what does not fit."""
        del login
        return misfits(self.name, self.limits, work)

    async def check(self, http: Http, login: FolderLogin, work: Work) -> None:
        """See that the folder is there: a disk that is not mounted must not be written beside."""
        del http, work
        _see(login)

    async def upload(self, http: Http, login: FolderLogin, work: Work, file: File, progress: Progress) -> RemoteFile:
        """Write a file into the hidden folder."""
        del http
        _see(login)
        name = _names(work)[file.sha256]
        await _write(login, _staging(login, work) / name, file, progress)
        return RemoteFile(name, file.sha256)

    async def prepare(self, http: Http, login: FolderLogin, work: Work) -> Work:
        """Need nothing besides the files."""
        del http, login
        return work

    async def publish(self, http: Http, login: FolderLogin, work: Work) -> Receipt:
        """Write the manifest and let the folder appear; if it is there already, that is the same work."""
        del http
        _see(login)
        if found := await asyncio.to_thread(_published, login, work):
            return found
        staging = _staging(login, work)
        for file in work.files:
            staged = staging / _names(work)[file.sha256]
            # Somebody may have tidied up since the upload; what is missing is simply written again.
            if not staged.is_file() or staged.stat().st_size != file.size:
                await _write(login, staged, file, lambda _: None)
        return await asyncio.to_thread(_appear, login, work)

    async def find(
        self, http: Http, login: FolderLogin, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Look for the folder by the hash of the key."""
        del http, since, besides
        _see(login)
        return await asyncio.to_thread(_published, login, work)

    async def preview(self, login: FolderLogin, work: Work) -> list[Request]:
        """Give every file that would be written."""
        target = login.folder / _name(work)
        writes = [
            Request("write a file", "WRITE", (target / _names(work)[file.sha256]).as_uri(), body=Raw(file))
            for file in work.files
        ]
        manifest = Text(_manifest(work))
        return [*writes, Request("write the manifest", "WRITE", (target / MANIFEST).as_uri(), body=manifest)]


def _hash(work: Work) -> str:
    return sha256(work.key.encode()).hexdigest()[:24]


def _name(work: Work) -> str:
    # Only letters, digits and single dashes of a title survive: no separator, no dot, nothing that leads elsewhere.
    plain = unicodedata.normalize("NFKD", work.title)
    slug = re.sub(r"[^a-z0-9]+", "-", plain.encode("ascii", "ignore").decode().lower())[:LONGEST_SLUG].strip("-")
    return f"{slug or 'untitled'}-{_hash(work)}"


def _names(work: Work) -> dict[str, str]:
    """Name each file by its place and what it is; of the client's own name only a harmless ending is kept."""
    names: dict[str, str] = {}
    for place, file in enumerate(work.files, 1):
        ending = re.search(r"\.([a-z0-9]{1,8})$", file.name.lower())
        names.setdefault(file.sha256, f"{place:02d}-{file.sha256[:16]}" + (f".{ending[1]}" if ending else ""))
    return names


def _staging(login: FolderLogin, work: Work) -> Path:
    return login.folder / f".imprint-{_hash(work)}"


def _manifest(work: Work) -> bytes:
    names = _names(work)
    files = [{"path": names[file.sha256], "sha256": file.sha256, "size": file.size} for file in work.files]
    told = {"imprint": 1, "key": work.key, "work": work.as_data(), "files": files}
    return json.dumps(told, ensure_ascii=False, indent=2).encode("utf-8", "replace")


def _published(login: FolderLogin, work: Work) -> Receipt | None:
    """Find the folder of this key with a manifest that says the same; its title may have been changed since."""
    with _disk(login):
        # Not the hidden one: that has a manifest too, for a moment before it appears.
        for found in sorted(login.folder.glob(f"[!.]*-{_hash(work)}")):
            try:
                told = json.loads((found / MANIFEST).read_bytes())
            except (FileNotFoundError, NotADirectoryError, ValueError):
                continue
            if isinstance(told, dict) and told.get("key") == work.key:
                return Receipt(found.name, found.as_uri())
    return None


async def _write(login: FolderLogin, path: Path, file: File, progress: Progress) -> None:
    """Write a file so that it is there whole and lasts, or not at all; in threads, since a disk can be slow."""
    temporary = path.with_name(f".{uuid4().hex}.partial")
    with _disk(login):
        path.parent.mkdir(mode=0o755, exist_ok=True)
        opened = temporary.open("xb")
    try:
        sent = 0
        async for chunk in file.read():
            with _disk(login):
                await asyncio.to_thread(opened.write, chunk)
            sent += len(chunk)
            progress(sent)
        with _disk(login):
            await asyncio.to_thread(_settle, opened)
            temporary.replace(path)
            await asyncio.to_thread(_sync_folder, path.parent)
    finally:
        opened.close()
        temporary.unlink(missing_ok=True)


def _appear(login: FolderLogin, work: Work) -> Receipt:
    staging, target = _staging(login, work), login.folder / _name(work)
    with _disk(login):
        staging.mkdir(mode=0o755, exist_ok=True)
        temporary = staging / f".{uuid4().hex}.partial"
        with temporary.open("xb") as opened:
            opened.write(_manifest(work))
            _settle(opened)
        temporary.replace(staging / MANIFEST)
        _sync_folder(staging)
        here("folder_before_appears")
        try:
            staging.rename(target)
        except OSError as error:
            # Another attempt with the same key was quicker; anything else at this path is not ours to replace.
            found = _published(login, work) if error.errno in {*_TAKEN, errno.ENOENT} else None
            if found is not None:
                return found
            if error.errno in _TAKEN:
                raise Refused("folder.taken", f"Something else is already at {target.name} in the folder.") from error
            raise
    here("folder_after_appears")
    try:
        _sync_folder(login.folder)
    except OSError as error:
        evidence = Evidence(Stage.WAITING)
        raise NoAnswer(
            "folder.not_lasting", f"The disk does not say that {target.name} will last.", evidence
        ) from error
    return Receipt(target.name, target.as_uri())


def _settle(opened: BinaryIO) -> None:
    opened.flush()
    os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _see(login: FolderLogin) -> None:
    with _disk(login):
        if not login.folder.is_dir():
            raise _missing(login)
        if not os.access(login.folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise _read_only(login)


@contextmanager
def _disk(login: FolderLogin) -> Iterator[None]:
    """Classify what a disk refuses; the path is the same whenever it is tried again, so nothing is lost."""
    try:
        yield
    except OSError as error:
        raise _failure(login, error) from error


def _failure(login: FolderLogin, error: OSError) -> Failure:
    if error.errno in _FULL:
        return _away("folder.full", f"The disk of {login.folder} is full; make room and it goes on.")
    if error.errno in _FORBIDDEN:
        return _read_only(login)
    if error.errno in _NOT_THERE:
        return _missing(login)
    return _away("folder.disk", f"The disk of {login.folder} gave an error: {os.strerror(error.errno or 0)}.")


def _read_only(login: FolderLogin) -> Refused:
    return Refused("folder.read_only", f"Imprint may not write to {login.folder}; change its rights.")


def _missing(login: FolderLogin) -> NotYet:
    return _away("folder.missing", f"{login.folder} is not there; is its disk mounted?")


def _away(code: str, sentence: str) -> NotYet:
    """Say that nothing can be written now; a disk that is away is waited for as a platform that is."""
    return NotYet(code, sentence, after=AWAY, evidence=Evidence(Stage.CONNECTING))
