"""Webhook: posts a work as JSON to an address, signed as Standard Webhooks 1.0.0 says.

The once-key is the webhook-id, the same for every attempt, so a receiver that keeps to the standard acts once.
"""

import hmac
import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from imprint.platforms.answer import Answer
from imprint.platforms.contract import TOKEN, Http, Once, Quota, Receipt
from imprint.platforms.failure import Failure, NotYet, RateLimited, Refused, SignInAgain
from imprint.platforms.limits import Limits, Misfit, misfits
from imprint.platforms.login import Ask, Errand, Login
from imprint.platforms.options import Options
from imprint.platforms.request import Fields, Later, Progress, Request, Text
from imprint.platforms.work import File, RemoteFile, Work

PREFIX = "whsec_"
WHEN_SENT = Later("(made when it is sent)")
# The standard asks for 24 to 64 random bytes; the test vector of its own library has 24.
SHORTEST_SECRET, LONGEST_SECRET = 24, 64
LIMITS = Limits()


class WebhookLogin(Login):
    """An address and the secret it shares with us; the address may be a secret of its own."""

    url: SecretStr
    secret: SecretStr


class Webhook:
    """The webhook platform."""

    name: ClassVar[str] = "webhook"
    limits: ClassVar[Limits] = LIMITS
    once: ClassVar[Once] = TOKEN
    can_look: ClassVar[bool] = False
    login_type = WebhookLogin
    options: ClassVar[type[Options]] = Options
    asks: ClassVar[tuple[Ask, ...]] = (
        Ask("url", "The address to post to.", secret=True),
        Ask("secret", "The secret that both sides know: whsec_ and 24 to 64 bytes in base64.", secret=True),
    )

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> WebhookLogin | Errand:
        """Add an address; it is not called before there is something to tell."""
        del http, redirect_url
        address = urlsplit(given["url"].strip())
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise Refused("webhook.bad_address", "The address must begin with https:// or http:// and name a host.")
        login = WebhookLogin(
            name=address.hostname, url=SecretStr(given["url"].strip()), secret=SecretStr(given["secret"].strip())
        )
        _key(login.secret)
        return login

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> WebhookLogin:
        """Refuse: nobody is ever sent away by a webhook."""
        del http, errand, returned_to
        raise Refused("sign_in.not_begun", "A webhook needs no browser.")

    async def renew(self, http: Http, login: WebhookLogin) -> WebhookLogin:
        """Refuse: a shared secret does not expire."""
        del http, login
        raise SignInAgain("webhook.secret", "The receiver does not take the secret; set it anew.", renewable=False)

    async def revoke(self, http: Http, login: WebhookLogin) -> bool:
        """Give nothing back: the secret is the receiver's own."""
        del http, login
        return False

    def host(self, login: WebhookLogin) -> str:
        """Name the receiver's host."""
        return urlsplit(login.url.get_secret_value()).netloc.rpartition("@")[2]

    def quota(self, answer: Answer) -> Quota | None:
        """Read nothing: the standard has no such header."""
        del answer
        return None

    def limits_for(self, login: WebhookLogin) -> Limits:
        """Give the limits: there are none that we know of."""
        del login
        return self.limits

    def validate(self, login: WebhookLogin, work: Work) -> list[Misfit]:
        """List what does not fit."""
        del login
        return misfits(self.name, self.limits, work)

    async def check(self, http: Http, login: WebhookLogin, work: Work) -> None:
        """Check the secret; the standard knows no call that does nothing."""
        del http, work
        _key(login.secret)

    async def upload(self, http: Http, login: WebhookLogin, work: Work, file: File, progress: Progress) -> RemoteFile:
        """Send nothing: the message names each file and its hash."""
        del http, login, work, progress
        return RemoteFile(file.sha256, file.sha256)

    async def prepare(self, http: Http, login: WebhookLogin, work: Work) -> Work:
        """Need nothing besides the files."""
        del http, login
        return work

    async def publish(self, http: Http, login: WebhookLogin, work: Work) -> Receipt:
        """Post the message; every status of the 2xx means that it was taken."""
        body = message(work)
        moment = str(int(datetime.now(UTC).timestamp()))
        request = _request(login, work, body, moment, sign(login.secret, work.key, moment, body))
        answer = await http.send(request)
        if answer.ok:
            return Receipt(work.key)
        raise _failure(answer)

    async def find(
        self, http: Http, login: WebhookLogin, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Find nothing: a receiver cannot be asked."""
        del http, login, work, since, besides
        return None

    async def preview(self, login: WebhookLogin, work: Work) -> list[Request]:
        """Give the request; its time and signature are made when it is sent."""
        return [_request(login, work, message(work), WHEN_SENT, WHEN_SENT)]


def message(work: Work) -> bytes:
    """Write the message; the same bytes for every attempt."""
    told = {"type": "post.published", "timestamp": work.as_data()["madeAt"], "data": work.as_data()}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def sign(secret: SecretStr, key: str, moment: str, body: bytes) -> str:
    """Sign a message: HMAC-SHA256 over id, time and body."""
    digest = hmac.digest(_key(secret), f"{key}.{moment}.".encode() + body, sha256)
    return f"v1,{b64encode(digest).decode('ascii')}"


def _request(login: WebhookLogin, work: Work, body: bytes, moment: str, signature: str) -> Request:
    headers: Fields = (
        ("webhook-id", work.key),
        ("webhook-timestamp", moment),
        ("webhook-signature", signature),
    )
    url = login.url.get_secret_value()
    return Request("post the work to the address", "POST", url, headers, Text(body), secret_path=True)


def _key(secret: SecretStr) -> bytes:
    try:
        key = b64decode(secret.get_secret_value().removeprefix(PREFIX), validate=True)
    except (NotBase64, ValueError):
        key = b""
    if not SHORTEST_SECRET <= len(key) <= LONGEST_SECRET:
        raise SignInAgain(
            "webhook.bad_secret", "The webhook's secret is not whsec_ and 24 to 64 bytes in base64.", renewable=False
        )
    return key


def _failure(answer: Answer) -> Failure:  # noqa: PLR0911 - one return for each thing a status can mean
    status, after = answer.status, answer.after()
    match status:
        case 410:
            return Refused("webhook.gone", "The receiver says that this address is gone for good; remove the account.")
        case 401 | 403:
            return SignInAgain("webhook.secret", "The receiver does not take the signature.", renewable=False)
        case 429:
            return RateLimited("webhook.rate_limited", "The receiver asks for fewer messages.", after=after)
        case 408 | 425:
            return NotYet("webhook.not_yet", f"The receiver answered {status}.", after=after)
        case _ if 300 <= status <= 399:  # noqa: PLR2004 - redirects
            return Refused("webhook.redirect", "The address leads elsewhere, and that is not followed; change it.")
        case _ if 400 <= status <= 499:  # noqa: PLR2004 - the receiver's own word that it did not take it
            return Refused(f"webhook.refused_{status}", f"The receiver refused the message with {status}.")
        case _:
            return answer.not_understood("webhook.no_answer", f"The receiver answered {status}; it may have it or not.")
