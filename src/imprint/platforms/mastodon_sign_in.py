"""Signing in to Mastodon: Imprint registers itself at the instance, the person lets it in, and the token has no end.

What an instance takes differs from place to place and from time to time; it is read when an account is connected, kept
with the login, and read anew by a renewal before something is published a day later.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from imprint.platforms.answer import Answer
from imprint.platforms.contract import Http
from imprint.platforms.failure import Failure, RateLimited, Refused, SignInAgain, harmless
from imprint.platforms.login import Errand, Login
from imprint.platforms.pkce import authorize_url, new_secret, returned_code
from imprint.platforms.request import Fields, Form, Request

APP_NAME = "Imprint"
# What an instance takes is believed for so long; where it does not say so now, it is asked again soon.
BELIEVED, ASKED_AGAIN = timedelta(days=1), timedelta(hours=1)
WHO = "/api/v1/accounts/verify_credentials"
SCOPES = "read:accounts read:statuses write:media write:statuses"
MOST_FILES = 4
MOST_CHARACTERS = 500
CHARACTERS_OF_A_LINK = 23
IMAGE_BYTES = 16 * 1024 * 1024
IMAGE_PIXELS = 33_177_600
MOST_ALT = 1500
TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


class MastodonLogin(Login):
    """The token of one account, the app it belongs to, and what its instance takes."""

    base_url: str
    client_id: str
    client_secret: SecretStr
    access_token: SecretStr
    account_id: str
    most_characters: int = MOST_CHARACTERS
    characters_of_a_link: int = CHARACTERS_OF_A_LINK
    most_files: int = MOST_FILES
    image_bytes: int = IMAGE_BYTES
    image_pixels: int = IMAGE_PIXELS
    most_alt: int = MOST_ALT
    types: frozenset[str] = TYPES


async def begin(http: Http, given: Mapping[str, str], redirect_url: str) -> Errand:
    """Register at the instance, and give the address to which the person is sent."""
    base = _base(given["instance"])
    fields: Fields = (("client_name", APP_NAME), ("redirect_uris", redirect_url), ("scopes", SCOPES))
    told = (await _post(http, "register at the instance", f"{base}/api/v1/apps", fields)).json()
    client, secret = told.get("client_id"), told.get("client_secret")
    if not isinstance(client, str) or not isinstance(secret, str):
        raise Refused("mastodon.no_instance", "There is no Mastodon at this address that lets Imprint register.")
    verifier, state = new_secret(), new_secret()
    kept = {
        "base_url": base,
        "client_id": client,
        "client_secret": secret,
        "redirect_url": redirect_url,
        "verifier": verifier.get_secret_value(),
    }
    query = {"client_id": client, "redirect_uri": redirect_url, "scope": SCOPES}
    url = authorize_url(f"{base}/oauth/authorize", verifier, state, query)
    return Errand(url, state, SecretStr(json.dumps(kept)))


async def finish(http: Http, errand: Errand, returned_to: str) -> MastodonLogin:
    """Exchange the code, ask whose the token is, and read what the instance takes."""
    code = returned_code(returned_to, errand.state)
    kept = json.loads(errand.kept.get_secret_value())
    fields: Fields = (
        ("grant_type", "authorization_code"),
        ("client_id", kept["client_id"]),
        ("client_secret", SecretStr(kept["client_secret"])),
        ("redirect_uri", kept["redirect_url"]),
        ("code", code),
        ("code_verifier", SecretStr(kept["verifier"])),
        ("scope", SCOPES),
    )
    base = kept["base_url"]
    token = (
        (await _post(http, "exchange the code for a token", f"{base}/oauth/token", fields)).json().get("access_token")
    )
    if not isinstance(token, str) or not token:
        raise SignInAgain("mastodon.no_token", "The instance gave no token; begin again.", renewable=False)
    mine = await _get(http, f"{base}{WHO}", _bearer(SecretStr(token)))
    if mine is None or not isinstance(mine.get("id"), str):
        raise SignInAgain("mastodon.no_account", "The instance does not say whose account this is.", renewable=False)
    login = MastodonLogin(
        name=f"@{mine.get('username', '')}@{urlsplit(base).netloc}",
        base_url=base,
        client_id=kept["client_id"],
        client_secret=SecretStr(kept["client_secret"]),
        access_token=SecretStr(token),
        account_id=str(mine["id"]),
    )
    return await _measured(http, login)


async def renew(http: Http, login: MastodonLogin) -> MastodonLogin:
    """See that the token, which has no end, was not taken back; and read anew what the instance takes."""
    with harmless():
        answer = await http.send(Request("look", "GET", f"{login.base_url}{WHO}", _bearer(login.access_token)))
        if not answer.ok:
            raise failure(answer)
    return await _measured(http, login)


async def revoke(http: Http, login: MastodonLogin) -> None:
    """Let the token end."""
    fields: Fields = (
        ("client_id", login.client_id),
        ("client_secret", login.client_secret),
        ("token", login.access_token),
    )
    await _post(http, "give the access back", f"{login.base_url}/oauth/revoke", fields)


async def _measured(http: Http, login: MastodonLogin) -> MastodonLogin:
    """Read what the instance takes; older ones say it at another place, and what is not said stays as it was."""
    told = await _get(http, f"{login.base_url}/api/v2/instance") or await _get(
        http, f"{login.base_url}/api/v1/instance"
    )
    if told is None:
        return login.model_copy(update={"expires_in": ASKED_AGAIN})
    return login.model_copy(update={**read_limits(told), "expires_in": BELIEVED})


def read_limits(told: Mapping[str, object]) -> dict[str, Any]:
    """Take the limits out of what an instance says of itself, as far as they can be believed."""
    configuration = _object(told.get("configuration"))
    statuses, media = _object(configuration.get("statuses")), _object(configuration.get("media_attachments"))
    found: dict[str, Any] = {
        "most_characters": statuses.get("max_characters"),
        "characters_of_a_link": statuses.get("characters_reserved_per_url"),
        "most_files": statuses.get("max_media_attachments"),
        "image_bytes": media.get("image_size_limit"),
        "image_pixels": media.get("image_matrix_limit"),
        "most_alt": media.get("description_limit"),
    }
    numbers = {name: value for name, value in found.items() if isinstance(value, int) and 0 < value < 10**12}
    types = media.get("supported_mime_types")
    known = TYPES & set(map(str, types)) if isinstance(types, list) else TYPES
    return {**numbers, "types": frozenset(known) or TYPES}


def _bearer(token: SecretStr) -> Fields:
    return (("Authorization", SecretStr(f"Bearer {token.get_secret_value()}")),)


async def _get(http: Http, url: str, headers: Fields = ()) -> dict[str, object] | None:
    """Ask something; None when it is not there or not to be read."""
    with harmless():
        answer = await http.send(Request("look", "GET", url, headers))
    if answer.status == 429:  # noqa: PLR2004
        raise failure(answer)
    return (answer.json() or None) if answer.ok else None


async def _post(http: Http, what: str, url: str, fields: Fields) -> Answer:
    answer = await http.send(Request(what, "POST", url, body=Form(fields)))
    if not answer.ok:
        raise failure(answer)
    return answer


def failure(answer: Answer) -> Failure:
    """Say what an answer to a sign-in means; its text is in the language of the instance, so only the status tells."""
    if answer.status == 429:  # noqa: PLR2004
        return RateLimited("mastodon.rate_limited", "The instance asks for fewer calls.", after=answer.after())
    if 400 <= answer.status <= 499:  # noqa: PLR2004
        return SignInAgain("mastodon.sign_in", "The instance does not take this sign-in; begin again.", renewable=False)
    return answer.not_understood("mastodon.no_answer", "The instance did not give an answer that can be read.")


def _base(text: str) -> str:
    """Make an address of what a person calls the instance: its domain, an address, or a name on it."""
    place = text.strip().rstrip("/")
    if "://" not in place:
        place = f"https://{place.rpartition('@')[2]}"
    parts = urlsplit(place)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise Refused("mastodon.bad_instance", "This is not an instance; write its domain, such as mastodon.social.")
    return place


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
