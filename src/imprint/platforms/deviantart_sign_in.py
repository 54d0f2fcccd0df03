"""Signing in to DeviantArt: OAuth 2.1 with PKCE, and refresh tokens that can be used once.

Any failed refresh burns the token, even when only the answer is lost, and parallel ones race. So the caller lets one
process at a time refresh an account, and commits the new tokens before it uses them; nothing here remembers anything.
"""

import json
import re
from collections.abc import Mapping
from datetime import timedelta

from pydantic import SecretStr

from imprint.platforms.answer import Answer
from imprint.platforms.contract import Http
from imprint.platforms.failure import RateLimited, Refused, SignInAgain
from imprint.platforms.login import Ask, Errand, Login
from imprint.platforms.pkce import authorize_url, new_secret, returned_code
from imprint.platforms.request import Fields, Form, Request

BASE_URL = "https://www.deviantart.com"
MOST_BYTES = 30_000_000
SCOPES = "user browse stash publish gallery"
REFRESH_TOKEN_LASTS = timedelta(days=90)
ACCESS_TOKEN_LASTS = timedelta(hours=1)
ASKS = (
    Ask("client_id", "The client id of your application at DeviantArt."),
    Ask("client_secret", "Its client secret.", secret=True),
    Ask("app_name", "The name of the application, by which a look tells what Imprint has published.", default=""),
    Ask("base_url", "Where DeviantArt is.", default=BASE_URL),
    Ask(
        "agree_terms",
        "Whether to send that you agree to its terms, as older applications must: yes or no.",
        default="no",
    ),
    Ask("most_bytes", "How large a file may be, in bytes.", default=str(MOST_BYTES)),
)


# What was given when the account was added, and belongs to its application.
APP = ("base_url", "client_id", "client_secret", "app_name", "agree_terms", "most_bytes")


class DeviantArtLogin(Login):
    """The tokens of one account and the application they belong to.

    `agree_terms` sends the old agree_tos and agree_submission; newer applications do without. `most_bytes` is how
    large a file may be: nobody could verify it, and it is said to differ between free and paying accounts.
    """

    base_url: str = BASE_URL
    client_id: str
    client_secret: SecretStr
    access_token: SecretStr
    refresh_token: SecretStr | None = None
    app_name: str = ""
    agree_terms: bool = False
    most_bytes: int = MOST_BYTES


def begin(given: Mapping[str, str], redirect_url: str) -> Errand:
    """Give the address to which the person is sent, and what must be kept until the return."""
    base, most = (given.get("base_url") or BASE_URL).rstrip("/"), given.get("most_bytes", "")
    verifier, state = new_secret(), new_secret()
    fields = {"client_id": given["client_id"], "redirect_uri": redirect_url, "scope": SCOPES}
    kept = {
        "base_url": base,
        "client_id": given["client_id"],
        "client_secret": given["client_secret"],
        "app_name": given.get("app_name", ""),
        "agree_terms": given.get("agree_terms", "no").strip().lower() == "yes",
        "most_bytes": int(most) if re.fullmatch(r"[1-9][0-9]{3,11}", most) else MOST_BYTES,
        "redirect_url": redirect_url,
        "verifier": verifier.get_secret_value(),
    }
    url = authorize_url(f"{base}/oauth2/authorize", verifier, state, fields)
    return Errand(url, state, SecretStr(json.dumps(kept)))


async def finish(http: Http, errand: Errand, returned_to: str) -> DeviantArtLogin:
    """Exchange the code that the person brought back."""
    code = returned_code(returned_to, errand.state)
    kept = json.loads(errand.kept.get_secret_value())
    fields: Fields = (
        ("grant_type", "authorization_code"),
        ("client_id", kept["client_id"]),
        ("client_secret", SecretStr(kept["client_secret"])),
        ("redirect_uri", kept["redirect_url"]),
        ("code", code),
        ("code_verifier", SecretStr(kept["verifier"])),
    )
    told = await _tokens(http, kept["base_url"], "exchange the code for tokens", fields)
    app = {name: kept[name] for name in APP}
    return DeviantArtLogin.model_validate({**app, **told})


async def renew(http: Http, login: DeviantArtLogin) -> DeviantArtLogin:
    """Use the refresh token; NotYet: it is still good; NoAnswer: it may be burnt, and one more try tells."""
    if login.refresh_token is None:
        raise _sign_in_again("deviantart.no_refresh_token")
    fields: Fields = (
        ("grant_type", "refresh_token"),
        ("client_id", login.client_id),
        ("client_secret", login.client_secret),
        ("refresh_token", login.refresh_token),
    )
    told = await _tokens(http, login.base_url, "refresh the access token", fields)
    return login.model_copy(update=told)


async def revoke(http: Http, login: DeviantArtLogin) -> None:
    """Give the access back when an account is removed."""
    fields: Fields = (("token", login.access_token),)
    answer = await http.send(
        Request("give the access back", "POST", f"{login.base_url}/oauth2/revoke", body=Form(fields))
    )
    if not answer.ok:
        raise answer.not_understood("deviantart.revoke", "DeviantArt did not say that the access has ended.")


async def _tokens(http: Http, base_url: str, what: str, fields: Fields) -> dict[str, SecretStr | timedelta]:
    answer = await http.send(Request(what, "POST", f"{base_url}/oauth2/token", body=Form(fields)))
    told = answer.json()
    access, refresh = told.get("access_token"), told.get("refresh_token")
    if not answer.ok or not isinstance(access, str) or not isinstance(refresh, str) or not access or not refresh:
        raise _failure(answer)
    lasts = told.get("expires_in")
    seconds = timedelta(seconds=lasts) if isinstance(lasts, int) and 0 < lasts < 10**7 else ACCESS_TOKEN_LASTS
    return {
        "access_token": SecretStr(access),
        "refresh_token": SecretStr(refresh),
        "expires_in": seconds,
        "renewable_for": REFRESH_TOKEN_LASTS,
    }


def _failure(answer: Answer) -> Exception:
    told = answer.json()
    error = told.get("error")
    known = isinstance(error, str) and re.fullmatch(r"[a-z_]{1,40}", error)
    if answer.status == 429 or (answer.status == 403 and not answer.body.strip()):  # noqa: PLR2004
        return RateLimited("deviantart.rate_limited", "DeviantArt asks for fewer calls.", after=answer.after())
    if 400 <= answer.status <= 499 and known:  # noqa: PLR2004
        if error == "unauthorized_client":
            return Refused("deviantart.app_refused", "DeviantArt does not let this application sign people in.")
        return _sign_in_again(f"deviantart.{error}")
    return answer.not_understood("deviantart.token", "DeviantArt did not say whether there are new tokens.")


def _sign_in_again(code: str) -> SignInAgain:
    return SignInAgain(code, "DeviantArt wants this account connected anew; sign in again.", renewable=False)
