"""An outcome: how an attempt ended, as data that can be decided upon, written down and read again."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from imprint.decisions import publishing as decisions
from imprint.platforms.contract import Receipt
from imprint.platforms.failure import Failure, NoAnswer, NotYet, RateLimited, Refused, SignInAgain

LONGEST_SENTENCE = 2000
LONGEST_CODE = 200
LONGEST_URL = 5000


@dataclass(frozen=True)
class Outcome:
    """What a platform said, or how far it got; `kind` is one of the closed set that the database knows."""

    kind: str
    code: str | None = None
    sentence: str | None = None
    after_seconds: float | None = None
    renewable: bool = False
    stage: str | None = None
    http_status: int | None = None
    remote_id: str | None = None
    url: str | None = None

    @property
    def after(self) -> timedelta | None:
        """Say how long the platform asked us to wait."""
        return None if self.after_seconds is None else timedelta(seconds=self.after_seconds)

    def event(self) -> decisions.Event:
        """Give it as what the decisions know."""
        events: dict[str, decisions.Event] = {
            "published": decisions.Accepted(),
            "refused": decisions.Refused(self.code or "refused"),
            "sign_in_again": decisions.SignInAgain(self.renewable),
            "rate_limited": decisions.RateLimited(self.after),
            "not_yet": decisions.NotYet(self.after),
            "stopped": decisions.Stopped(),
        }
        return events.get(self.kind, decisions.NoAnswer())


@dataclass(frozen=True)
class Ended:
    """An attempt that has ended: which one, how, which circuits shall know, signed in as whom, how long to rest."""

    publication: UUID
    fence: int
    outcome: Outcome
    circuits: tuple[str, ...]
    account: UUID
    version: int
    rest_seconds: float = 0.0

    def text(self) -> str:
        """Write it down."""
        ids = {"publication": str(self.publication), "account": str(self.account)}
        return json.dumps(asdict(self) | ids)

    @classmethod
    def read(cls, text: str) -> "Ended":
        """Read what was written down."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            UUID(data["publication"]),
            int(data["fence"]),
            Outcome(**data["outcome"]),
            tuple(map(str, data["circuits"])),
            UUID(data["account"]),
            int(data["version"]),
            float(data.get("rest_seconds", 0)),
        )


KINDS: Mapping[type[Failure], str] = {
    Refused: "refused",
    SignInAgain: "sign_in_again",
    RateLimited: "rate_limited",
    NotYet: "not_yet",
    NoAnswer: "no_answer",
}
STOPPED = Outcome("stopped", "worker.stopped", "The worker was stopped.")


def published(receipt: Receipt) -> Outcome:
    """Say that it is out."""
    url = _plain(receipt.url or "")[:LONGEST_URL]
    return Outcome("published", remote_id=_plain(receipt.remote_id), url=url or None)


def failed(failure: Failure) -> Outcome:
    """Say what a platform's failure was."""
    after = failure.after if isinstance(failure, NotYet | RateLimited | NoAnswer) else None
    evidence = failure.evidence if isinstance(failure, NotYet | NoAnswer) else None
    return Outcome(
        KINDS[type(failure)],
        failure.code[:LONGEST_CODE],
        _plain(failure.sentence)[:LONGEST_SENTENCE],
        after_seconds=None if after is None else after.total_seconds(),
        renewable=isinstance(failure, SignInAgain) and failure.renewable,
        stage=None if evidence is None else str(evidence.stage),
        http_status=None if evidence is None else evidence.status,
    )


def _plain(text: str) -> str:
    """Keep what the database can hold."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
