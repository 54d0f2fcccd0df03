"""An outlook: what happens next with a publication, when, and who has to do something for it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.decisions.schedule import Late
from imprint.lifecycles.account import AccountStatus
from imprint.lifecycles.publication import PublicationStatus as Status
from imprint.log import hide_in_text
from imprint.work.claim import GRACE

SECOND, MINUTE, HOUR, DAY = 1, 60, 3600, 86400
# What a publication waits for, by the one word in its row.
WAITS = {
    "account": "its account waits for you",
    "circuit": "the platform has failed too often in a row and is left alone for a while",
    "pace": "the platform wants fewer calls",
    "busy": "another publication of the account goes first",
    "queue": "a worker takes it in a moment",
    "batch": "it is not its turn in the batch yet",
    "sign-in": "signing in did not work",
    "look": "somebody is looking for it",
    "person": "a person must decide",
}
FAILED = {
    "late.skipped": "Its time was missed, and it was to be skipped then.",
    "late.ask": "Its time was missed by too much to publish it unasked.",
    "quarantined": "Workers died over it again and again.",
    "exhausted": "All attempts are used up.",
    "said_not_out": "A person said that it is not out, and dropped it.",
}


@dataclass(frozen=True)
class Standing:
    """A publication and everything it may be waiting for."""

    id: UUID
    post_id: UUID
    platform: str
    account: str
    account_status: str
    trouble: str | None
    file: int | None
    status: str
    status_at: datetime
    phase: str | None
    scheduled_at: datetime | None
    due_at: datetime
    now: datetime
    held_until: datetime | None
    held_why: str | None
    look_at: datetime | None
    looks: int
    lease_until: datetime | None
    deadline: datetime | None
    attempts: int
    crashes: int
    left: bool
    error_code: str | None
    remote_id: str | None
    url: str | None
    published_at: datetime | None
    dismissed: bool
    late_policy: str
    late_hours: int | None
    circuit: str | None
    circuit_until: datetime | None
    circuit_why: str | None
    busy_with: str | None
    sends_held: str | None
    worker_alive: bool
    uploading: str | None
    sent: int | None
    size: int | None
    batch: UUID | None = None
    paused: bool = False
    before_it: int | None = None
    turn_at: datetime | None = None


@dataclass(frozen=True)
class Outlook:
    """What happens next: a sentence, when at the earliest, and whether it needs a person; `do` is what they can run.

    The commands are for the command line alone: who reads this elsewhere has the moves of the thing.
    """

    sentence: str
    at: datetime | None = None
    person: bool = False
    do: tuple[str, ...] = ()
    over: bool = False

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "sentence": self.sentence,
            "at": self.at,
            "needsPerson": self.person,
            "over": self.over,
        }


def outlook(of: Standing, late_hours: int) -> Outlook:
    """Say what happens next; `late_hours` is how late a post is published whose author did not say."""
    match Status(of.status):
        case Status.PENDING:
            ahead = _waits(of)
            return ahead if ahead.at and not ahead.person else _with_deadline(of, ahead, late_hours)
        case Status.RUNNING:
            return _runs(of)
        case Status.UNKNOWN:
            return _unknown(of)
        case Status.SUCCESS:
            where = f": {of.url}" if of.url else "."
            return Outlook(f"Nothing: it is out{where}", over=True)
        case Status.FAILED:
            return _failed(of)
        case Status.CANCELLED:
            return Outlook("Nothing: it was cancelled by hand.", over=True)


def _waits(of: Standing) -> Outlook:  # noqa: PLR0911 - a table of cases
    """Say what something waits for that is not out: what stops it first is said first."""
    if of.sends_held:
        return _held_for_good(of)
    if of.account_status != AccountStatus.CONNECTED:
        return _account(of, "it keeps its time and goes out then")
    if of.paused:
        return Outlook("Its batch is paused.", person=True, do=(f"imprint batch resume {of.batch}",))
    if of.before_it is not None:
        return _unwatched(of, _in_turn(of, of.before_it))
    if of.due_at > of.now:
        return _unwatched(of, Outlook(_until_due(of), of.due_at))
    if of.held_until is not None and of.held_until > of.now:
        return _unwatched(of, Outlook(_held(of, of.held_until), of.held_until))
    return _unwatched(of, Outlook("It is due: a worker takes it in a moment.", of.now))


def _in_turn(of: Standing, before: int) -> Outlook:
    if before:
        return Outlook(f"It waits for its turn: {_counted(before, 'publication')} of its batch before it.", of.due_at)
    turn = max(of.turn_at or of.due_at, of.due_at)
    wait = f"in {span(turn - of.now)}" if turn > of.now else "in a moment"
    return Outlook(f"It is the next of its batch: {wait}.", turn)


def _held_for_good(of: Standing) -> Outlook:
    return Outlook(
        f"Every send is held: {of.sends_held}. When you have looked at what is out, let them go on.",
        person=True,
        do=("imprint incarnation --accept",),
    )


def _until_due(of: Standing) -> str:
    wait = span(of.due_at - of.now)
    if of.held_why == "pace":
        return f"The platform wants fewer calls: it is tried again in {wait}."
    if of.attempts:
        return f"It is tried again in {wait}; {_counted(of.attempts, 'attempt')} did not work."
    return f"It waits for its time: in {wait}."


def _held(of: Standing, until: datetime) -> str:
    wait = span(until - of.now)
    match of.held_why:
        case "circuit":
            whose = "platform" if (of.circuit or "").startswith("host:") else "account"
            why = f" The last error: {hide_in_text(of.circuit_why).rstrip('.')}." if of.circuit_why else ""
            return f"The circuit of the {whose} is open, since calls kept failing; one try is made in {wait}.{why}"
        case "busy" if of.busy_with:
            return f"“{of.busy_with}” is on its way on this account; it goes after that."
        case "queue":
            return "It is due: a worker takes it in a moment."
        case "sign-in":
            return f"Signing in to {of.platform} did not work; it is tried again in {wait}."
        case why:
            reason = WAITS.get(why or "", why or "it is held")
            return f"{reason[:1].upper()}{reason[1:]}; it is looked at again in {wait}."


def _account(of: Standing, then: str) -> Outlook:
    if of.account_status == AccountStatus.DISABLED:
        return Outlook(
            f"The account {of.account} is disabled; {then} when it is enabled.",
            person=True,
            do=(f"imprint account enable {of.account}",),
        )
    why = f" {hide_in_text(of.trouble)}" if of.trouble else ""
    return Outlook(
        f"The account {of.account} must be connected again; {then}.{why}",
        person=True,
        do=(f"imprint account reconnect {of.account}",),
    )


def _with_deadline(of: Standing, ahead: Outlook, late_hours: int) -> Outlook:
    """Say what waiting for a person will cost: after a while it is too late to publish unasked."""
    if of.left:
        return ahead
    most = timedelta(hours=late_hours if of.late_hours is None else of.late_hours)
    wait = max(most, GRACE) if of.late_policy == Late.PUBLISH else GRACE
    what = "skipped" if of.late_policy == Late.SKIP else "not published unasked"
    left = of.due_at + wait - of.now
    when = f"If that takes more than {span(left)}," if left > timedelta(0) else "By now it is so late that"
    return Outlook(f"{ahead.sentence} {when} it is {what}.", ahead.at, ahead.person, ahead.do)


def _runs(of: Standing) -> Outlook:
    if of.lease_until is not None and of.lease_until <= of.now:
        return _unwatched(of, Outlook("Its worker gives no sign of life; another one takes it over.", of.now))
    if of.phase == "publishing":
        wait = f", {span(of.deadline - of.now)} at most" if of.deadline and of.deadline > of.now else ""
        return Outlook(f"The request has left, or is just leaving; the answer is waited for{wait}.", of.deadline)
    if of.uploading and of.size:
        share = f"{(of.sent or 0) / of.size:.0%} of {of.uploading}"
        return Outlook(f"A worker is uploading it: {share}.", of.now)
    return Outlook("A worker is at it.", of.now)


def _unknown(of: Standing) -> Outlook:
    if of.look_at is None:
        return Outlook(
            f"A person must decide: look whether it is on {of.platform}, then say so.",
            person=True,
            do=(
                f"imprint resolve {of.id} --published URL",
                f"imprint resolve {of.id} --not-published",
            ),
        )
    if of.account_status != AccountStatus.CONNECTED:
        return _account(of, "somebody looks for it then")
    if of.held_why == "look" and of.held_until and of.held_until > of.now:
        return Outlook("Somebody is looking for it right now.", of.now)
    again = "again " if of.looks else ""
    wait = f"in {span(of.look_at - of.now)}" if of.look_at > of.now else "in a moment"
    return _unwatched(of, Outlook(f"Nobody can tell whether it is out; somebody looks {again}{wait}.", of.look_at))


def _failed(of: Standing) -> Outlook:
    if of.dismissed:
        return Outlook("Nothing: it failed, and nobody wants it any more.", over=True)
    why = FAILED.get(of.error_code or "", f"It failed: {of.error_code}.")
    return Outlook(
        f"Nothing by itself. {why} Try it again, or let it go.",
        person=True,
        do=(f"imprint post retry {of.post_id}", f"imprint post cancel {of.post_id}"),
        over=True,
    )


def _unwatched(of: Standing, ahead: Outlook) -> Outlook:
    """Add that nobody is there to do it."""
    if of.worker_alive:
        return ahead
    return Outlook(f"{ahead.sentence} But no worker is alive.", ahead.at, person=True, do=("imprint up",))


def span(time: timedelta) -> str:
    """Write a length of time as a person would say it, in its two largest units."""
    seconds = round(time.total_seconds())
    if seconds < SECOND:
        return "a moment"
    if seconds < MINUTE:
        return f"{seconds} s"
    for size, name, below, part in ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "min"), (MINUTE, "min", SECOND, "s")):
        if seconds >= size:
            rest = seconds % size // below
            exact = size == MINUTE and seconds >= 10 * MINUTE
            return f"{seconds // size} {name}" + (f" {rest} {part}" if rest and not exact else "")
    raise AssertionError(seconds)  # pragma: no cover - every length has a unit


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
