"""Accounts: added, used, renewed once however many ask, held when only a person can help, and never shown."""

import asyncio
import json
import logging
import signal
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx2
import pytest
import structlog
from pydantic import SecretStr

from imprint.engine.wire import Wire
from imprint.platforms.deviantart import DeviantArt
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.failure import NotYet, RateLimited, SignInAgain
from imprint.platforms.webhook import WebhookLogin
from imprint.problem import Problem
from imprint.sandbox.deviantart import DeviantArtSite
from imprint.sandbox.deviantart_tokens import CLIENT_ID, CLIENT_SECRET
from imprint.sandbox.faults import Fault
from imprint.sandbox.server import Sandbox, sandbox
from imprint.settings import load
from imprint.store import key_ring
from imprint.store.credential import MissingKey, Unopenable
from imprint.store.db import Database, open_database
from imprint.work import account as accounts
from imprint.work import sign_in
from imprint.work.account import Account, Waiting
from imprint.work.doctor import examine
from imprint.work.refresh import refresh
from imprint.work.rotate import rotate
from imprint.work.schedule import Target, schedule
from imprint.work.sign_in import SignedIn, sign_in_again, signed_in
from imprint.work.vault import Vault
from tests.engine.scene import clock_runs
from tests.platforms.works import work
from tests.waiting import until
from tests.work.posts import AT_ONCE, HOUR, OWNER, Author
from tests.work.test_post import refused

CANARY = "whsec_Y2FuYXJ5LW9mLXRoZS12YXVsdC1jYW5hcnktb2Y="
BACK = "http://127.0.0.1:7600/back"
WEBHOOK = {"url": "https://example.org/hook/canary-path", "secret": CANARY}
TOKEN_CALLS = "/oauth2/token"  # noqa: S105 - a path


@dataclass
class Place:
    """A database, a vault, a wire and a person."""

    author: Author
    vault: Vault
    url: str

    @property
    def database(self) -> Database:
        """Give the database."""
        return self.author.database

    async def add(self, on: str = "webhook", given: dict[str, str] | None = None, **more: Any) -> Account | Waiting:
        """Add an account."""
        return await accounts.begin(
            self.database, self.vault, Wire(), OWNER, on, WEBHOOK if given is None else given, BACK, **more
        )

    async def added(self, **more: Any) -> Account:
        """Add a webhook."""
        made = await self.add(**more)
        assert isinstance(made, Account)
        return made

    async def show(self, account: UUID) -> Account:
        """Look at an account."""
        async with self.database.connection() as connection:
            return await accounts.show(connection, OWNER, account)

    async def signed_in(self, account: UUID, **more: Any) -> SignedIn:
        """Sign in."""
        return await signed_in(self.database, self.vault, Wire(), account, **more)


@pytest.fixture
def place(author: Author, database_url: str, tmp_path: Path) -> Place:
    """Give a place without a platform."""
    return Place(author, Vault(tmp_path / "keys"), database_url)


@dataclass
class Gallery(Place):
    """A place with a simulated DeviantArt and an account there, signed in."""

    sandbox: Sandbox
    account: UUID

    @property
    def site(self) -> DeviantArtSite:
        """Give the simulated site."""
        site = self.sandbox.sites["deviantart"]
        assert isinstance(site, DeviantArtSite)
        return site

    async def sign_in_anew(self, ends_in: timedelta | None = None) -> None:
        """Keep a new login, whose access ends after a while."""
        login = DeviantArtLogin.model_validate_json(self.sandbox.login("deviantart", "artist"))
        if ends_in is not None:
            changes = {"expires_in": ends_in, "renewable_for": timedelta(days=90)}
            login = login.model_copy(update=changes)
        async with self.database.transaction(OWNER, "test") as connection:
            await self.vault.put(connection, self.account, login)


@asynccontextmanager
async def gallery_at(place: Place) -> AsyncIterator[Gallery]:
    """Open a gallery in a sandbox."""
    async with sandbox() as running:
        account = await place.author.account("da", "deviantart", default=True)
        made = Gallery(place.author, place.vault, place.url, running, account)
        await made.sign_in_anew()
        yield made


@pytest.fixture
async def gallery(place: Place) -> AsyncIterator[Gallery]:
    """Give a place with a gallery."""
    async with gallery_at(place) as made:
        yield made


# Add, list, default, disable, enable, remove


async def test_an_account_is_added_and_its_login_comes_back(place: Place) -> None:
    """The first one is the default; nothing of the secret is in the row."""
    account = await place.added(label="My hook")
    assert (account.label, account.name, account.platform) == ("My hook", "example.org", "webhook")
    assert (account.status, account.is_default, account.waiting) == ("connected", True, 0)
    login = (await place.signed_in(account.id)).login
    assert isinstance(login, WebhookLogin)
    assert login.secret.get_secret_value() == CANARY
    second = await place.added(given={**WEBHOOK, "url": "https://example.com/"}, label="Another")
    assert not second.is_default
    async with place.database.connection() as connection:
        assert [each.label for each in await accounts.listed(connection, OWNER)] == ["Another", "My hook"]
        assert await accounts.listed(connection, "eve") == []


@pytest.mark.parametrize(
    ("on", "given_answers", "code"),
    [
        ("myspace", {}, "account.no_platform"),
        ("webhook", {"url": "https://example.org"}, "account.no_answer"),
        ("webhook", {**WEBHOOK, "pin": "1"}, "account.unknown_answer"),
        ("webhook", {"url": "nonsense", "secret": CANARY}, "webhook.bad_address"),
        ("webhook", {"url": "https://example.org", "secret": "x"}, "webhook.bad_secret"),
    ],
)
async def test_what_cannot_be_added(place: Place, on: str, given_answers: dict[str, str], code: str) -> None:
    """Nothing is left behind, and no answer is quoted."""
    problem = await refused(code, place.add(on, given_answers))
    assert CANARY not in problem.sentence
    assert await place.author.read("SELECT count(*) FROM account") == 0


async def test_names_and_logins_are_there_once(place: Place) -> None:
    """The same login twice would let a post go out twice on it."""
    await place.added(label="hook")
    await refused("account.already_there", place.add(label="other"))
    other = {**WEBHOOK, "url": "https://example.com/"}
    await refused("account.label_taken", place.add(given=other, label="hook"))
    await refused("account.bad_label", place.add(given=other, label=" "))
    assert await place.author.read("SELECT count(*) FROM credential") == 1


async def test_default_disable_enable(place: Place) -> None:
    """One default at a time; each move is refused where it makes no sense."""
    one = await place.added(label="one")
    two = await place.added(given={**WEBHOOK, "url": "https://example.com/"}, label="two")
    await accounts.make_default(place.database, OWNER, two.id)
    assert [(await place.show(each.id)).is_default for each in (one, two)] == [False, True]
    await accounts.disable(place.database, OWNER, one.id)
    await refused("account.disabled", accounts.disable(place.database, OWNER, one.id))
    await refused("account.disabled", place.signed_in(one.id))
    assert (await accounts.enable(place.database, OWNER, one.id)).status == "connected"
    await refused("account.not_disabled", accounts.enable(place.database, OWNER, one.id))
    for awaited in (
        accounts.make_default(place.database, "eve", one.id),
        accounts.disable(place.database, "eve", one.id),
        accounts.remove(place.database, place.vault, Wire(), "eve", one.id),
    ):
        await refused("account.missing", awaited)


async def test_an_account_is_found_by_name_or_letters(place: Place) -> None:
    """A name goes before an id."""
    one = await place.added(label="hook")
    two = await place.added(given={**WEBHOOK, "url": "https://example.com/"}, label=str(one.id)[:8])
    async with place.database.connection() as connection:
        assert await accounts.find(connection, OWNER, "hook") == one.id
        assert await accounts.find(connection, OWNER, str(one.id)) == one.id
        assert await accounts.find(connection, OWNER, str(one.id)[:8]) == two.id
        await refused("account.missing", accounts.find(connection, OWNER, "nothing"))
        await refused("account.missing", accounts.find(connection, "eve", "hook"))


async def test_remove_forgets_the_sign_in(place: Place) -> None:
    """Refused while something waits for it, unless that is cancelled; refused while something may be out."""
    account = await place.added(label="hook")
    post = await place.author.scheduled(account.id)
    told = await refused("account.in_use", accounts.remove(place.database, place.vault, Wire(), OWNER, account.id))
    assert "(1)" in told.sentence
    await accounts.remove(place.database, place.vault, Wire(), OWNER, account.id, cancel_waiting=True)
    assert (await place.author.status(post), await place.author.states(post)) == ("draft", ["cancelled"])
    assert await place.author.read("SELECT count(*) FROM credential") == 0
    await refused("account.missing", accounts.disable(place.database, OWNER, account.id))
    again = await place.added(label="hook")
    running = await place.author.scheduled(again.id, ahead=timedelta(0))
    assert await place.author.claim(await place.author.publication(running))
    await refused(
        "account.in_use", accounts.remove(place.database, place.vault, Wire(), OWNER, again.id, cancel_waiting=True)
    )
    with pytest.raises(asyncpg.CheckViolationError, match="cannot be removed"):
        await place.author.read(
            "UPDATE account SET deleted_at = imprint_now(), is_default = false WHERE id = $1", again.id
        )


async def test_remove_gives_the_access_back(gallery: Gallery) -> None:
    """The platform lets nobody in with the old tokens, and is told only once it is certain that the account goes."""
    login = (await gallery.signed_in(gallery.account)).login
    assert isinstance(login, DeviantArtLogin)
    running = await gallery.author.scheduled(gallery.account, ahead=timedelta(0))
    lease = await gallery.author.claim(await gallery.author.publication(running))
    assert lease
    gone = accounts.remove(gallery.database, gallery.vault, Wire(), OWNER, gallery.account)
    await refused("account.in_use", gone)
    await DeviantArt().check(Wire().within(5), login, work())
    assert await gallery.author.fail(lease)
    removed = await accounts.remove(gallery.database, gallery.vault, Wire(), OWNER, gallery.account)
    assert (removed.revoked, removed.trouble) == (True, None)
    with pytest.raises(SignInAgain):
        await DeviantArt().check(Wire().within(5), login, work())
    with pytest.raises(SignInAgain):
        await DeviantArt().renew(Wire().within(5), login)


@pytest.mark.parametrize("how", ["unreachable", "error", "no_key", "no_sign_in"])
async def test_remove_does_not_depend_on_the_platform(gallery: Gallery, how: str) -> None:
    """Whatever keeps the platform from being told, the account is gone, and why is said."""
    wire = Wire()
    match how:
        case "unreachable":
            wire = Wire(allowed=lambda _: False)
        case "error":
            gallery.sandbox.faults.next(Fault.ERROR_BEFORE, times=9)
        case "no_key":
            gallery.vault.file.unlink()
        case "no_sign_in":
            await gallery.author.read("DELETE FROM credential RETURNING true")
    removed = await accounts.remove(gallery.database, gallery.vault, wire, OWNER, gallery.account)
    assert not removed.revoked
    assert bool(removed.trouble) == (how != "no_sign_in")
    await refused("account.missing", accounts.disable(gallery.database, OWNER, gallery.account))
    assert await gallery.author.read("SELECT count(*) FROM credential") == 0


# Sign in with a browser


async def came_back(url: str, name: str = "artist") -> str:
    """Go to an address as a person with a browser would, and give the one they are sent back to."""
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(f"{url}&as={name}", follow_redirects=False)
    return str(answer.headers["location"])


def app(running: Sandbox) -> dict[str, str]:
    """Give what DeviantArt asks a person for."""
    return {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "app_name": "Imprint",
        "base_url": running.base_url("deviantart"),
    }


async def test_sign_in_through_a_browser(gallery: Gallery) -> None:
    """The errand is sealed, ends once, and is nobody else's; the account has the name that the platform knows."""
    waiting = await gallery.add("deviantart", app(gallery.sandbox))
    assert isinstance(waiting, Waiting)
    assert "code_challenge_method=S256" in waiting.url
    assert CLIENT_SECRET not in waiting.url
    back = await came_back(waiting.url, "painter")
    finish = accounts.finish(gallery.database, gallery.vault, Wire(), "eve", back)
    await refused("sign_in.not_begun", finish)
    account = await accounts.finish(gallery.database, gallery.vault, Wire(), OWNER, f" {back} ")
    assert (account.name, account.label, account.status) == ("painter", "painter", "connected")
    assert account.renewable_until is not None
    await refused("sign_in.not_begun", accounts.finish(gallery.database, gallery.vault, Wire(), OWNER, back))
    assert (await gallery.signed_in(account.id)).version == 1


async def test_an_errand_is_forgotten_after_an_hour(gallery: Gallery) -> None:
    """And an address that is none is refused."""
    waiting = await gallery.add("deviantart", app(gallery.sandbox))
    assert isinstance(waiting, Waiting)
    back = await came_back(waiting.url)
    await refused("sign_in.not_begun", accounts.finish(gallery.database, gallery.vault, Wire(), OWNER, "nonsense"))
    await gallery.author.pass_time(timedelta(hours=1, seconds=1))
    await refused("sign_in.not_begun", accounts.finish(gallery.database, gallery.vault, Wire(), OWNER, back))
    await gallery.add("deviantart", app(gallery.sandbox))
    assert await gallery.author.read("SELECT count(*) FROM errand") == 1


async def test_reconnect_is_for_the_same_person(gallery: Gallery) -> None:
    """Signed in as somebody else the account stays as it was."""
    first = await gallery.add("deviantart", app(gallery.sandbox), label="mine")
    assert isinstance(first, Waiting)
    wire, vault = Wire(), gallery.vault
    account = await accounts.finish(gallery.database, vault, wire, OWNER, await came_back(first.url, "painter"))
    for name, code in (("sculptor", "account.somebody_else"), ("painter", "")):
        again = await accounts.reconnect(gallery.database, vault, wire, OWNER, account.id, app(gallery.sandbox), BACK)
        assert isinstance(again, Waiting)
        finish = accounts.finish(gallery.database, vault, wire, OWNER, await came_back(again.url, name))
        if code:
            await refused(code, finish)
        else:
            assert (await finish).id == account.id
    assert (await gallery.signed_in(account.id)).version == 2


# Renew


async def test_a_login_that_is_good_is_not_renewed(gallery: Gallery) -> None:
    """Also one that has no end."""
    await gallery.signed_in(gallery.account)
    await gallery.sign_in_anew(timedelta(minutes=11))
    await gallery.signed_in(gallery.account)
    assert gallery.site.tokens.refreshes == 0


async def test_a_login_is_renewed_before_it_ends(gallery: Gallery) -> None:
    """The new one is in the database before it is given out, and the old refresh token is never used again."""
    await gallery.sign_in_anew(timedelta(minutes=9))
    first = await gallery.signed_in(gallery.account)
    second = await gallery.signed_in(gallery.account)
    assert gallery.site.tokens.refreshes == 1
    assert first.version == second.version == 3
    assert first.login == second.login
    await gallery.signed_in(gallery.account, refused=3)
    assert gallery.site.tokens.refreshes == 2


async def test_a_hundred_at_once_renew_once(gallery: Gallery) -> None:
    """Over two pools of connections, as two processes have them, with a platform that takes its time."""
    await gallery.sign_in_anew(timedelta(seconds=1))
    gallery.sandbox.faults.next(Fault.LATENCY, TOKEN_CALLS, times=100, seconds=0.3)
    async with open_database(gallery.url) as other:
        given = await asyncio.gather(
            *(
                signed_in(gallery.database if n % 2 else other, gallery.vault, Wire(), gallery.account)
                for n in range(100)
            )
        )
    calls = [each for each in gallery.sandbox.log.entries("request") if each.data["path"] == TOKEN_CALLS]
    assert (gallery.site.tokens.refreshes, len(calls)) == (1, 1)
    assert {each.version for each in given} == {3}
    assert len({each.login.sealable() for each in given}) == 1


async def test_a_hundred_who_were_refused_renew_once(gallery: Gallery) -> None:
    """Whoever names a version that is old by now gets the new one."""
    version = (await gallery.signed_in(gallery.account)).version
    given = await asyncio.gather(*(gallery.signed_in(gallery.account, refused=version) for _ in range(100)))
    assert gallery.site.tokens.refreshes == 1
    assert {each.version for each in given} == {version + 1}


async def test_while_one_renews_the_others_go_on_with_what_is_still_good(gallery: Gallery) -> None:
    """An early renewal holds nobody up."""
    await gallery.sign_in_anew(timedelta(minutes=5))
    gallery.sandbox.faults.next(Fault.LATENCY, TOKEN_CALLS, seconds=1)
    renewing = asyncio.create_task(gallery.signed_in(gallery.account))
    await until(lambda: gallery.author.read("SELECT renewal IS NOT NULL FROM credential"))
    async with asyncio.timeout(0.8):
        assert (await gallery.signed_in(gallery.account)).version == 2
    assert (await renewing).version == 3


@pytest.mark.parametrize("fault", [Fault.RESET_AFTER, Fault.HALF_ANSWER, Fault.BLANK, Fault.ERROR_AFTER])
async def test_a_lost_answer_costs_the_sign_in_and_is_said_plainly(gallery: Gallery, fault: Fault) -> None:
    """The token was used up: one more call tells, and the account waits for its person with all its schedules."""
    post = await gallery.author.scheduled(gallery.account)
    gallery.sandbox.faults.next(fault, TOKEN_CALLS)
    with pytest.raises(SignInAgain) as lost:
        await gallery.signed_in(gallery.account, refused=1)
    assert "connect the account anew" in lost.value.sentence
    account = await gallery.show(gallery.account)
    assert (account.status, account.waiting) == ("reconnect", 1)
    assert account.trouble == lost.value.sentence
    assert await gallery.author.states(post) == ["pending"]
    with pytest.raises(SignInAgain):
        await gallery.signed_in(gallery.account)


async def test_a_request_that_was_read_and_dropped_is_asked_once_more(gallery: Gallery) -> None:
    """Nothing was used up: the second call brings the tokens, and nobody is bothered."""
    gallery.sandbox.faults.next(Fault.RESET_BEFORE, TOKEN_CALLS)
    await gallery.signed_in(gallery.account, refused=1)
    assert gallery.site.tokens.refreshes == 1
    assert (await gallery.show(gallery.account)).status == "connected"


async def test_what_was_not_sent_can_be_tried_again(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform that cannot be reached, or asks to wait, costs nothing."""
    gallery.sandbox.faults.next(Fault.RATE_LIMIT, TOKEN_CALLS)
    with pytest.raises(RateLimited):
        await gallery.signed_in(gallery.account, refused=1)
    monkeypatch.setattr(sign_in, "CALL_SECONDS", 0)
    with pytest.raises(NotYet):
        await gallery.signed_in(gallery.account, refused=1)
    monkeypatch.undo()
    assert (await gallery.show(gallery.account)).status == "connected"
    assert (await gallery.signed_in(gallery.account, refused=1)).version == 2


CRASH = """
import asyncio, os, signal, sys
from pathlib import Path
from uuid import UUID
from imprint.engine.wire import Wire
from imprint.store.db import open_database
from imprint.work import sign_in
from imprint.work.vault import Vault

async def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(url, keys, account, where):
    setattr(sign_in, where, die)
    async with open_database(url, size=2) as database:
        await sign_in.signed_in(database, Vault(Path(keys)), Wire(), UUID(account), refused=1)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("where", "ends"), [("_commit", "reconnect"), ("_call", "connected")])
async def test_a_process_killed_while_it_renews(gallery: Gallery, where: str, ends: str) -> None:
    """Killed after the rotation, before the commit: the token is gone, and it is said. Before the call: it is good."""
    arguments = [sys.executable, "-c", CRASH, gallery.url, str(gallery.vault.file), str(gallery.account), where]
    child = await asyncio.create_subprocess_exec(*arguments, stderr=subprocess.PIPE)
    _, said = await child.communicate()
    assert child.returncode == -signal.SIGKILL, said.decode()
    assert gallery.site.tokens.refreshes == (1 if where == "_commit" else 0)
    assert (await gallery.show(gallery.account)).status == "connected"
    await gallery.author.pass_time(timedelta(minutes=2))  # nobody waits longer for the dead
    if ends == "reconnect":
        with pytest.raises(SignInAgain, match="connect the account anew"):
            await gallery.signed_in(gallery.account, refused=1)
    else:
        assert (await gallery.signed_in(gallery.account, refused=1)).version == 2
    assert (await gallery.show(gallery.account)).status == ends


async def test_a_new_token_outlives_an_outage_of_the_database(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It exists nowhere but in this process, so the commit is tried again until it holds."""
    tries = 0
    real = Vault.seal

    async def failing(*arguments: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise ConnectionResetError
        return await real(*arguments)

    monkeypatch.setattr(Vault, "seal", failing)
    assert (await gallery.signed_in(gallery.account, refused=1)).version == 2
    assert tries == 3
    assert gallery.site.tokens.refreshes == 1


async def test_whoever_signs_in_meanwhile_wins(gallery: Gallery) -> None:
    """A renewal that fails over an older sign-in does not touch the newer one."""
    gallery.site.tokens.burn("artist")
    gallery.sandbox.faults.next(Fault.LATENCY, TOKEN_CALLS, seconds=0.4)
    renewing = asyncio.create_task(gallery.signed_in(gallery.account, refused=1))
    await until(lambda: gallery.author.read("SELECT renewal IS NOT NULL FROM credential"))
    await gallery.sign_in_anew()
    with pytest.raises(SignInAgain):
        await renewing
    assert (await gallery.show(gallery.account)).status == "connected"
    async with gallery.database.transaction("worker", "refused") as connection:
        assert not await sign_in_again(connection, gallery.account, 1, Problem("x", "Old."))
        assert await sign_in_again(connection, gallery.account, 2, Problem("x", "New."))


async def test_schedules_wait_for_the_person_and_then_go_on(gallery: Gallery, database_url: str) -> None:
    """What became due meanwhile is handed over once the account is back; nothing was lost or moved."""
    post = await gallery.author.draft()
    at = datetime.now(UTC) - HOUR
    await schedule(gallery.database, AT_ONCE, OWNER, post, at, targets=[Target(gallery.account)])
    async with gallery.database.transaction("worker", "refused") as connection:
        assert await sign_in_again(connection, gallery.account, 1, Problem("x", "Sign in."))
    async with clock_runs(database_url):
        await until(lambda: gallery.author.read("SELECT held_until = 'infinity' FROM publication"))
        assert (await gallery.author.show(post)).publications[0].held
        waiting = await accounts.reconnect(
            gallery.database, gallery.vault, Wire(), OWNER, gallery.account, app(gallery.sandbox), BACK
        )
        assert isinstance(waiting, Waiting)
        back = await came_back(waiting.url, "da")  # its name there
        account = await accounts.finish(gallery.database, gallery.vault, Wire(), OWNER, back)
        assert (account.status, account.trouble) == ("connected", None)
        await until(lambda: gallery.author.read("SELECT count(*) FROM pgqueuer WHERE entrypoint = 'publish'"))
    (publication,) = (await gallery.author.show(post)).publications
    assert (publication.scheduled_at, publication.status, publication.held) == (at, "pending", False)


async def test_an_account_that_was_unwell_when_disabled_still_is(gallery: Gallery) -> None:
    """To enable it does not sign it in; to sign it in does not enable it."""
    async with gallery.database.transaction("worker", "refused") as connection:
        await sign_in_again(connection, gallery.account, 1, Problem("x", "Sign in."))
    await accounts.disable(gallery.database, OWNER, gallery.account)
    assert (await accounts.enable(gallery.database, OWNER, gallery.account)).status == "reconnect"
    await accounts.disable(gallery.database, OWNER, gallery.account)
    waiting = await accounts.reconnect(
        gallery.database, gallery.vault, Wire(), OWNER, gallery.account, app(gallery.sandbox), BACK
    )
    assert isinstance(waiting, Waiting)
    back = await came_back(waiting.url, "da")
    assert (await accounts.finish(gallery.database, gallery.vault, Wire(), OWNER, back)).status == "disabled"
    assert (await accounts.enable(gallery.database, OWNER, gallery.account)).status == "connected"


async def test_sign_ins_that_end_for_good_are_renewed_in_time(gallery: Gallery) -> None:
    """Though nothing was published for weeks; what cannot be renewed is left to the person."""
    await gallery.sign_in_anew(timedelta(days=1))
    assert await refresh(gallery.database, gallery.vault, Wire()) == 0
    await gallery.author.read("UPDATE credential SET renewable_until = imprint_now() + interval '20 days'")
    assert await refresh(gallery.database, gallery.vault, Wire()) == 1
    assert gallery.site.tokens.refreshes == 1
    gallery.site.tokens.burn("artist")
    await gallery.author.read("UPDATE credential SET renewable_until = imprint_now() + interval '20 days'")
    assert await refresh(gallery.database, gallery.vault, Wire()) == 0
    assert (await gallery.show(gallery.account)).status == "reconnect"


async def test_a_person_is_warned_two_weeks_before(gallery: Gallery, tmp_path: Path) -> None:
    """By the doctor, with what to do; also of accounts that wait, and of keys that are missing."""
    settings = load({"IMPRINT_HOME": str(tmp_path), "IMPRINT_CREDENTIAL_KEY_FILE": str(gallery.vault.file)})

    async def found() -> list[tuple[str, str]]:
        return [(f.level, f.seen) for f in await examine(settings, gallery.url) if f.subject in {"accounts", "keys"}]

    assert not [each for each in await found() if each[0] != "ok"]
    await gallery.author.read("UPDATE credential SET renewable_until = imprint_now() + interval '13 days'")
    assert "da" in next(seen for level, seen in await found() if level == "warn")
    async with gallery.database.transaction("worker", "refused") as connection:
        await sign_in_again(connection, gallery.account, 1, Problem("x", "Sign in."))
    assert [seen for level, seen in await found() if level == "warn"] == ["da: Sign in."]
    gallery.vault.file.unlink()
    assert [level for level, _ in await found()].count("bad") == 1


# Keys


async def test_rotation_seals_everything_anew(gallery: Gallery) -> None:
    """With a new key; the old one is kept for older backups unless it shall be forgotten."""
    waiting = await gallery.add("deviantart", app(gallery.sandbox))
    assert isinstance(waiting, Waiting)
    before = await gallery.author.read("SELECT sealed FROM credential")
    done = await rotate(gallery.database, gallery.vault, OWNER)
    assert (done.resealed, done.unopenable, done.keys) == (2, 0, 2)
    assert await gallery.author.read("SELECT sealed FROM credential") != before
    assert (await gallery.signed_in(gallery.account)).version == 1
    last = await rotate(gallery.database, gallery.vault, OWNER, forget=True)
    assert (last.resealed, last.keys) == (2, 1)
    await gallery.signed_in(gallery.account)
    back = await came_back(waiting.url, "painter")
    assert (await accounts.finish(gallery.database, gallery.vault, Wire(), OWNER, back)).name == "painter"


async def test_a_rotation_that_is_cut_off_leaves_everything_readable(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the new key joined, in the middle of the rows, before old keys go: each time all can be opened."""
    made = [await place.added(given={**WEBHOOK, "url": f"https://{n}.example.org/"}, label=str(n)) for n in range(6)]

    async def all_open() -> None:
        for each in made:
            await place.signed_in(each.id)

    import imprint.work.rotate as module

    real, count = module._one, 0

    async def cut_off(*arguments: Any) -> bool:
        nonlocal count
        count += 1
        if count == 4:
            raise asyncio.CancelledError
        return await real(*arguments)

    monkeypatch.setattr(module, "_one", cut_off)
    with pytest.raises(asyncio.CancelledError):
        await rotate(place.database, place.vault, OWNER, forget=True)
    await all_open()
    monkeypatch.setattr(module, "_one", real)
    monkeypatch.setattr(module, "shrink", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        await rotate(place.database, place.vault, OWNER, forget=True)
    await all_open()
    monkeypatch.undo()
    assert (await rotate(place.database, place.vault, OWNER, forget=True)).keys == 1
    await all_open()


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from imprint.store.db import open_database
from imprint.work import rotate
from imprint.work.vault import Vault

real, count = rotate._one, 0

async def one(*arguments):
    global count
    count += 1
    if count == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return await real(*arguments)

async def main(url, keys):
    rotate._one = one
    async with open_database(url, size=2) as database:
        await rotate.rotate(database, Vault(Path(keys)), "ada", forget=True)

asyncio.run(main(*sys.argv[1:3]))
"""


@pytest.mark.parametrize("row", [1, 3])
async def test_a_rotation_killed_in_its_middle(place: Place, row: int) -> None:
    """By kill -9: everything can be read, and the next rotation goes through."""
    made = [await place.added(given={**WEBHOOK, "url": f"https://{n}.example.org/"}, label=str(n)) for n in range(4)]
    arguments = [sys.executable, "-c", KILLED, place.url, str(place.vault.file), str(row)]
    child = await asyncio.create_subprocess_exec(*arguments, stderr=subprocess.PIPE)
    _, said = await child.communicate()
    assert child.returncode == -signal.SIGKILL, said.decode()
    for each in made:
        await place.signed_in(each.id)
    done = await rotate(place.database, place.vault, OWNER, forget=True)
    assert (done.resealed, done.unopenable, done.keys) == (4, 0, 1)
    for each in made:
        await place.signed_in(each.id)


async def test_rotations_and_sign_ins_at_once(gallery: Gallery) -> None:
    """While keys change all the time everybody can open and seal; no two rotations lose each other's key."""
    await gallery.sign_in_anew(timedelta(seconds=1))

    async def person() -> None:
        for _ in range(6):
            version = (await gallery.signed_in(gallery.account)).version
            await gallery.signed_in(gallery.account, refused=version)

    async def keeper() -> None:
        for _ in range(6):
            assert (await rotate(gallery.database, gallery.vault, OWNER, forget=True)).unopenable == 0

    await asyncio.gather(person(), person(), keeper(), keeper())
    assert (await gallery.show(gallery.account)).status == "connected"
    await gallery.signed_in(gallery.account)


async def test_a_rotation_waits_for_whoever_is_sealing(place: Place) -> None:
    """A row that is sealed with the old key and not committed yet would otherwise stay behind when that key goes."""
    first = await place.added(label="one")
    account = await place.author.account("two", "webhook")
    login = (await place.signed_in(first.id)).login
    async with place.database.transaction(OWNER, "signed in") as connection:
        await place.vault.put(connection, account, login)
        rotating = asyncio.create_task(rotate(place.database, place.vault, OWNER, forget=True))
        waits = (  # of this database: others are tested at the same time
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted"
        )
        await until(lambda: place.author.read(waits))
        assert not rotating.done()
    done = await rotating
    assert (done.resealed, done.keys) == (2, 1)
    assert (await place.signed_in(account)).login == login


async def test_what_does_not_belong_together_does_not_open(place: Place) -> None:
    """Swapped rows, a changed row, a lost key file: each is said, and a rotation goes past them."""
    one = await place.added(label="one")
    two = await place.added(given={**WEBHOOK, "url": "https://example.com/"}, label="two")
    await place.author.read(
        "UPDATE credential c SET nonce = o.nonce, sealed = o.sealed FROM credential o "
        "WHERE c.account_id = $1 AND o.account_id = $2",
        one.id,
        two.id,
    )
    with pytest.raises(Unopenable, match="not what was sealed for this account"):
        await place.signed_in(one.id)
    await place.signed_in(two.id)
    assert (await rotate(place.database, place.vault, OWNER)).unopenable == 1
    place.vault.file.unlink()
    with pytest.raises(MissingKey, match="put it back"):
        await place.signed_in(two.id)
    assert (await rotate(place.database, place.vault, OWNER)).unopenable == 2


# Nothing shows


async def test_no_secret_is_ever_shown(
    place: Place, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Not in logs, reprs, errors, JSON, the audit, the row itself, or what the server says that it is doing."""
    account = await place.added(label="hook")
    signed = await place.signed_in(account.id)
    with caplog.at_level(logging.DEBUG):
        structlog.get_logger().warning("signed in", signed=signed, login=signed.login, account=account)
        logging.getLogger("x").warning("%r %s", signed, signed.login)
    shown = [repr(signed), str(signed.login), repr(account), json.dumps(account.as_data(), default=str)]
    await place.author.read("UPDATE credential SET sealed = sealed || '\\x00'::bytea")
    try:
        await place.signed_in(account.id)
    except Unopenable as error:
        shown += traceback.format_exception(error)
    async with place.database.connection() as connection:
        shown.append(
            repr(
                (
                    await place.vault.get(
                        connection,
                        (
                            await place.added(given={**WEBHOOK, "url": "https://example.com/canary-path"}, label="two")
                        ).id,
                    )
                ).kept
            )
        )
        for table in ("credential", "account", "audit", "errand"):
            shown += [str(row) for row in await connection.fetch(f"SELECT t::text FROM {table} t")]
        shown += [str(row) for row in await connection.fetch("SELECT query FROM pg_stat_activity")]
    shown += [caplog.text, *capfd.readouterr()]
    told = "\n".join(shown)
    for secret in (CANARY, CANARY.removeprefix("whsec_"), "canary-path"):
        assert secret not in told
        assert secret.encode().hex() not in told


def test_a_login_is_a_secret_even_when_it_is_wrong() -> None:
    """A sealed text of another form does not quote itself."""
    from imprint.work.vault import _login, platform

    with pytest.raises(Unopenable) as refused_:
        _login(platform("webhook"), SecretStr(json.dumps({"url": "canary", "pin": "canary"})))
    # Not the lines of this test, which name it themselves.
    told = "".join(traceback.format_exception_only(refused_.value)) + str(refused_.value.__cause__)
    assert "canary" not in told


async def test_an_account_without_a_sign_in(place: Place) -> None:
    """It is said, not a mistake of the program."""
    await refused("account.not_signed_in", place.signed_in(await place.author.account()))
    await refused("account.not_signed_in", place.signed_in(uuid4()))
    assert key_ring.FILE == "credential-keys"
