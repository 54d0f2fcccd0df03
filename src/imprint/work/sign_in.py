"""Signing in: gives an account's login while it is good, and renews it once, whoever asks and however many do.

A refresh token can be used once. So the renewal is announced in the row before the request leaves, only one may
announce it, and what comes back is committed before anybody uses it. Whoever dies in between leaves the announcement:
the next one asks once more, which tells whether the token was used up; if so, the account wants its person.
"""

import asyncio
import random
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

import structlog
from pydantic import SecretStr

from imprint.engine.wire import Wire
from imprint.lifecycles.account import AccountStatus
from imprint.platforms.failure import Failure, NoAnswer, NotYet, RateLimited, SignInAgain
from imprint.platforms.login import Login
from imprint.problem import Problem
from imprint.store.db import GONE, Database
from imprint.store.query import Link, query
from imprint.work.post import Row
from imprint.work.vault import CREDENTIAL, Opened, Vault, Version, platform

log = structlog.get_logger()

# Renewed this long before its end, so that nothing begins with a token that ends in its middle …
EARLY = timedelta(minutes=10)
# … and while another one renews it, the old one is good as long as it lasts at least so long.
STILL_GOOD = timedelta(minutes=2)
CALL_SECONDS = 30.0
# Two calls and the commits around them.
RENEWAL_LASTS = timedelta(seconds=90)
LOOK_AGAIN_SECONDS = 0.1
COMMIT_TRIES = 8

BEGIN = query("credential_renewal_begin", Version)
DONE = query("credential_renewal_done", Version)
END = query("credential_renewal_end", Version)
EXPIRE = query("account_expire", Row)


@dataclass(frozen=True)
class SignedIn:
    """A login that can be used now, and which version it is: to be named when a platform refuses it."""

    account: UUID
    platform: str
    login: Login
    version: int


async def signed_in(
    database: Database, vault: Vault, wire: Wire, account: UUID, *, refused: int | None = None
) -> SignedIn:
    """Give a login that is good for a while; `refused` is the version that the platform would not take any more.

    Raises SignInAgain when only the person can help (the account then waits for it), NotYet or RateLimited when it
    should be tried later.
    """
    waited = 0.0
    while True:
        async with database.connection() as connection:
            opened = await vault.get(connection, account)
        kept = opened.kept
        _refuse_unusable(opened)
        wanted = kept.version == refused or (kept.lasts is not None and kept.lasts < EARLY)
        if not wanted:
            return _given(opened)
        if kept.renewing:
            if kept.version != refused and kept.lasts is not None and kept.lasts >= STILL_GOOD:
                return _given(opened)
            if waited > RENEWAL_LASTS.total_seconds():
                raise NotYet("sign_in.busy", f"The sign-in of {kept.shown} is being renewed; this takes long.")
            pause = LOOK_AGAIN_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
            waited += pause
            await asyncio.sleep(pause)
            continue
        renewal = uuid4()
        async with database.transaction("sign-in", "renewal") as connection:
            begun = await BEGIN.first(connection, account, kept.version, renewal, RENEWAL_LASTS)
        if begun is not None:
            return await _renewed(database, vault, wire, opened, renewal)


async def sign_in_again(connection: Link, account: UUID, version: int, failure: Problem) -> bool:
    """Hold an account until its person signs in again; its schedules are kept. False when somebody just did."""
    return await EXPIRE.first(connection, account, version, failure.code, failure.sentence) is not None


async def _renewed(database: Database, vault: Vault, wire: Wire, opened: Opened, renewal: UUID) -> SignedIn:
    kept = opened.kept
    if kept.abandoned:
        log.warning(
            "a renewal was cut off before; asking whether the token is still good", account=str(kept.account_id)
        )
    try:
        login = await _call(wire, opened)
    except (NotYet, RateLimited):
        async with database.connection() as connection:  # if the token was used up after all, the next call tells
            await END.first(connection, kept.account_id, renewal)
        raise
    except Failure as failure:
        await _give_up(database, opened, renewal, failure)
        raise _again(opened, failure) from failure
    version = await _commit(database, vault, opened, renewal, login)
    if version is None:
        # Somebody signed in anew meanwhile, or the commit's own answer was lost: what is in the row is what counts.
        return await signed_in(database, vault, wire, kept.account_id)
    return SignedIn(kept.account_id, kept.platform, login, version)


async def _call(wire: Wire, opened: Opened) -> Login:
    """Renew; when no answer comes, ask once more, since only that tells whether the token was used up."""
    of, wire = platform(opened.kept.platform), wire.to(opened.login)
    try:
        login: Login = await of.renew(wire.within(CALL_SECONDS), opened.login)
    except NoAnswer:
        login = await of.renew(wire.within(CALL_SECONDS), opened.login)
    # Whatever a platform makes anew of a login, how far it reaches was decided when it was connected.
    return login.model_copy(update={"outside_only": opened.login.outside_only})


async def _commit(database: Database, vault: Vault, opened: Opened, renewal: UUID, login: Login) -> int | None:
    """Keep the new login before it is used; it exists nowhere else, so a database that is away is waited for."""
    account = opened.kept.account_id
    for tried in range(1, COMMIT_TRIES + 1):
        try:
            async with database.transaction("sign-in", "renewed") as connection:
                sealed = await vault.seal(connection, account, CREDENTIAL, SecretStr(login.sealable()))
                done = await DONE.first(
                    connection,
                    account,
                    renewal,
                    sealed.key_id,
                    sealed.nonce,
                    sealed.sealed,
                    login.expires_in,
                    login.renewable_for,
                )
                return done.version if done else None
        except GONE:
            if tried == COMMIT_TRIES:
                raise
            log.warning("a new sign-in cannot be kept yet; the database is away", account=str(account))
            await asyncio.sleep(min(0.2 * 2**tried, 10))
    return None  # pragma: no cover - the last try returns or raises


async def _give_up(database: Database, opened: Opened, renewal: UUID, failure: Failure) -> None:
    kept = opened.kept
    async with database.transaction("sign-in", failure.sentence) as connection:
        if await END.first(connection, kept.account_id, renewal) is not None:
            await sign_in_again(connection, kept.account_id, kept.version, _again(opened, failure))
    log.warning("an account must be connected anew", account=str(kept.account_id), code=failure.code)


def _again(opened: Opened, failure: Failure) -> SignInAgain:
    said = (
        f"The answer to the renewal of {opened.kept.shown} was lost, and with it the sign-in"
        if isinstance(failure, NoAnswer)
        else f"{opened.kept.platform} no longer takes the sign-in of {opened.kept.shown}"
    )
    return SignInAgain(
        failure.code,
        f"{said}: connect the account anew. What is scheduled waits for it.",
        renewable=False,
    )


def _refuse_unusable(opened: Opened) -> None:
    kept = opened.kept
    if kept.status == AccountStatus.DISABLED:
        raise Problem("account.disabled", f"The account {kept.shown} is disabled.")
    if kept.status == AccountStatus.RECONNECT:
        sentence = kept.trouble or f"The account {kept.shown} must be connected anew."
        raise SignInAgain("account.reconnect", sentence, renewable=False)


def _given(opened: Opened) -> SignedIn:
    return SignedIn(opened.kept.account_id, opened.kept.platform, opened.login, opened.kept.version)
