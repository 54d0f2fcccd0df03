"""The contract of every platform; its behaviour kit is tests/conformance/test_platforms.py.

An adapter is one file and one line in the registry. It builds requests, sends them through the `http` it is given and
says what the answer means: a value, or one of the five failures. There is no retry, no database and no logging inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Protocol, TypeVar

from imprint.platforms.answer import Answer
from imprint.platforms.limits import Limits, Misfit
from imprint.platforms.login import Ask, Errand, Login
from imprint.platforms.options import Options
from imprint.platforms.request import Progress, Request
from imprint.platforms.work import File, RemoteFile, Work

L = TypeVar("L", bound=Login)


@dataclass(frozen=True)
class Once:
    """What a platform offers so that nothing goes out twice: a token that we choose, for how long, or a look only."""

    token: bool
    lasts: timedelta | None = None

    def may_resend(self, since_first_sent: timedelta) -> bool:
        """Say whether the same work may be sent again without a look; `since_first_sent` is counted from the intent."""
        return self.token and (self.lasts is None or since_first_sent < self.lasts)

    @property
    def promise(self) -> str:
        """Say it in plain words."""
        if not self.token:
            return "looks before it asks a person; never sends again blindly"
        if self.lasts is None:
            return "sends again safely: the platform knows the key"
        return f"sends again safely for {self.lasts.total_seconds() / 60:.0f} minutes; after that it looks"


TOKEN = Once(token=True)
LOOKUP = Once(token=False)


def token_for(lasts: timedelta) -> Once:
    """Make the promise of a platform that remembers a key for a while."""
    return Once(token=True, lasts=lasts)


@dataclass(frozen=True)
class Quota:
    """How many calls a platform still allows, and in how long it counts anew; so that a pace slows before a 429."""

    remaining: int
    resets_in: timedelta


@dataclass(frozen=True)
class Receipt:
    """It is out; `url` is None where the platform gives none, or only said that it is out already."""

    remote_id: str
    url: str | None = None


class Http(Protocol):
    """Sends one request on a connection of its own, before a deadline that whoever made it has set."""

    async def send(self, request: Request, progress: Progress = lambda _: None) -> Answer:
        """Send and give the whole answer, whatever its status; NotYet if nothing left, NoAnswer if something did."""
        ...


class Platform(Protocol[L]):
    """One platform; stateless: everything it needs comes with the call."""

    name: ClassVar[str]
    limits: ClassVar[Limits]
    once: ClassVar[Once]
    asks: ClassVar[tuple[Ask, ...]]
    # False where nothing can be looked up at all: `find` then always gives None, and that says nothing.
    can_look: ClassVar[bool]
    login_type: type[L]
    options: ClassVar[type[Options]]

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> L | Errand:
        """Add an account from what a person gave: a login, or an errand that needs a browser first."""
        ...

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> L:
        """End an errand with the URL that the person came back to."""
        ...

    async def renew(self, http: Http, login: L) -> L:
        """Get a fresh access; the caller lets only one process do so per account, and stores it before it is used.

        NotYet: nothing left, the old one still works for a renewal. NoAnswer: it may be burnt, one more call tells.
        """
        ...

    async def revoke(self, http: Http, login: L) -> bool:
        """Give the access back when an account is removed; False where there is nothing to give back.

        Nothing depends on it: whoever removes an account does so whether this works or fails.
        """
        ...

    def host(self, login: L) -> str:
        """Name the host that this account is called at, so that all accounts there wait when it fails; "" for none."""
        ...

    def quota(self, answer: Answer) -> Quota | None:
        """Read what an answer says about the calls that are left; None where the platform does not tell."""
        ...

    def limits_for(self, login: L) -> Limits:
        """Give the limits as they are for this account: some platforms differ from place to place."""
        ...

    def validate(self, login: L, work: Work) -> list[Misfit]:
        """List what of a work this platform will not take; empty when it fits."""
        ...

    async def check(self, http: Http, login: L, work: Work) -> None:
        """Ask cheaply whether it can go on: before a large upload, and again before the intent.

        Raises SignInAgain for a token that is no good, NotYet while something uploaded is not ready.
        """
        ...

    async def upload(self, http: Http, login: L, work: Work, file: File, progress: Progress) -> RemoteFile:
        """Upload one file, privately; never raises NoAnswer, because an upload that is lost harms nobody."""
        ...

    async def prepare(self, http: Http, login: L, work: Work) -> Work:
        """Find or make what the work needs there besides its files, and give it back with that; nobody sees a post.

        It is asked anew before every intent, so whatever it makes is made once however often it is asked.
        """
        ...

    async def publish(self, http: Http, login: L, work: Work) -> Receipt:
        """Send the one request that publishes, with the once-key wherever the platform takes one."""
        ...

    async def find(
        self, http: Http, login: L, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Look for the work, reading only; None is no proof of absence unless the platform is asked by the key.

        `since` is when it was first about to leave; `besides` are remote ids that belong to other publications.
        """
        ...

    async def preview(self, login: L, work: Work) -> list[Request]:
        """Give exactly what would be sent; nothing is sent. The last request is the one that publishes."""
        ...
