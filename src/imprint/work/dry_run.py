"""Dry run: exactly what would be sent of a post, and what stands in the way; nothing is sent and nothing is written."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from imprint.images.fit import VERSION
from imprint.lifecycles.publication import PublicationStatus
from imprint.platforms.contract import Platform
from imprint.platforms.limits import Misfit
from imprint.platforms.login import Login
from imprint.platforms.request import Multipart, Raw, Request
from imprint.platforms.work import File, Work
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work import account as accounts
from imprint.work.account import Account
from imprint.work.claim import UPLOADS
from imprint.work.content import ORIGINAL
from imprint.work.content import Bytes as Kept
from imprint.work.post import Planned, Shown, lacks, show
from imprint.work.rendition import MADE, rendered, unfit
from imprint.work.schedule import DEFAULT, NOW
from imprint.work.snapshot import Sending, Snapshot, described, look
from imprint.work.stores import Stores
from imprint.work.vault import Vault, platform

# The once-key of a publication is its id, and that it gets when it is planned.
UNPLANNED = "(the id of the publication, which it gets when it is planned)"
WHEN_SENT = "(known when it is sent)"
WHEN_MADE = "(known when the rendition is made)"
ABOUT_THE_FILE = ("Content-Type", "Content-Length")
NOTES = {
    PublicationStatus.RUNNING: "It is on its way at this moment.",
    PublicationStatus.SUCCESS: "It is out already; nothing would be sent.",
    PublicationStatus.FAILED: "It failed; this is what another try would send.",
}


@dataclass(frozen=True)
class Standing:
    """What is fixed of a publication already."""

    made_at: datetime | None
    revision: int
    snapshot: str | None
    snapshot_sha256: str | None

    @property
    def frozen(self) -> Snapshot | None:
        """Give what may be out of it: only the very same is sent again."""
        if self.snapshot is None or self.snapshot_sha256 is None:
            return None
        return Snapshot(self.snapshot, self.snapshot_sha256)


@dataclass(frozen=True)
class Said:
    """What the last request of a publication said."""

    account_id: UUID
    platform: str
    snapshot: str
    snapshot_sha256: str


STANDING = query("dry_run_standing", Standing)
SENT = query("dry_run_sent", Said)


@dataclass(frozen=True)
class Fitted:
    """A file of the post and the form in which it goes; `why` a rendition is needed, `made` whether it is there."""

    original: File
    sent: File
    why: tuple[Misfit, ...] = ()
    made: bool = True

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        data = {"name": self.original.name, "as": "rendition" if self.why else "original", "made": self.made}
        sent = {"type": self.sent.type, "size": self.sent.size, "sha256": self.sent.sha256} if self.made else {}
        return {**data, **sent, "why": [each.sentence for each in self.why]}


@dataclass(frozen=True)
class Shape:
    """A request as people may see it; `sha256` is that of its body, None while some of it is not known yet."""

    shown: dict[str, Any]
    sha256: str | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {**self.shown, "sha256": self.sha256}


@dataclass(frozen=True)
class Rehearsal:
    """What one publication would send, or would if it were planned; `problems` are what stands in the way."""

    account: Account
    publication: Planned | None
    note: str | None = None
    problems: tuple[Problem | Misfit, ...] = ()
    files: tuple[Fitted, ...] = ()
    requests: tuple[Shape, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        planned = self.publication
        return {
            "accountId": self.account.id,
            "account": self.account.shown,
            "platform": self.account.platform,
            "publicationId": planned.id if planned else None,
            "status": planned.status if planned else None,
            "actualPublishAt": planned.due_at if planned else None,
            "note": self.note,
            "problems": [{"code": each.code, "sentence": each.sentence} for each in self.problems],
            "files": [each.as_data() for each in self.files],
            "requests": [each.as_data() for each in self.requests],
        }


@dataclass(frozen=True)
class _Ready:
    """Everything that had to be read from the database for one rehearsal."""

    begun: Rehearsal
    to: Platform[Any]
    login: Login
    work: Work


async def dry_run(
    database: Database, stores: Stores, vault: Vault, owner: str, post: UUID, *, only: Sequence[UUID] = ()
) -> list[Rehearsal]:
    """Rehearse every publication of a post; for accounts on which it is not planned, what it would be there.

    Without publications and without accounts it is rehearsed on the default account.
    """
    async with database.connection() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        shown = await show(connection, owner, post)
        planned = [each for each in shown.publications if each.status != PublicationStatus.CANCELLED]
        wanted = list(only) or [each.account_id for each in planned] or [await _default(connection, owner)]
        ready: list[_Ready | Rehearsal] = []
        for account_id in dict.fromkeys(wanted):
            account = await accounts.show(connection, owner, account_id)
            there = [each for each in planned if each.account_id == account_id]
            targets = there or _parts(shown)
            ready += [await _ready(connection, stores, vault, shown, account, target) for target in targets]
    return [each if isinstance(each, Rehearsal) else await _rehearsed(each) for each in ready]


async def sent(database: Database, stores: Stores, vault: Vault, publication: UUID) -> tuple[Shape, ...]:
    """Give the requests of a publication as they last left, made again of what was frozen then; none if none left."""
    async with database.connection() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        said = await SENT.first(connection, publication)
        if said is None:
            return ()
        to, login = platform(said.platform), (await vault.get(connection, said.account_id)).login
        snapshot = Snapshot(said.snapshot, said.snapshot_sha256)
        work, contents = await _opened(connection, stores, snapshot)
        uploads = tuple(await UPLOADS.all(connection, publication, snapshot.data["revision"]))
        files = [await _fitted(connection, stores, to, login, work, file, contents[file.sha256]) for file in work.files]
    work = replace(work, files=tuple(each.sent for each in files))
    unmade = {file.sent.sha256 for file in files if not file.made}
    whole = await to.preview(login, work)
    known = await to.preview(login, replace(work, uploads=uploads))  # with what the platform called the files by then
    return tuple([await _shape(each, unmade) for each in [*whole[: len(whole) - len(known)], *known]])


async def _default(connection: Link, owner: str) -> UUID:
    found = await DEFAULT.first(connection, owner)
    if found is None:
        raise Problem("account.no_default", "It is not planned, and there is no default account; name an account.")
    return found.id


def _parts(shown: Shown) -> list[UUID | None]:
    """List what would be planned: the post, or each file of it."""
    return [file.id for file in shown.files] if shown.post.upload_mode == "multiple" and shown.files else [None]


async def _ready(
    connection: Link, stores: Stores, vault: Vault, shown: Shown, account: Account, target: Planned | UUID | None
) -> _Ready | Rehearsal:
    planned = target if isinstance(target, Planned) else None
    to = platform(account.platform)
    begun = Rehearsal(account, planned, _note(planned, to))
    if planned is not None and planned.status == PublicationStatus.SUCCESS:
        return begun
    try:
        login = (await vault.get(connection, account.id)).login
        work, contents = await _work(connection, stores, shown, account, target, to.limits_for(login).most_files)
        files = [await _fitted(connection, stores, to, login, work, file, contents[file.sha256]) for file in work.files]
    except Problem as problem:
        return replace(begun, problems=(problem,))
    work = replace(work, files=tuple(each.sent for each in files))
    mended = {each for file in files if not file.made for each in file.why}
    misfits = tuple(each for each in to.validate(login, work) if each not in mended)
    left_out = len(shown.files) - len(files) if shown.post.upload_mode == "single" else 0
    if left_out > 0:
        more = f"{left_out} of its files do not go: {to.name} takes {len(files)} in one post."
        begun = replace(begun, note=f"{begun.note} {more}" if begun.note else more)
    return _Ready(replace(begun, files=tuple(files), problems=misfits), to, login, work)


def _note(planned: Planned | None, to: Platform[Any]) -> str | None:
    if planned is None:
        return "It is not planned there yet."
    if planned.status == PublicationStatus.UNKNOWN:
        return f"Nobody knows whether it is out. Imprint {to.once.promise}."
    return NOTES.get(PublicationStatus(planned.status))


async def _work(
    connection: Link,
    stores: Stores,
    shown: Shown,
    account: Account,
    target: Planned | UUID | None,
    most: int | None,
) -> tuple[Work, dict[str, UUID]]:
    """Give what would be sent, and whose the bytes are: what was frozen if it may be out, else what the post says."""
    now = (await NOW.one(connection)).now
    if isinstance(target, Planned):
        stands = await STANDING.one(connection, target.id)
        made_at = now if stands.made_at is None else stands.made_at
        snapshot = stands.frozen or await look(connection, target.id, made_at, most)
        uploads = tuple(await UPLOADS.all(connection, target.id, stands.revision))
    else:
        if missing := lacks(shown.post, shown.files):
            raise missing
        sending = Sending(UUID(int=0), shown.post.id, shown.post.owner, account.id, account.platform, target)
        snapshot = Snapshot.of({**described(sending, shown.post, shown.files, now, most), "key": UNPLANNED})
        uploads = ()
    work, contents = await _opened(connection, stores, snapshot)
    return replace(work, uploads=uploads), contents


async def _opened(connection: Link, stores: Stores, snapshot: Snapshot) -> tuple[Work, dict[str, UUID]]:
    """Give what a snapshot sends, and whose the bytes are."""
    contents = {file["sha256"]: UUID(file["contentId"]) for file in snapshot.data["files"]}
    places = {content: await ORIGINAL.first(connection, content) for content in contents.values()}
    return snapshot.work(lambda content: partial(_read, stores, places[content])), contents


async def _fitted(
    connection: Link, stores: Stores, to: Platform[Any], login: Login, work: Work, file: File, content: UUID
) -> Fitted:
    """Say in which form a file goes; a rendition that is not there yet is not made."""
    wanted = unfit(to, login, work, file)
    if not wanted.why:
        return Fitted(file, file)
    made = await MADE.first(connection, content, wanted.limits.variant, VERSION)
    if made is None:
        return Fitted(file, file, wanted.why, made=False)
    return Fitted(file, rendered(file, made, partial(_read, stores, made)), wanted.why)


async def _rehearsed(ready: _Ready) -> Rehearsal:
    unmade = {file.sent.sha256 for file in ready.begun.files if not file.made}
    try:
        requests = await ready.to.preview(ready.login, ready.work)
        shapes = [await _shape(each, unmade) for each in requests]
    except Problem as problem:  # options that cannot be sent, bytes that are gone or no longer what they were
        return replace(ready.begun, problems=(*ready.begun.problems, problem))
    return replace(ready.begun, requests=tuple(shapes))


async def _shape(request: Request, unmade: Collection[str]) -> Shape:
    known = request.known and not unmade
    return Shape(_shown(request, unmade), await request.digest() if known else None)


def _shown(request: Request, unmade: Collection[str]) -> dict[str, Any]:
    """Show a request; what is not known yet is not made up: the size of a body, a rendition still to be made."""
    shown, body = request.shown(), request.body
    if not request.known:
        shown["headers"]["Content-Length"] = WHEN_SENT
    if not isinstance(body, Multipart | Raw) or body.file.sha256 not in unmade:
        return shown
    file = {"file": body.file.name, "rendition": WHEN_MADE}
    told = [*shown["body"][:-1], [body.part, file]] if isinstance(body, Multipart) else file
    return {**shown, "headers": {**shown["headers"], **dict.fromkeys(ABOUT_THE_FILE, WHEN_MADE)}, "body": told}


async def _read(stores: Stores, kept: Kept | None) -> AsyncIterator[bytes]:
    if kept is None:
        raise Problem("file.missing", "The bytes of a file of this post are not where they should be.")
    async for chunk in stores.of(kept.store).read(kept.key):
        yield chunk
