"""The twin in memory: a platform that keeps to the contract and needs nothing; for tests, not for accounts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from pydantic import SecretStr

from imprint.platforms.answer import Answer
from imprint.platforms.contract import TOKEN, Http, Once, Quota, Receipt
from imprint.platforms.failure import Failure, Refused, SignInAgain
from imprint.platforms.limits import Limits, Misfit, misfits
from imprint.platforms.login import Ask, Errand, Login
from imprint.platforms.options import Options
from imprint.platforms.request import Progress, Raw, Request, Text
from imprint.platforms.work import File, RemoteFile, Work

LIMITS = Limits(types=frozenset({"image/png", "image/jpeg"}), most_files=4, bytes=10_000_000)


class MemoryLogin(Login):
    """The only thing the twin wants to know."""

    word: SecretStr


@dataclass
class Memory:
    """A platform that remembers; `failing` is raised by the next publishes, after their effect if it applies first."""

    sent: list[str] = field(default_factory=list)
    published: dict[str, bytes] = field(default_factory=dict)
    failing: list[Failure] = field(default_factory=list)
    applies_first: bool = False

    name: ClassVar[str] = "memory"
    limits: ClassVar[Limits] = LIMITS
    once: ClassVar[Once] = TOKEN
    can_look: ClassVar[bool] = True
    login_type = MemoryLogin
    options: ClassVar[type[Options]] = Options
    asks: ClassVar[tuple[Ask, ...]] = (Ask("word", "Any word.", secret=True),)

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> MemoryLogin | Errand:
        """Take any word."""
        del http, redirect_url
        return MemoryLogin(name="memory", word=SecretStr(given["word"]))

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> MemoryLogin:
        """Refuse: nobody is ever sent away."""
        del http, errand, returned_to
        raise Refused("sign_in.not_begun", "The twin needs no browser.")

    async def renew(self, http: Http, login: MemoryLogin) -> MemoryLogin:
        """Refuse: there is nothing to renew."""
        del http, login
        raise SignInAgain("memory.word", "The twin wants another word.", renewable=False)

    async def revoke(self, http: Http, login: MemoryLogin) -> bool:
        """Give nothing back: the twin forgets no word."""
        del http, login
        return False

    def host(self, login: MemoryLogin) -> str:
        """Name none: it is in this process."""
        del login
        return ""

    def quota(self, answer: Answer) -> Quota | None:
        """Read nothing: the twin does not count."""
        del answer
        return None

    def limits_for(self, login: MemoryLogin) -> Limits:
        """Give the limits."""
        del login
        return self.limits

    def validate(self, login: MemoryLogin, work: Work) -> list[Misfit]:
        """List what does not fit."""
        del login
        return misfits(self.name, self.limits, work)

    async def check(self, http: Http, login: MemoryLogin, work: Work) -> None:
        """Find everything in order."""
        del http, login, work

    async def upload(self, http: Http, login: MemoryLogin, work: Work, file: File, progress: Progress) -> RemoteFile:
        """Read the file through."""
        del http
        request = _upload(login, work, file)
        assert request.body is not None  # noqa: S101 - for the types
        async for _ in request.body.stream(progress):
            pass
        self.sent.append(await request.digest())
        return RemoteFile(f"memory-{file.sha256[:16]}", file.sha256)

    async def prepare(self, http: Http, login: MemoryLogin, work: Work) -> Work:
        """Need nothing besides the files."""
        del http, login
        return work

    async def publish(self, http: Http, login: MemoryLogin, work: Work) -> Receipt:
        """Remember the work under its key; the same key again changes nothing."""
        del http
        failure = self.failing.pop(0) if self.failing else None
        if failure is None or self.applies_first:
            self.sent.append(await _publish(login, work).digest())
            self.published.setdefault(work.key, _body(work))
        if failure is not None:
            raise failure
        return _receipt(work)

    async def find(
        self, http: Http, login: MemoryLogin, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Look under the key."""
        del http, login, since, besides
        return _receipt(work) if work.key in self.published else None

    async def preview(self, login: MemoryLogin, work: Work) -> list[Request]:
        """Give what would be remembered."""
        missing = (file for file in work.files if work.uploaded(file) is None)
        return [*(_upload(login, work, file) for file in missing), _publish(login, work)]


def _receipt(work: Work) -> Receipt:
    return Receipt(f"memory-{work.key}", f"memory:{work.key}")


def _body(work: Work) -> bytes:
    return json.dumps(work.as_data()).encode()


def _upload(login: MemoryLogin, work: Work, file: File) -> Request:
    return Request("upload", "PUT", f"memory:{work.key}/{file.sha256}", (("Word", login.word),), Raw(file))


def _publish(login: MemoryLogin, work: Work) -> Request:
    return Request("publish", "PUT", f"memory:{work.key}", (("Word", login.word),), Text(_body(work)))
