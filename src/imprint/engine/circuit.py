"""A circuit: stops calls to something that keeps refusing, for every worker at once, and lets one try when time is up.

A key names what is guarded: `account:<uuid>` and `host:<name>` by publishing, `source:<uuid>` by polling,
`target:<uuid>` by notifying. The state lives in the database only, and each operation is one statement, so it does not
matter who asks or how many do.
A transaction that reports to several keys does so in the order of their names: then no two wait for each other.

    closed ──failures in a row, or asked to wait──▶ open ──its time is over──▶ one caller has the probe
      ▲                                              ▲                                  │
      └──────────────────── it worked ───────────────┼──────────────────────────────────┤
                                                     └──── it failed: twice as long ────┘
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from imprint.log import hide_in_text
from imprint.store.query import Link, Nothing, query

LONGEST_WHY = 500
_READ_OF_WHY = 20_000  # looking for passwords in megabytes of somebody's error page would take long

Kind: TypeAlias = Literal["rate limit", "error"]


@dataclass(frozen=True)
class Policy:
    """When a circuit opens and for how long; rate limits and errors are counted apart, each in a row."""

    rate_limits: int
    errors: int
    first: timedelta
    longest: timedelta  # the open time doubles with each opening in a row, up to this
    longest_wait: timedelta  # what a Retry-After may ask for at most
    probe: timedelta  # how long a probe may take before somebody else gets it
    failures: int | None = None  # of either kind, together

    def __post_init__(self) -> None:
        """Refuse what could never open, or never close."""
        counts = (self.rate_limits, self.errors, 1 if self.failures is None else self.failures)
        if (
            min(counts) < 1
            or min(self.first, self.longest_wait, self.probe) <= timedelta(0)
            or self.longest < self.first
        ):
            raise ValueError(f"a circuit cannot work like this: {self}")


@dataclass(frozen=True)
class Answer:
    """Whether a call may be made: closed (yes), probe (yes, you alone, report before `until`), open (not before)."""

    state: Literal["closed", "open", "probe"]
    until: datetime | None
    why: str | None

    @property
    def may_call(self) -> bool:
        """Say whether the one who asked may call."""
        return self.state != "open"


@dataclass(frozen=True)
class Failures:
    """Where a circuit stands after a failure; `openings` is 0 while it only waits as long as it was asked to."""

    rate_limits: int
    errors: int
    openings: int
    open_until: datetime | None


# The longest wait is a day, because that is the longest window over which a platform counts (Bluesky's).
PUBLISHING = Policy(
    rate_limits=3,
    errors=5,
    first=timedelta(minutes=5),
    longest=timedelta(hours=1),
    longest_wait=timedelta(days=1),
    probe=timedelta(minutes=2),
)

# For a source a failed poll is a failed poll, whatever the reason.
POLLING = Policy(
    rate_limits=5,
    errors=5,
    failures=5,
    first=timedelta(hours=24),
    longest=timedelta(hours=24),
    longest_wait=timedelta(days=1),
    probe=timedelta(minutes=2),
)

# The third failure in a row opens it, so that the five attempts of a message ride out some minutes.
NOTIFYING = Policy(
    rate_limits=3,
    errors=3,
    failures=3,
    first=timedelta(minutes=2),
    longest=timedelta(hours=1),
    longest_wait=timedelta(days=1),
    probe=timedelta(minutes=2),
)

_ASK = query("circuit_ask", Answer)
_FAILED = query("circuit_failed", Failures)
_WORKED = query("circuit_worked", Nothing)
_FORGET = query("circuit_forget", Nothing)
_PROBE = query("circuit_probe", Nothing)


async def ask(connection: Link, key: str, policy: Policy) -> Answer:
    """Ask before a call; whoever is handed the probe reports back with `worked` or `failed`."""
    return await _ASK.one(connection, key, policy.probe)


async def failed(
    connection: Link, key: str, policy: Policy, kind: Kind, why: str, *, after: timedelta | None = None
) -> Failures:
    """Report a call that failed, and how long the other side asked us to wait."""
    return await _FAILED.one(
        connection,
        key,
        kind,
        _short(why),
        policy.rate_limits,
        policy.errors,
        # This many together cannot be without one of the kinds having reached its own number.
        policy.rate_limits + policy.errors - 1 if policy.failures is None else policy.failures,
        policy.first,
        policy.longest,
        after,
        policy.longest_wait,
    )


async def worked(connection: Link, key: str) -> bool:
    """Report a call that worked; True when there were failures to forget."""
    return await _WORKED.run(connection, key) > 0


async def forget(connection: Link, key: str) -> bool:
    """Close a circuit because a person says so; True when there was something to forget."""
    return await _FORGET.run(connection, key) > 0


async def probe(connection: Link, key: str) -> bool:
    """Let the next call be the probe because a person wants it tried now; True when the circuit was open."""
    return await _PROBE.run(connection, key) > 0


def _short(why: str) -> str:
    """Keep what PostgreSQL can hold and a person would read of an error that may come from anywhere."""
    clean = hide_in_text(why[:_READ_OF_WHY]).replace("\0", "").encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= LONGEST_WHY else clean[: LONGEST_WHY - 1] + "…"
