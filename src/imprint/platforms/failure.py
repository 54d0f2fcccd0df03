"""A failure: the closed set of ways in which a call to a platform can go wrong.

Adapters classify, the engine decides. What is said here comes from typed evidence (a status, a parsed code, how far
the request got), never from the text of a message.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from imprint.problem import Problem


class Stage(StrEnum):
    """How far an exchange got before it went wrong."""

    CONNECTING = "connecting"  # finding the name, TCP, TLS: nothing of the request has left
    SENDING = "sending"
    WAITING = "waiting"  # all of it has left, and not a byte came back
    READING = "reading"
    ANSWERED = "answered"  # whole, but not to be understood or not to be believed


@dataclass(frozen=True)
class Evidence:
    """What is known of an exchange that went wrong."""

    stage: Stage
    status: int | None = None

    @property
    def left(self) -> bool:
        """Say whether bytes of the request may have left; only a proof that none did makes this False."""
        return self.stage is not Stage.CONNECTING


class Failure(Problem):
    """A call to a platform that did not work; one of the five below and nothing else."""


class Refused(Failure):
    """The platform said no, or there is no use in asking: as it is, this will never be accepted."""


class SignInAgain(Failure):
    """The platform does not take the credentials; `renewable` when a fresh access token may be all that is needed."""

    def __init__(self, code: str, sentence: str, *, renewable: bool) -> None:
        super().__init__(code, sentence)
        self.renewable = renewable


class NotYet(Failure):
    """Nothing was published, and the same may well work later.

    `uploads_gone` when the platform has thrown away what was uploaded, as some do after a day: it is uploaded anew.
    """

    def __init__(
        self,
        code: str,
        sentence: str,
        *,
        after: timedelta | None = None,
        evidence: Evidence | None = None,
        uploads_gone: bool = False,
    ) -> None:
        super().__init__(code, sentence)
        self.after = after
        self.evidence = evidence
        self.uploads_gone = uploads_gone


class RateLimited(Failure):
    """The platform wants to be left alone for a while; nothing was published."""

    def __init__(self, code: str, sentence: str, *, after: timedelta | None = None) -> None:
        super().__init__(code, sentence)
        self.after = after


class NoAnswer(Failure):
    """It left, and no trustworthy answer came back: it may be out, or it may not."""

    def __init__(self, code: str, sentence: str, evidence: Evidence, *, after: timedelta | None = None) -> None:
        super().__init__(code, sentence)
        self.evidence = evidence
        self.after = after


@contextmanager
def harmless() -> Iterator[None]:
    """Turn a lost answer into NotYet, for calls whose effect nobody sees: uploads and looks."""
    try:
        yield
    except NoAnswer as lost:
        raise NotYet(lost.code, lost.sentence, after=lost.after, evidence=lost.evidence) from lost
