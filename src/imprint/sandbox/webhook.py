"""A webhook receiver that keeps to Standard Webhooks: it checks every signature, and acts once for each id or not."""

import hmac
import json
import secrets
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import ClassVar

from pydantic import SecretStr

from imprint.platforms.webhook import PREFIX, WebhookLogin, sign
from imprint.sandbox.exchange import Call, Reply, json_reply
from imprint.sandbox.log import Log
from imprint.sandbox.site import Site

TOLERANCE = 300


class WebhookSite(Site):
    """The receiver; each account has an address and a secret of its own."""

    name: ClassVar[str] = "webhook"
    switches: ClassVar[Mapping[str, bool]] = {"deduplicates": True}

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._secrets: dict[str, SecretStr] = {}
        self._seen: set[str] = set()

    def login(self, base_url: str, account: str) -> str:
        """Make an address with a secret."""
        secret = SecretStr(PREFIX + b64encode(secrets.token_bytes(32)).decode())
        self._secrets[account] = secret
        return WebhookLogin(name=account, url=SecretStr(f"{base_url}/{account}"), secret=secret).sealable()

    def answers(self, base_url: str, account: str) -> dict[str, str]:
        """Give a new address and its secret."""
        login = WebhookLogin.model_validate_json(self.login(base_url, account))
        return {"url": login.url.get_secret_value(), "secret": login.secret.get_secret_value()}

    async def handle(self, call: Call) -> Reply:
        """Take a message that is signed and recent."""
        account = call.path.strip("/")
        secret = self._secrets.get(account)
        key, moment = call.headers.get("webhook-id", ""), call.headers.get("webhook-timestamp", "")
        if secret is None:
            return json_reply({"error": "no such address"}, 404)
        if call.method != "POST":
            return json_reply({"error": "only POST"}, 405)
        if not moment.isdigit() or abs(time.time() - int(moment)) > TOLERANCE or not key:
            return json_reply({"error": "too old, or not signed"}, 400)
        right = sign(secret, key, moment, call.body)
        given = call.headers.get("webhook-signature", "").split(" ")
        if not any(hmac.compare_digest(each.encode(), right.encode()) for each in given):
            return json_reply({"error": "wrong signature"}, 401)
        if key in self._seen and self.on["deduplicates"]:
            self.log.add(self.name, "again", account=account, key=key)
            return json_reply({"again": True})
        self._seen.add(key)
        told = json.loads(call.body)
        self.log.add(self.name, "publish", account=account, key=key, remote_id=key, title=told["data"]["title"])
        return json_reply({"again": False})


SITE = WebhookSite
