"""What to do next with a publication: what is known and what happened go in, one action comes out.

Nothing here does anything: no I/O, no clock, no chance of its own. So every interleaving of it can be run, and every
row of the failure table in the reliability page is one case below. Three rules stand above all others. Evidence of
success always wins. What may have left is never sent again unless the platform knows our key. What nobody can tell is
a person's to decide.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from imprint.decisions.retry import pause
from imprint.lifecycles.publication import PublicationStatus as Status


@dataclass(frozen=True)
class Policy:
    """How often, how long and how patiently."""

    attempts: int = 7
    crashes: int = 3
    looks: int = 3
    between_looks: timedelta = timedelta(minutes=15)
    quiet: timedelta = timedelta(minutes=1)  # from the deadline of the old sender to the first look
    longest_wait: timedelta = timedelta(hours=24)  # whatever a platform wishes


@dataclass(frozen=True)
class Known:
    """What is known of a publication when something happens to it."""

    status: Status
    intent: bool = False  # the request that publishes may have left, in this attempt
    left: bool = False  # an earlier attempt may be out, and nothing has disproved it since
    attempts: int = 0  # that counted, the one under way not included
    crashes: int = 0
    looks: int = 0  # that found nothing
    may_resend: bool = False  # the platform still knows our key: the same again has no second effect
    can_look: bool = False
    renewed: bool = False  # this attempt has already got fresh access once


# What can happen.


@dataclass(frozen=True)
class Accepted:
    """The platform said, now or late, or a look or a person found, that it is out."""


@dataclass(frozen=True)
class Refused:
    """The platform will never take it as it is."""

    code: str


@dataclass(frozen=True)
class SignInAgain:
    """The platform does not take the credentials."""

    renewable: bool


@dataclass(frozen=True)
class NotYet:
    """It is proven that nothing was published; it may work later."""

    after: timedelta | None = None


@dataclass(frozen=True)
class RateLimited:
    """The platform wants to be left alone for a while."""

    after: timedelta | None = None


@dataclass(frozen=True)
class NoAnswer:
    """Something left, and no trustworthy answer came back."""


@dataclass(frozen=True)
class Died:
    """The lease ended: whoever worked on it is dead, or as good as dead."""


@dataclass(frozen=True)
class Stopped:
    """The worker is asked to stop."""


@dataclass(frozen=True)
class Due:
    """The quiet period or the time between two looks is over."""


@dataclass(frozen=True)
class NotFound:
    """A look found nothing, which proves nothing."""


@dataclass(frozen=True)
class Cancelled:
    """A person does not want it any more."""


@dataclass(frozen=True)
class SaidNotOut:
    """A person has looked and says that it is not out."""


Event: TypeAlias = (
    Accepted
    | Refused
    | SignInAgain
    | NotYet
    | RateLimited
    | NoAnswer
    | Died
    | Stopped
    | Due
    | NotFound
    | Cancelled
    | SaidNotOut
)


# What is done about it.


@dataclass(frozen=True)
class Succeed:
    """It is out: record it, whoever holds the lease."""


@dataclass(frozen=True)
class TryAgain:
    """Pending again, due after a while; `counts` when it used an attempt, `crashed` when it killed a worker."""

    after: timedelta
    counts: bool = False
    crashed: bool = False


@dataclass(frozen=True)
class Renew:
    """Get fresh access and go on."""


@dataclass(frozen=True)
class HoldAccount:
    """Pending again, and its account waits for the person to sign in; the schedule is kept."""


@dataclass(frozen=True)
class GiveUp:
    """It has failed, and why."""

    code: str


@dataclass(frozen=True)
class Lose:
    """Unknown: look after a while."""

    look_after: timedelta


@dataclass(frozen=True)
class Look:
    """Look whether it is out."""


@dataclass(frozen=True)
class LookLater:
    """Nothing was seen; look again after a while."""

    after: timedelta


@dataclass(frozen=True)
class SendAgain:
    """Pending again and due: the platform knows the key (`left`: it may be out), or a person says it is not out."""

    left: bool


@dataclass(frozen=True)
class AskPerson:
    """Nobody but a person can decide."""


@dataclass(frozen=True)
class Withdraw:
    """Cancelled: nothing has left."""


@dataclass(frozen=True)
class Leave:
    """Do nothing: it is over, or it is too late."""


Action: TypeAlias = (
    Succeed
    | TryAgain
    | Renew
    | HoldAccount
    | GiveUp
    | Lose
    | Look
    | LookLater
    | SendAgain
    | AskPerson
    | Withdraw
    | Leave
)

DEFAULT = Policy()
NOW = timedelta(0)


def decide(known: Known, event: Event, roll: float = 0.0, policy: Policy = DEFAULT) -> Action:
    """Say what to do; `roll` in [0, 1) is the chance that spreads retries."""
    if isinstance(event, Accepted):
        return Leave() if known.status is Status.SUCCESS else Succeed()
    match known.status:
        case Status.RUNNING:
            return _running(known, event, roll, policy)
        case Status.UNKNOWN:
            return _unknown(known, event, policy)
        case Status.PENDING if isinstance(event, Cancelled) and not known.left:
            return Withdraw()
        case _:
            return Leave()


def _running(known: Known, event: Event, roll: float, policy: Policy) -> Action:  # noqa: PLR0911 - a table of cases
    match event:
        case Refused(code):
            return _end(known, code, policy)
        case SignInAgain(renewable):
            return Renew() if renewable and not known.renewed else HoldAccount()
        case RateLimited(after):
            return TryAgain(_wait(after, pause(known.attempts + 1, roll), policy))
        case NotYet(after):
            return _again(known, after, roll, policy)
        case NoAnswer():
            # Before the intent only uploads are lost, and nobody sees those.
            return Lose(policy.quiet) if known.intent else _again(known, None, roll, policy)
        case Died() if known.intent:
            return Lose(policy.quiet)
        case Died():
            set_aside = known.crashes + 1 >= policy.crashes
            return _end(known, "quarantined", policy) if set_aside else TryAgain(NOW, crashed=True)
        case Stopped():
            # After the intent the answer is waited for: what has left cannot be called back.
            return Leave() if known.intent else TryAgain(NOW)
        case Cancelled():
            return Leave() if known.intent or known.left else Withdraw()
        case _:
            return Leave()


def _unknown(known: Known, event: Event, policy: Policy) -> Action:  # noqa: PLR0911 - a table of cases
    match event:
        case Due() if known.may_resend and known.attempts < policy.attempts:
            return SendAgain(left=True)
        case Due() if known.can_look and known.looks < policy.looks:
            return Look()
        case Due():
            return AskPerson()
        case NotFound():
            return LookLater(policy.between_looks) if known.looks + 1 < policy.looks else AskPerson()
        case NotYet(after) | RateLimited(after):  # the look itself did not work
            return LookLater(_wait(after, policy.between_looks, policy))
        case SignInAgain():
            return HoldAccount()
        case NoAnswer():
            return LookLater(policy.between_looks)
        case SaidNotOut():
            return SendAgain(left=False)
        case _:
            return Leave()


def _again(known: Known, after: timedelta | None, roll: float, policy: Policy) -> Action:
    if known.attempts + 1 >= policy.attempts:
        return _end(known, "exhausted", policy)
    return TryAgain(_wait(after, pause(known.attempts + 1, roll), policy), counts=True)


def _end(known: Known, code: str, policy: Policy) -> Action:
    """Give up; but what an earlier attempt may have put out is not called failed: that has to be found out first."""
    return Lose(policy.quiet) if known.left else GiveUp(code)


def _wait(wished: timedelta | None, ours: timedelta, policy: Policy) -> timedelta:
    """Wait as long as the platform wishes, within reason, and never less than we would."""
    return min(max(wished or ours, ours), policy.longest_wait)
