"""Signing in: PKCE as the standard says, and the whole way through the simulated DeviantArt."""

import traceback
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from pydantic import SecretStr

from imprint.engine.wire import Wire
from imprint.platforms.deviantart import DeviantArt
from imprint.platforms.deviantart_sign_in import DeviantArtLogin, revoke
from imprint.platforms.failure import Refused, SignInAgain
from imprint.platforms.login import Errand
from imprint.platforms.pkce import challenge, new_secret, returned_code
from imprint.sandbox.deviantart_tokens import CLIENT_ID, CLIENT_SECRET
from imprint.sandbox.server import Sandbox, sandbox
from tests.platforms.works import work

DA = DeviantArt()
BACK = "http://127.0.0.1:7600/back"


def test_the_challenge_of_the_standard() -> None:
    """The example of RFC 7636 comes out the same."""
    verifier = SecretStr("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    assert challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert new_secret() != new_secret()
    assert 43 <= len(new_secret().get_secret_value()) <= 128


async def begun(running: Sandbox) -> Errand:
    """Set out."""
    given = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "app_name": "Imprint",
        "base_url": running.base_url("deviantart") + "/",
    }
    errand = await DA.begin(Wire().within(5), given, BACK)
    assert isinstance(errand, Errand)
    return errand


async def came_back(errand: Errand, account: str = "artist") -> str:
    """Sign in as a person would, and give the address the browser ends at."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        page = await browser.get(errand.url)
        assert page.status_code == 200
        answer = await browser.get(errand.url + f"&as={account}")
    assert answer.status_code == 302
    return str(answer.headers["location"])


async def test_the_whole_way() -> None:
    """Set out, sign in, come back: a login that works, is named after its account, and can be revoked."""
    async with sandbox() as running:
        errand = await begun(running)
        query = parse_qs(urlsplit(errand.url).query)
        assert query["scope"] == ["user browse stash publish gallery"]
        assert query["code_challenge_method"] == ["S256"]
        assert query["redirect_uri"] == [BACK]
        login = await DA.finish(Wire().within(5), errand, await came_back(errand))
        assert login.name == "artist"
        await DA.check(Wire().within(5), login, work())
        assert DeviantArtLogin.model_validate_json(login.sealable()) == login
        await revoke(Wire().within(5), login)
        with pytest.raises(SignInAgain):
            await DA.check(Wire().within(5), login, work())
        with pytest.raises(SignInAgain):
            await DA.renew(Wire().within(5), login)


async def test_a_code_works_once_and_for_its_own_errand() -> None:
    """Neither a stolen code nor a second use of one gives anything."""
    async with sandbox() as running:
        errand, other = await begun(running), await begun(running)
        address = await came_back(errand)
        with pytest.raises(Refused) as refused:
            await DA.finish(Wire().within(5), other, address)
        assert refused.value.code == "sign_in.wrong_state"
        stolen = Errand(other.url, errand.state, other.kept)
        with pytest.raises(SignInAgain) as wrong:
            await DA.finish(Wire().within(5), stolen, address)
        assert wrong.value.code == "deviantart.invalid_grant"
        with pytest.raises(SignInAgain):
            await DA.finish(Wire().within(5), errand, address)  # used up by the thief's try


async def test_an_address_without_a_code() -> None:
    """A person who said no, or who copied half of the address, is told so."""
    state = SecretStr("s" * 20)
    for address, code in (
        (f"{BACK}?error=access_denied&state={'s' * 20}", "sign_in.denied"),
        (f"{BACK}?state={'s' * 20}", "sign_in.no_code"),
        (f"{BACK}?code=x", "sign_in.wrong_state"),
        ("", "sign_in.wrong_state"),
    ):
        with pytest.raises(Refused) as refused:
            returned_code(address, state)
        assert refused.value.code == code


async def test_nothing_of_an_errand_is_shown() -> None:
    """State, verifier and secret are in no repr, and in no failure on the way."""
    async with sandbox() as running:
        errand = await begun(running)
        address = await came_back(errand)
        secrets = [CLIENT_SECRET, errand.state.get_secret_value(), parse_qs(urlsplit(address).query)["code"][0]]
        shown = repr(errand)
        wrong = SecretStr(errand.kept.get_secret_value().replace(CLIENT_SECRET, f"{CLIENT_SECRET}-not"))
        with pytest.raises(SignInAgain) as seen:
            await DA.finish(Wire().within(5), Errand("", errand.state, wrong), address)
        assert seen.value.code == "deviantart.invalid_client"
        shown += "".join(traceback.format_exception(seen.value))
        assert not any(secret in shown for secret in secrets)
