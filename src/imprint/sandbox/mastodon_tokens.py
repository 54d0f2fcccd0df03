"""The sign-in of the simulated Mastodon: apps that register themselves, codes with PKCE, tokens without an end."""

import hmac
import secrets
import time
from dataclasses import dataclass, field
from html import escape
from urllib.parse import urlencode

from pydantic import SecretStr

from imprint.platforms.pkce import challenge
from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply
from imprint.sandbox.log import Log

FIRST_ACCOUNT = 117020565966271181


def error(text: str, status: int) -> Reply:
    """Answer in the shape of every error of Mastodon."""
    return json_reply({"error": text}, status)


@dataclass
class Code:
    """A code on its way back, and what it was given for."""

    account: str
    app: str
    redirect_uri: str
    challenge: str


@dataclass
class App:
    """Something that has registered."""

    secret: str
    redirect_uris: list[str] = field(default_factory=list)


class Tokens:
    """Who may do what; everything is in memory."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._apps: dict[str, App] = {}
        self._codes: dict[str, Code] = {}
        self._tokens: dict[str, str] = {}
        self._accounts: list[str] = []

    def grant(self, account: str) -> str:
        """Issue a token."""
        token = secrets.token_urlsafe(32)
        self._tokens[token] = account
        self.id(account)
        return token

    def take_back(self, account: str) -> None:
        """Let every token of an account end."""
        self._tokens = {each: owner for each, owner in self._tokens.items() if owner != account}

    def id(self, account: str) -> str:
        """Give the number of an account."""
        if account not in self._accounts:
            self._accounts.append(account)
        return str(FIRST_ACCOUNT + self._accounts.index(account))

    def owner(self, call: Call) -> str | None:
        """Give the account of a call's token."""
        given = call.headers.get("authorization", "")
        return self._tokens.get(given[7:]) if given[:7].lower() == "bearer " else None

    def handle(self, call: Call) -> Reply | None:
        """Answer what belongs to a sign-in; None when it does not."""
        match call.method, call.path:
            case "POST", "/api/v1/apps":
                return self._register(call)
            case "GET", "/oauth/authorize":
                return self._authorize(call)
            case "POST", "/oauth/token":
                return self._exchange(call)
            case "POST", "/oauth/revoke":
                self._tokens.pop(dict(call.form()).get("token", ""), None)
                return json_reply({})
        return None

    def _register(self, call: Call) -> Reply:
        form = dict(call.form())
        if not form.get("client_name") or not form.get("redirect_uris"):
            return error("Gültigkeitsprüfung ist fehlgeschlagen", 422)
        known, secret = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._apps[known] = App(secret, form["redirect_uris"].split("\n"))
        told = {"id": str(len(self._apps)), "name": form["client_name"], "client_id": known, "client_secret": secret}
        return json_reply({**told, "redirect_uri": form["redirect_uris"]})

    def _authorize(self, call: Call) -> Reply:
        query = call.query
        app = self._apps.get(query.get("client_id", ""))
        if app is None or query.get("redirect_uri") not in app.redirect_uris or query.get("response_type") != "code":
            return error("Die Anfrage ist ungültig", 401)
        account = query.get("as")
        if account is None:
            links = "".join(
                f'<li><a href="?{escape(urlencode({**query, "as": each}))}">Anmelden als {escape(each)}</a></li>'
                for each in self._accounts or ["artist"]
            )
            return html_reply(f"<!doctype html><title>Sandbox</title><h1>Wer bist du?</h1><ul>{links}</ul>")
        code = secrets.token_hex(20)
        self._codes[code] = Code(account, query["client_id"], query["redirect_uri"], query.get("code_challenge", ""))
        back = urlencode({"code": code, "state": query.get("state", "")})
        return Reply(302, b"", {"Location": f"{query['redirect_uri']}?{back}"})

    def _exchange(self, call: Call) -> Reply:
        form = dict(call.form())
        app, code = self._apps.get(form.get("client_id", "")), self._codes.pop(form.get("code", ""), None)
        if app is None or not hmac.compare_digest(form.get("client_secret", "").encode(), app.secret.encode()):
            return json_reply({"error": "invalid_client", "error_description": "Unbekannter Client."}, 401)
        verifier = form.get("code_verifier", "")
        right = code is not None and code.app == form["client_id"] and code.redirect_uri == form.get("redirect_uri")
        if code is None or not right or (code.challenge and challenge(SecretStr(verifier)) != code.challenge):
            return json_reply({"error": "invalid_grant", "error_description": "Ungültiger Code."}, 400)
        token = self.grant(code.account)
        self._log.add("mastodon", "token", account=code.account, path=call.path, status=200)
        told = {"access_token": token, "token_type": "Bearer", "scope": form.get("scope", "")}
        return json_reply({**told, "created_at": int(time.time())})
