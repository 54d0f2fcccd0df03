"""Measuring: how much room a post takes on each account, whether it is ready or not."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from imprint.platforms.measure import Measure, measures
from imprint.problem import Problem
from imprint.store.query import Link
from imprint.work import account as accounts
from imprint.work.account import Account
from imprint.work.post import PostFile, Shown, show
from imprint.work.schedule import NOW
from imprint.work.snapshot import Sending, Snapshot, described
from imprint.work.vault import Vault, platform

NOBODY = UUID(int=0)


@dataclass(frozen=True)
class Room:
    """An account, and what a post takes of its room; nothing is known of an account that has no sign-in."""

    account: Account
    measures: list[Measure]


async def rooms(connection: Link, vault: Vault, owner: str, post: UUID, on: Sequence[UUID]) -> list[Room]:
    """Measure a post for accounts."""
    shown = await show(connection, owner, post)
    now = (await NOW.one(connection)).now
    found = []
    for each in dict.fromkeys(on):
        account = await accounts.show(connection, owner, each)
        sending = Sending(NOBODY, post, owner, account.id, account.platform, _first_file(shown))
        work = Snapshot.of(described(sending, shown.post, [_sized(file) for file in shown.files], now, None))
        try:
            login = (await vault.get(connection, account.id)).login
        except Problem:
            found.append(Room(account, []))
            continue
        limits = platform(account.platform).limits_for(login)
        found.append(Room(account, measures(limits, work.work(lambda _: _nothing))))
    return found


def _first_file(shown: Shown) -> UUID | None:
    """Give the file that stands for all when each goes alone."""
    return shown.files[0].id if shown.post.upload_mode == "multiple" and shown.files else None


def _sized(file: PostFile) -> PostFile:
    """Take a file whose bytes are still on their way for an empty one."""
    return replace(file, size=file.size or 0, sha256=file.sha256 or "", content_type=file.content_type or "")


async def _nothing() -> AsyncIterator[bytes]:
    """Give no bytes: what is measured is not sent."""
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk
