"""The tokens of the simulated DeviantArt: codes with PKCE, access for an hour, refresh tokens that work once."""

import hmac
import secrets
import time
from base64 import b64decode
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

from pydantic import SecretStr

from imprint.platforms.pkce import challenge
from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply

CLIENT_ID, CLIENT_SECRET, APP_NAME = "4711", "sandbox-client-secret", "Imprint"
LASTS = 3600
CODE_LASTS = 600
SCOPES = "user browse stash publish gallery"


def error(name: str, description: str, status: int = 400, **more: object) -> Reply:
    """Answer in the shape of every error of DeviantArt."""
    return json_reply({"error": name, "error_description": description, **more, "status": "error"}, status)


@dataclass(frozen=True)
class Code:
    """A code on its way back to the one who set out for it."""

    account: str
    redirect_uri: str
    challenge: str
    scope: str
    ends_at: float


@dataclass
class Access:
    """An access token."""

    account: str
    scope: str
    ends_at: float


class Tokens:
    """Who may do what; everything is in memory."""

    def __init__(self) -> None:
        self.accounts: list[str] = []
        self._codes: dict[str, Code] = {}
        self._access: dict[str, Access] = {}
        self._refresh: dict[str, str] = {}
        self.refreshes = 0

    def grant(self, account: str, scope: str = SCOPES) -> dict[str, object]:
        """Issue a pair of tokens."""
        if account and account not in self.accounts:
            self.accounts.append(account)
        access, refresh = secrets.token_hex(25), secrets.token_hex(20)
        self._access[access] = Access(account, scope, time.time() + LASTS)
        self._refresh[refresh] = account
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": LASTS,
            "refresh_token": refresh,
            "scope": scope,
            "status": "success",
        }

    def expire(self, account: str) -> None:
        """Let every access token of an account end now."""
        for token in self._access.values():
            if token.account == account:
                token.ends_at = 0

    def burn(self, account: str) -> None:
        """Let every refresh token of an account be used up."""
        self._refresh = {token: owner for token, owner in self._refresh.items() if owner != account}

    def access(self, call: Call, *scopes: str) -> str | Reply:
        """Give the account of a call's token, or the answer that turns the call away."""
        given = call.headers.get("authorization", "")
        token = given[7:] if given[:7].lower() == "bearer " else call.query.get("access_token", "")
        if not token:
            return error("invalid_request", "Must provide an access_token to access this resource.", 401)
        known = self._access.get(token)
        if known is None:
            return error("invalid_token", "Invalid token.", 401)
        if known.ends_at <= time.time():
            return expired()
        if missing := set(scopes) - set(known.scope.split()):
            return error("insufficient_scope", f"The token lacks: {' '.join(sorted(missing))}", 403)
        return known.account

    def authorize(self, call: Call) -> Reply:
        """Ask the person who it is, and send them back with a code."""
        query = call.query
        wrong = (
            query.get("response_type") != "code"
            or query.get("client_id") != CLIENT_ID
            or not query.get("redirect_uri", "").startswith(("http://", "https://"))
            or query.get("code_challenge_method") != "S256"
            or len(query.get("code_challenge", "")) != 43  # noqa: PLR2004 - a SHA-256 in base64
            or not query.get("state")
        )
        if wrong:
            return error("invalid_request", "The authorization request is not valid.")
        account = query.get("as")
        if account is None:
            links = "".join(
                f'<li><a href="?{escape(urlencode({**query, "as": each}))}">Sign in as {escape(each)}</a></li>'
                for each in self.accounts or ["artist"]
            )
            return html_reply(f"<!doctype html><title>Sandbox</title><h1>Who are you?</h1><ul>{links}</ul>")
        if account not in self.accounts:
            self.accounts.append(account)
        code = secrets.token_hex(20)
        self._codes[code] = Code(
            account, query["redirect_uri"], query["code_challenge"], query.get("scope", ""), time.time() + CODE_LASTS
        )
        back = urlencode({"code": code, "state": query["state"]})
        joint = "&" if "?" in query["redirect_uri"] else "?"
        return Reply(302, b"", {"Location": f"{query['redirect_uri']}{joint}{back}"})

    def token(self, call: Call) -> Reply:
        """Exchange a code, or use a refresh token; whatever comes of it, each is used up."""
        form = dict(call.form())
        if not _is_our_app(call, form):
            return error("invalid_client", "The client credentials are invalid.", 401)
        match form.get("grant_type"):
            case "authorization_code":
                return self._exchange(form)
            case "refresh_token":
                # Burnt before the answer is written: if that is lost, so is the token.
                account = self._refresh.pop(form.get("refresh_token", ""), None)
                if account is None:
                    return error("invalid_request", "The refresh_token is invalid.")
                self.refreshes += 1
                return json_reply(self.grant(account))
            case "client_credentials":
                granted = self.grant("")
                return json_reply(
                    {name: granted[name] for name in ("expires_in", "status", "access_token", "token_type")}
                )
            case _:
                return error("unsupported_grant_type", "The grant type is not supported.")

    def revoke(self, call: Call) -> Reply:
        """End an access."""
        form = dict(call.form())
        known = self._access.get(form.get("token", ""))
        if known is not None:
            self.burn(known.account)
            if form.get("revoke_refresh_only") not in {"1", "true"}:
                self.expire(known.account)
        return json_reply({"success": True})

    def _exchange(self, form: dict[str, str]) -> Reply:
        code = self._codes.pop(form.get("code", ""), None)
        if code is None or code.ends_at <= time.time() or form.get("redirect_uri") != code.redirect_uri:
            return error("invalid_request", "Incorrect authorization code.")
        verifier = form.get("code_verifier", "")
        if not verifier.isascii() or not hmac.compare_digest(challenge(SecretStr(verifier)), code.challenge):
            return error("invalid_grant", "The code_verifier does not match.")
        return json_reply(self.grant(code.account, code.scope))


def expired() -> Reply:
    """Answer that a token has expired."""
    sentence = "Expired oAuth2 user token. The client should request a new one with an access code or a refresh token."
    return error("invalid_token", sentence, 401)


def _is_our_app(call: Call, form: dict[str, str]) -> bool:
    given = call.headers.get("authorization", "")
    if given[:6].lower() == "basic ":
        name, _, secret = b64decode(given[6:]).decode("utf-8", "replace").partition(":")
    else:
        name, secret = form.get("client_id", ""), form.get("client_secret", "")
    return name == CLIENT_ID and hmac.compare_digest(secret.encode(), CLIENT_SECRET.encode())
