"""Accounts: add, look at, choose the default, disable, enable, connect anew, remove.

Some platforms want the person to come by with a browser. Then adding has two halves: `begin` gives the address, and
`finish` takes the one that the person was sent back to. What must be remembered in between is sealed like a sign-in.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import asyncpg
from pydantic import SecretStr

from imprint.engine.wire import Wire, outside
from imprint.platforms.login import Errand, Login
from imprint.platforms.request import Request
from imprint.problem import Problem
from imprint.store.credential import Sealed
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work import schedule
from imprint.work.naming import to_camel
from imprint.work.post import Row
from imprint.work.prefix import Candidate, picked
from imprint.work.vault import ERRAND, NOT_SIGNED_IN, Vault, platform

ERRAND_LASTS = timedelta(hours=1)
CALL_SECONDS = 30.0
LONGEST_LABEL = 100


@dataclass(frozen=True)
class Account:
    """An account, without anything secret."""

    id: UUID
    platform: str
    name: str
    label: str | None
    status: str
    status_at: datetime
    is_default: bool
    trouble_code: str | None
    trouble: str | None
    created_at: datetime
    expires_at: datetime | None
    renewable_until: datetime | None
    waiting: int

    @property
    def shown(self) -> str:
        """Give the name a person knows it by."""
        return self.label or self.name or self.platform

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Waiting:
    """The person is to go to this address, and to come back with the one they are sent to."""

    url: str
    expires_at: datetime


@dataclass(frozen=True)
class Removed:
    """An account that is gone; `trouble` says why its platform may still think that Imprint is let in."""

    account: Account
    revoked: bool
    trouble: str | None = None


@dataclass(frozen=True)
class Held:
    """An account that stays as it is until the transaction ends."""

    id: UUID
    platform: str
    name: str
    label: str | None
    status: str
    trouble_code: str | None


@dataclass(frozen=True)
class Until:
    """When an errand ends."""

    expires_at: datetime


@dataclass(frozen=True)
class Returned:
    """An errand whose person came back."""

    id: UUID
    platform: str
    label: str | None
    account_id: UUID | None
    key_id: str
    nonce: bytes
    sealed: bytes = field(repr=False)


# Their names do not say which login it is: a host may have many receivers.
NAMED_BY_HOST = frozenset({"webhook"})

ADD = query("account_add", Row)
REVIVE = query("account_revive", Row)
LIST = query("account_list", Account)
FOUND = query("account_found", Candidate)
LOCK = query("account_lock", Held)
UNDEFAULT = query("account_undefault", Nothing)
DEFAULT = query("account_default", Row)
DISABLE = query("account_disable", Row)
ENABLE = query("account_enable", Row)
MEND = query("account_mend", Row)
REMOVE = query("account_remove", Row)
DROP = query("credential_drop", Nothing)
WAITING_ON = query("schedule_waiting_on", Row)
ERRAND_BEGIN = query("errand_begin", Until)
ERRAND_END = query("errand_end", Returned)
ERRAND_FORGET = query("errand_forget", Nothing)


async def begin(
    database: Database,
    vault: Vault,
    wire: Wire,
    owner: str,
    on: str,
    given: Mapping[str, str],
    redirect_url: str,
    *,
    label: str | None = None,
    account: UUID | None = None,
) -> Account | Waiting:
    """Add an account from what a person gave, or connect one anew; some platforms want a browser first."""
    of = platform(on)
    if label is not None and not 1 <= len(label.strip()) <= LONGEST_LABEL:
        raise Problem("account.bad_label", f"An account's name has 1 to {LONGEST_LABEL} letters.")
    unknown = [name for name in given if name not in {ask.name for ask in of.asks}]
    if unknown:
        # Without what was given: somebody may have put a secret into the wrong place.
        asked = ", ".join(ask.name for ask in of.asks) or "nothing"
        raise Problem("account.unknown_answer", f"{on} asks for {asked}, and for nothing else.")
    answers = {ask.name: given.get(ask.name) or ask.default for ask in of.asks}
    if lacking := [name for name, answer in answers.items() if answer is None]:
        raise Problem("account.no_answer", f"{on} asks for {', '.join(lacking)}.")
    whole = {name: answer for name, answer in answers.items() if answer is not None}
    result: Login | Errand = await of.begin(wire.within(CALL_SECONDS), whole, redirect_url)
    if isinstance(result, Errand):
        return await _sent_away(database, vault, owner, on, result, label, account)
    return await _arrived(database, vault, wire, owner, on, result, label, account)


async def finish(database: Database, vault: Vault, wire: Wire, owner: str, returned_to: str) -> Account:
    """Go on where `begin` sent the person away, with the address they came back to; each errand ends once."""
    state = parse_qs(urlsplit(returned_to.strip()).query).get("state", [""])[0]
    async with database.transaction(owner, "came back from a platform") as connection:
        errand = await ERRAND_END.first(connection, _hash(state), owner)
    if errand is None:
        raise Problem(
            "sign_in.not_begun",
            "This address does not belong to a sign-in that was begun in the last hour; begin again.",
        )
    kept = vault.unseal(errand.id, ERRAND, Sealed(errand.key_id, errand.nonce, errand.sealed))
    of = platform(errand.platform)
    login: Login = await of.finish(wire.within(CALL_SECONDS), Errand("", SecretStr(state), kept), returned_to.strip())
    return await _arrived(database, vault, wire, owner, errand.platform, login, errand.label, errand.account_id)


async def follow(wire: Wire, url: str) -> str:
    """Go to a platform's address as a browser would, and give the one it sends back to.

    That works where the platform lets one in without a question, as the sandbox does.
    """
    answer = await wire.within(CALL_SECONDS).send(Request("ask to be let in", "GET", url, secret_path=True))
    back = answer.headers.get("location")
    if back is None:
        raise Problem("sign_in.wants_a_person", "The platform wants to see a person; go to its address in a browser.")
    return back


async def reconnect(
    database: Database,
    vault: Vault,
    wire: Wire,
    owner: str,
    account: UUID,
    given: Mapping[str, str],
    redirect_url: str,
) -> Account | Waiting:
    """Sign in to an account anew; what was scheduled on it goes on. Given nothing, it answers as the last time.

    All or nothing: whoever could change the address alone would have the old secret sent there.
    """
    async with database.connection() as connection:
        known = await show(connection, owner, account)
        given = given or _as_before(known.platform, await _opened(connection, vault, account))
    return await begin(database, vault, wire, owner, known.platform, given, redirect_url, account=account)


async def listed(connection: Link, owner: str) -> list[Account]:
    """Give every account of a person."""
    return await LIST.all(connection, owner, None)


async def show(connection: Link, owner: str, account: UUID) -> Account:
    """Give one account."""
    found = await LIST.first(connection, owner, account)
    if found is None:
        raise _missing()
    return found


async def find(connection: Link, owner: str, text: str) -> UUID:
    """Find an account by its name, or by its id or the first letters of it."""
    return picked(text, await FOUND.all(connection, owner, text.strip()), _missing())


async def make_default(database: Database, owner: str, account: UUID) -> None:
    """Publish to this account when none is named."""
    async with database.transaction(owner, "the default") as connection:
        await _held(connection, owner, account)
        await UNDEFAULT.run(connection, owner)
        await DEFAULT.one(connection, account)


async def disable(database: Database, owner: str, account: UUID) -> None:
    """Leave an account unused until it is enabled; what is scheduled waits."""
    async with database.transaction(owner, "not wanted for now") as connection:
        await _held(connection, owner, account)
        if await DISABLE.first(connection, account) is None:
            raise Problem("account.disabled", "This account is disabled already.")


async def enable(database: Database, owner: str, account: UUID) -> Account:
    """Use an account again; one whose sign-in had ended still wants its person."""
    async with database.transaction(owner, "wanted again") as connection:
        await _held(connection, owner, account)
        if await ENABLE.first(connection, account) is None:
            raise Problem("account.not_disabled", "This account is not disabled.")
        return await show(connection, owner, account)


async def remove(
    database: Database, vault: Vault, wire: Wire, owner: str, account: UUID, *, cancel_waiting: bool = False
) -> Removed:
    """Remove an account and forget its sign-in; refused while something waits for it and shall not be cancelled.

    The platform is told last, when it is certain, and as well as can be: an account whose platform cannot be reached,
    or whose sign-in cannot be opened, is removed all the same.
    """
    async with database.connection() as connection:
        known = await show(connection, owner, account)
        waiting = await WAITING_ON.all(connection, account)
    if waiting and not cancel_waiting:
        raise Problem(
            "account.in_use",
            f"Posts wait for this account ({len(waiting)}); unschedule them, or have them cancelled with it.",
        )
    for post in waiting:
        await schedule.unschedule(database, owner, post.id, accounts=[account])
    async with database.transaction(owner, "removed") as connection:
        await _held(connection, owner, account)
        opened = await _opened(connection, vault, account)
        try:
            await REMOVE.one(connection, account)
        except asyncpg.CheckViolationError as refused:
            if refused.constraint_name != "account_gone":
                raise
            raise Problem(
                "account.in_use", "Something of this account is on its way, or nobody knows whether it is out."
            ) from None
        await DROP.run(connection, account)
    return await _revoked(wire, known, opened)


def _as_before(on: str, opened: Login | Problem | None) -> dict[str, str]:
    """Give what a person answered, if a sign-in still knows all of it."""
    kept = json.loads(opened.sealable()) if isinstance(opened, Login) else {}
    asked = {ask.name: kept.get(ask.name) for ask in platform(on).asks}
    if None in asked.values():
        return {}
    return {name: ("no", "yes")[value] if isinstance(value, bool) else str(value) for name, value in asked.items()}


async def _opened(connection: Link, vault: Vault, account: UUID) -> Login | Problem | None:
    try:
        return (await vault.get(connection, account)).login
    except Problem as problem:
        return None if problem.code == NOT_SIGNED_IN else problem


async def _revoked(wire: Wire, account: Account, opened: Login | Problem | None) -> Removed:
    if not isinstance(opened, Login):
        return Removed(account, revoked=False, trouble=opened.sentence if opened else None)
    try:
        revoked = await platform(account.platform).revoke(wire.to(opened).within(CALL_SECONDS), opened)
    except Problem as problem:
        return Removed(account, revoked=False, trouble=problem.sentence)
    return Removed(account, revoked=revoked)


async def _sent_away(
    database: Database, vault: Vault, owner: str, on: str, errand: Errand, label: str | None, account: UUID | None
) -> Waiting:
    row = uuid4()
    async with database.transaction(owner, "sent to a platform") as connection:
        await ERRAND_FORGET.run(connection)
        if account is not None:
            await _held(connection, owner, account)
        sealed = await vault.seal(connection, row, ERRAND, errand.kept)
        until = await ERRAND_BEGIN.one(
            connection,
            row,
            _hash(errand.state.get_secret_value()),
            owner,
            on,
            label.strip() if label else None,
            account,
            sealed.key_id,
            sealed.nonce,
            sealed.sealed,
            ERRAND_LASTS,
        )
    return Waiting(errand.url, until.expires_at)


async def _arrived(
    database: Database,
    vault: Vault,
    wire: Wire,
    owner: str,
    on: str,
    login: Login,
    label: str | None,
    account: UUID | None,
) -> Account:
    """Keep a login: of a new account, or of one that was connected anew; how far the wire reached, it may reach."""
    login = login.model_copy(update={"outside_only": wire.allowed is outside})
    if login.outside_only and (host := platform(on).host(login)):
        await wire.vet(host)
    async with database.transaction(owner, "signed in") as connection:
        try:
            row = account or await _added(connection, on, login.name, owner, (label or login.name or on).strip())
        except asyncpg.UniqueViolationError as taken:
            raise _taken(taken, login, label or login.name or on) from None
        if account is not None:
            held = await _held(connection, owner, account)
            if held.name and login.name and held.name != login.name:
                raise Problem(
                    "account.somebody_else",
                    f"You have signed in as {login.name}, but this account is {held.name}; add that one as another.",
                )
            await MEND.one(connection, account, login.name)
        await vault.put(connection, row, login)
        return await show(connection, owner, row)


async def _added(connection: Link, on: str, name: str, owner: str, label: str) -> UUID:
    """Add an account; the same login that was removed before is the same account again."""
    again = None if on in NAMED_BY_HOST else await REVIVE.first(connection, on, name, owner, label)
    return (again or await ADD.one(connection, on, name, owner, label)).id


async def _held(connection: Link, owner: str, account: UUID) -> Held:
    held = await LOCK.first(connection, account, owner)
    if held is None:
        raise _missing()
    return held


def _taken(taken: asyncpg.UniqueViolationError, login: Login, label: str) -> Problem:
    if taken.constraint_name == "account_once":
        return Problem(
            "account.already_there", f"{login.name or label} is connected already; to sign in again, reconnect it."
        )
    return Problem("account.label_taken", f"There is an account called {label!r} already; give this one another name.")


def _hash(state: str) -> str:
    return sha256(state.encode()).hexdigest()


def _missing() -> Problem:
    return Problem("account.missing", "There is no such account.")
