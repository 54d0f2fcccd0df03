"""Signing in to Bluesky: a session of two hours from an app password, renewed by its token or, if need be, anew."""

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from pydantic import SecretStr

from imprint.platforms.answer import Answer
from imprint.platforms.contract import Http
from imprint.platforms.failure import Failure, RateLimited, SignInAgain
from imprint.platforms.login import Login
from imprint.platforms.request import Request, Text

BASE_URL = "https://bsky.social"
APP_URL = "https://bsky.app"
ACCESS_LASTS = timedelta(hours=2)
STALE = {"ExpiredToken", "InvalidToken", "AuthMissing", "AuthenticationRequired"}


class BlueskyLogin(Login):
    """A session and the app password that opens another; `pds_url` is the server that keeps the account."""

    base_url: str = BASE_URL
    pds_url: str
    app_url: str = APP_URL
    did: str
    app_password: SecretStr
    access_jwt: SecretStr
    refresh_jwt: SecretStr


async def renew(http: Http, login: BlueskyLogin) -> BlueskyLogin:
    """Use the refresh token; NoAnswer: it may have changed, and the old one still works for two hours."""
    headers = (("Authorization", SecretStr(f"Bearer {login.refresh_jwt.get_secret_value()}")),)
    url = f"{login.base_url}/xrpc/com.atproto.server.refreshSession"
    answer = await http.send(Request("refresh the session", "POST", url, headers))
    if (tokens := _tokens(answer)) is not None:
        return login.model_copy(update=tokens)
    if 400 <= answer.status <= 499 and error_name(answer) in STALE:  # noqa: PLR2004
        fresh = await session(http, login.base_url, login.did, login.app_password)
        return fresh.model_copy(update={"app_url": login.app_url, "name": login.name})
    raise _sign_in_failure(answer)


def error_name(answer: Answer) -> str:
    """Let nothing of an answer into codes but short plain names."""
    name = answer.json().get("error")
    return name if isinstance(name, str) and re.fullmatch(r"[A-Za-z]{1,60}", name) else ""


async def session(http: Http, base: str, identifier: str, password: SecretStr) -> BlueskyLogin:
    """Open a session with an app password."""
    body = json.dumps({"identifier": identifier, "password": password.get_secret_value()}).encode()
    request = Request("open a session", "POST", f"{base}/xrpc/com.atproto.server.createSession", body=Text(body))
    answer = await http.send(request)
    told, tokens = answer.json(), _tokens(answer)
    did = told.get("did")
    if tokens is None or not isinstance(did, str) or not did.startswith("did:"):
        raise _sign_in_failure(answer)
    known = {"name": str(told.get("handle") or identifier), "base_url": base, "pds_url": _pds(told, base), "did": did}
    return BlueskyLogin.model_validate({**known, "app_password": password, **tokens})


def _tokens(answer: Answer) -> dict[str, object] | None:
    told = answer.json()
    access, refresh = told.get("accessJwt"), told.get("refreshJwt")
    if not answer.ok or not isinstance(access, str) or not isinstance(refresh, str) or not access or not refresh:
        return None
    ends = _ends(access)
    lasts = ACCESS_LASTS if ends is None else answer.until(ends)  # by the clock of who has said when it ends
    return {"access_jwt": SecretStr(access), "refresh_jwt": SecretStr(refresh), "expires_in": lasts}


def _ends(token: str) -> datetime | None:
    """Read from a token when it ends; one that cannot be read is thought to last as long as they do."""
    try:
        payload = token.split(".")[1]
        return datetime.fromtimestamp(json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"], UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, OSError, NotBase64):
        return None


def _pds(told: Mapping[str, object], base: str) -> str:
    """Find the server that keeps the account in what the session says of it; else it is where we asked."""
    doc = told.get("didDoc")
    services = doc.get("service") if isinstance(doc, dict) else None
    for each in services if isinstance(services, list) else []:
        where = each.get("serviceEndpoint") if isinstance(each, dict) else None
        if isinstance(where, str) and str(each.get("id", "")).endswith("#atproto_pds") and where.startswith("https://"):
            return where.rstrip("/")
    return base


def _sign_in_failure(answer: Answer) -> Failure:
    name = error_name(answer)
    if answer.status == 429:  # noqa: PLR2004
        return RateLimited("bluesky.rate_limited", "Bluesky asks for fewer sign-ins.", after=answer.after())
    if name == "AuthFactorTokenRequired":
        sentence = "Bluesky wants a code by mail for this password; make an app password and use that."
        return SignInAgain("bluesky.not_an_app_password", sentence, renewable=False)
    if 400 <= answer.status <= 499 and name:  # noqa: PLR2004
        sentence = "Bluesky does not take the handle and the app password; make a new one and connect again."
        return SignInAgain(f"bluesky.{name}", sentence, renewable=False)
    return answer.not_understood("bluesky.session", "Bluesky did not say whether there is a session.")
