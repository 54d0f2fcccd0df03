"""Webhooks: addresses of a person's own programs, told of what happens as Standard Webhooks 1.0.0 says.

A webhook is a target that hears of chosen events, and its messages are deliveries like all others: made in the
transaction of what they tell, sent when their row says so, dead letters in the end. Each keeps its id and its body
however often it is sent.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from secrets import token_bytes
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
from pydantic import SecretStr

from imprint.engine.courier import NotSent
from imprint.engine.wire import Wire
from imprint.platforms.request import Request, Text
from imprint.platforms.webhook import PREFIX, sign
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work import target as targets
from imprint.work.naming import to_camel
from imprint.work.prefix import Candidate, bounds, picked
from imprint.work.target import Row
from imprint.work.tidings import Chapter, Tidings
from imprint.work.vault import TARGET, WRITING, Vault

EVENTS = ("published", "failed", "unknown", "reconnect", "chapter")
TYPES = {
    "published": "publication.published",
    "failed": "publication.failed",
    "unknown": "publication.unknown",
    "reconnect": "account.reconnect",
}
# How long is waited after each failure, as the standard proposes; more than a day in all.
WAITS = tuple(timedelta(seconds=each) for each in (5, 300, 1800, 7200, 18000, 36000, 50400))
ATTEMPTS = len(WAITS) + 1
SECONDS = 20.0  # less than a lease
GONE = "webhook.gone"
SECRET_BYTES = 32
# How long an old secret signs beside the new one, so that nothing is lost until the receiver knows that; and how many
# at most do, whoever asks for another one again and again.
OVERLAP = timedelta(hours=24)
MOST_OLD = 8


@dataclass(frozen=True)
class Webhook:
    """A webhook as its person sees it, without address and secret."""

    id: UUID
    label: str
    host: str
    events: list[str]
    disabled: bool
    last_error: str | None
    last_error_at: datetime | None
    last_sent_at: datetime | None
    created_at: datetime
    waiting: int
    failed: int
    resting_until: datetime | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Made:
    """A webhook that was just made, and its secret, which nobody sees again."""

    webhook: Webhook
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Rotated(Made):
    """A webhook with a new secret, and until when the old one signs as well."""

    old_until: datetime


@dataclass(frozen=True)
class Held:
    """A webhook that nobody else changes until this transaction ends."""

    now: datetime
    until: datetime


ADD = query("webhook_add", Row)
LIST = query("webhook_list", Webhook)
CHANGE = query("webhook_change", Row)
HOLD = query("webhook_hold", Held)
RESEAL = query("target_reseal", Nothing)
GONE_FOR_GOOD = query("webhook_gone", Nothing)


async def add(
    database: Database,
    vault: Vault,
    wire: Wire,
    person: str,
    url: SecretStr,
    *,
    label: str | None = None,
    events: Sequence[str] = EVENTS,
) -> Made:
    """Add a webhook; its address must be one that may be called, but nothing is sent."""
    wanted = _events(events)
    host = await _host(wire, url.get_secret_value().strip())
    webhook, secret = uuid4(), _new_secret()
    sealed_text = SecretStr(json.dumps({"url": url.get_secret_value().strip(), "secret": secret}))
    async with database.transaction(person, "a new webhook") as connection:
        sealed = await vault.seal(connection, webhook, TARGET, sealed_text)
        named, shown = targets.label_of(label or host[: targets.LONGEST_LABEL]), host[: targets.LONGEST_LABEL]
        try:
            await ADD.one(connection, webhook, person, named, shown, sealed.key_id, sealed.nonce, sealed.sealed, wanted)
        except asyncpg.UniqueViolationError:
            raise Problem("webhook.label_taken", f"The name {named} is taken already; choose another one.") from None
        return Made(await show(connection, person, webhook), secret)


async def listed(connection: Link, person: str) -> list[Webhook]:
    """Give the webhooks of a person, by name."""
    return await LIST.all(connection, person)


async def show(connection: Link, person: str, webhook: UUID) -> Webhook:
    """Give one webhook."""
    found = next((each for each in await listed(connection, person) if each.id == webhook), None)
    if found is None:
        raise missing()
    return found


async def find(connection: Link, person: str, text: str) -> UUID:
    """Find a webhook by its name, its id or the first letters of that."""
    low, high = bounds(text)
    known = [Candidate(each.id, each.label, each.label == text) for each in await listed(connection, person)]
    return picked(text, [each for each in known if each.exact or low <= each.id <= high], missing())


async def change(database: Database, person: str, webhook: UUID, events: Sequence[str]) -> Webhook:
    """Let a webhook hear of other events from now on."""
    wanted = _events(events)
    async with database.transaction(person, "other events") as connection:
        if await CHANGE.first(connection, webhook, person, wanted) is None:
            raise missing()
        return await show(connection, person, webhook)


async def disable(database: Database, person: str, webhook: UUID, *, disabled: bool) -> Webhook:
    """Keep a webhook from being called, or let it be called again; what it missed is not made up for."""
    async with database.transaction(person, "disabled" if disabled else "enabled") as connection:
        await show(connection, person, webhook)
        await targets.MUTE.one(connection, webhook, person, disabled)
        return await show(connection, person, webhook)


async def rotate(database: Database, vault: Vault, person: str, webhook: UUID) -> Rotated:
    """Give a webhook a new secret; for a day the old one signs as well, so that its receiver can be changed meanwhile.

    Old and new are sealed together: what is forgotten is forgotten with the rest.
    """
    async with database.transaction(person, "a new secret") as connection:
        await WRITING.one(connection)  # before the row is held, in the order in which a rotation of the keys does it
        held = await HOLD.first(connection, webhook, person, OVERLAP)
        address = await targets.opened(connection, vault, webhook) if held else None
        if held is None or address is None:
            raise missing()
        kept = json.loads(address.get_secret_value())
        old = [{"secret": kept["secret"], "until": held.until.isoformat()}, *_still_good(kept, held.now)][:MOST_OLD]
        secret = _new_secret()
        text = SecretStr(json.dumps({"url": kept["url"], "secret": secret, "old": old}))
        sealed = await vault.seal(connection, webhook, TARGET, text)
        await RESEAL.run(connection, webhook, sealed.key_id, sealed.nonce, sealed.sealed)
        return Rotated(await show(connection, person, webhook), secret, held.until)


async def remove(database: Database, person: str, webhook: UUID) -> None:
    """Remove a webhook, forget its address and secret, and let go of what waits for it."""
    async with database.connection() as connection:
        await show(connection, person, webhook)
    await targets.remove(database, person, webhook)


async def try_out(database: Database, vault: Vault, wire: Wire, person: str, webhook: UUID) -> None:
    """Call a webhook now, with an event that tells nothing; raise NotSent with what went wrong.

    One whose receiver says that it is gone for good is disabled, as it would be by any other event.
    """
    async with database.connection() as connection:
        await show(connection, person, webhook)
        address = await targets.opened(connection, vault, webhook)
        known = await targets.GET.first(connection, webhook)
    if address is None or known is None:
        raise missing()
    try:
        await call(wire, address, uuid4(), _body("test", datetime.now(UTC), {}), known.now)
    except NotSent as refused:
        if refused.code == GONE:
            await disable(database, person, webhook, disabled=True)
        raise


def body(told: Tidings | list[Chapter]) -> str:
    """Write what a receiver is sent."""
    if isinstance(told, Tidings):
        return _body(TYPES[told.news], told.happened_at, told.data())
    return _body("chapter.new", datetime.now(UTC), {"chapters": [each.data() for each in told]})


async def call(wire: Wire, address: SecretStr, key: UUID, body: str, now: datetime) -> None:
    """Send; raise a Problem unless the receiver has taken it. By `now`, the database's, old secrets stop to sign."""
    kept = json.loads(address.get_secret_value())
    secrets = [kept["secret"], *(each["secret"] for each in _still_good(kept, now))]
    name, moment, data = f"msg_{key.hex}", str(int(datetime.now(UTC).timestamp())), body.encode()
    headers = (
        ("webhook-id", name),
        ("webhook-timestamp", moment),
        ("webhook-signature", " ".join(sign(SecretStr(each), name, moment, data) for each in secrets)),
    )
    request = Request("tell a webhook", "POST", kept["url"], headers, Text(data), secret_path=True)
    answer = await wire.within(SECONDS).send(request)
    if answer.status == 410:  # noqa: PLR2004 - the standard's word for: never again
        raise NotSent(GONE, "The receiver says that this webhook is gone for good; it is disabled.")
    if not answer.ok:
        raise NotSent("webhook.refused", f"The receiver answered {answer.status}.")


def wait(attempts: int, roll: float) -> timedelta:
    """Say how long is waited after so many attempts; up to a fifth more, so that not all come at once."""
    return WAITS[min(attempts, len(WAITS)) - 1] * (1 + roll / 5)


def missing() -> Problem:
    """Say that there is no such webhook."""
    return Problem("webhook.missing", "There is no such webhook.")


def _new_secret() -> str:
    return PREFIX + b64encode(token_bytes(SECRET_BYTES)).decode()


def _still_good(kept: Mapping[str, Any], now: datetime) -> list[dict[str, str]]:
    """Give the old secrets whose receivers may not know a newer one yet, the latest first."""
    return [each for each in kept.get("old", ()) if datetime.fromisoformat(each["until"]) > now]


def _body(kind: str, at: datetime, data: dict[str, Any]) -> str:
    told = {"type": kind, "timestamp": at.isoformat().replace("+00:00", "Z"), "data": data}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _events(events: Sequence[str]) -> list[str]:
    wanted = list(dict.fromkeys(events))
    if not wanted or not set(wanted) <= set(EVENTS):
        raise Problem("webhook.bad_events", f"Name at least one of {', '.join(EVENTS)}.")
    return wanted


async def _host(wire: Wire, url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    usable = parts.scheme in {"http", "https"} and host and url.isascii() and url.isprintable() and " " not in url
    if not usable or len(url) > targets.LONGEST_URL:
        raise Problem("webhook.bad_address", "The address must begin with https:// or http:// and name a host.")
    shown = f"[{host}]" if ":" in host else host
    await wire.vet(shown)
    return f"{shown}:{port}" if port else shown
