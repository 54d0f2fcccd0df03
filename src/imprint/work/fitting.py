"""Fitting: whether a post can go to an account as it is; asked before it is planned, so that a refusal comes at once.

It says what a dry run says, and what a worker would say when the time has come. A file that a rendition can mend is no
hindrance; an account whose sign-in cannot be opened now is looked at when the post goes.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from imprint.platforms.failure import Refused
from imprint.platforms.limits import Misfit
from imprint.problem import Problem
from imprint.store.query import Link
from imprint.work.post import Post, PostFile
from imprint.work.snapshot import Sending, Snapshot, described
from imprint.work.vault import Opened, Vault, platform

NOBODY = UUID(int=0)


@dataclass(frozen=True)
class Fitting:
    """Tries posts on; what each account signs in with is opened once, however many posts there are."""

    vault: Vault
    _opened: dict[UUID, Opened | None] = field(default_factory=dict, repr=False)

    async def refuse(
        self,
        connection: Link,
        post: Post,
        files: Sequence[PostFile],
        account: UUID,
        parts: Sequence[UUID | None],
        now: datetime,
    ) -> None:
        """Raise what the platform of an account would never take of a post, or of these files of it one by one."""
        if account not in self._opened:
            self._opened[account] = await self._open(connection, account)
        if (opened := self._opened[account]) is None:
            return
        to, login = platform(opened.kept.platform), opened.login
        for part in parts:
            sending = Sending(NOBODY, post.id, post.owner, account, to.name, part)
            data = described(sending, post, files, now, to.limits_for(login).most_files)
            work = Snapshot.of(data).work(lambda _: _nothing)
            if misfits := [each for each in to.validate(login, work) if not each.rendition]:
                raise unfit_for(misfits)

    async def _open(self, connection: Link, account: UUID) -> Opened | None:
        try:
            return await self.vault.get(connection, account)
        except Problem:
            return None


def unfit_for(misfits: Sequence[Misfit]) -> Refused:
    """Say everything that does not fit, under the code of the first."""
    return Refused(misfits[0].code, " ".join(each.sentence for each in misfits))


async def _nothing() -> AsyncIterator[bytes]:
    """Give no bytes: what is tried on is not sent."""
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk
