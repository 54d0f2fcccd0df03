"""A Mastodon to the letter of its source: apps and tokens, files that take time, statuses with keys, rate headers.

Its errors are in German, as those of an instance may be: whoever reads their text is lost.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import sha256
from html import escape
from typing import ClassVar

from pydantic import SecretStr

from imprint.platforms.graphemes import count
from imprint.platforms.mastodon import countable
from imprint.platforms.mastodon_sign_in import MastodonLogin
from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply
from imprint.sandbox.log import Log
from imprint.sandbox.mastodon_tokens import Tokens, error
from imprint.sandbox.meter import Meter
from imprint.sandbox.page import work
from imprint.sandbox.site import Site

KEY_LASTS = 3600
MOST_CHARACTERS, MOST_FILES, A_LINK, MOST_ALT = 500, 4, 23, 1500
GENEROUS = (5000, 16)
IMAGE_BYTES = 16 * 1024 * 1024
TYPES = ("image/jpeg", "image/png", "image/gif", "image/heic", "image/heif", "image/webp", "image/avif")
PICTURES = 60
LOOKS_UNTIL_READY = 2
_COUNTED_AS = MastodonLogin(
    base_url="", client_id="", client_secret=SecretStr(""), access_token=SecretStr(""), account_id=""
)


@dataclass
class Media:
    """A file; one that no status names yet can be asked for."""

    id: str
    account: str
    type: str
    sha256: str
    description: str | None
    looks: int = 0
    status: str | None = None

    @property
    def ready(self) -> bool:
        """Say whether a status may name it."""
        return self.looks >= LOOKS_UNTIL_READY


@dataclass(frozen=True)
class Status:
    """Something that others can see."""

    id: str
    account: str
    text: str
    warning: str
    sensitive: bool
    visibility: str
    language: str | None
    media: tuple[str, ...]
    at: float


class MastodonSite(Site):
    """The simulated instance."""

    name: ClassVar[str] = "mastodon"
    sends_for: ClassVar[bool] = True
    switches: ClassVar[Mapping[str, bool]] = {
        "slow_media": False,
        "forgets_media": False,
        "old_version": False,
        "generous": False,  # takes long texts and many files, as some instances do
        "silent": False,  # does not say what it takes
    }

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.tokens = Tokens(log)
        self._media: dict[str, Media] = {}
        self._statuses: dict[str, Status] = {}
        self._keys: dict[tuple[str, str], tuple[str, float]] = {}
        self._pictures: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._calls, self._uploads, self._posts = Meter(300, 300), Meter(30, 1800), Meter(300, 10800)

    def login(self, base_url: str, account: str) -> str:
        """Make an account with a token, as if somebody had signed in."""
        return MastodonLogin(
            name=f"@{account}@sandbox",
            base_url=base_url,
            client_id="sandbox",
            client_secret=SecretStr("sandbox-secret"),
            access_token=SecretStr(self.tokens.grant(account)),
            account_id=self.tokens.id(account),
        ).sealable()

    def answers(self, base_url: str, account: str) -> dict[str, str]:
        """Give the instance as it is for one who is signed in there."""
        return {"instance": f"{base_url}/~{account}"}

    def spoil(self, account: str, token: str) -> None:
        """Take the tokens of an account back; there is no other."""
        {"access": self.tokens.take_back}[token](account)

    def rate_limited(self) -> Reply:
        """Answer that there were too many calls; a real one has no Retry-After."""
        return error("Zu viele Anfragen", 429)

    def broken(self, status: int) -> Reply:
        """Answer as it does when something breaks inside: with a page."""
        return html_reply("<h1>Etwas ist schiefgelaufen.</h1>", status)

    def expired(self) -> Reply:
        """Answer that the token is not good."""
        return error("Der Zugriffs-Token ist ungültig", 401)

    def refused(self, code: int) -> Reply:
        """Answer that something is not valid."""
        return error(f"Gültigkeitsprüfung ist fehlgeschlagen ({code})", 422)

    async def handle(self, call: Call) -> Reply:
        """Answer a call to the interface or the sign-in, or show a status; under /~NAME one is signed in as NAME."""
        if visitor := re.match(r"/~([\w-]{1,40})(?=/)", call.path):
            call = replace(call, path=call.path[visitor.end() :], query={"as": visitor[1], **call.query})
        if call.method == "GET" and (page := re.fullmatch(r"/@[\w-]+/(\d+)", call.path)):
            return self._page(page[1])
        if call.path.startswith("/picture/"):
            kind, data = self._pictures.get(call.path.removeprefix("/picture/"), ("", b""))
            return Reply(200, data, {"Content-Type": kind}) if kind else html_reply("gone", 404)
        return self._open(call) or self._called(call)

    def _open(self, call: Call) -> Reply | None:
        """Answer what nobody needs a token for."""
        old = self.on["old_version"]
        if call.method == "GET" and call.path == f"/api/{'v1' if old else 'v2'}/instance" and not self.on["silent"]:
            return json_reply({"version": "3.5.0" if old else "4.6.0", "configuration": self._configuration()})
        return self.tokens.handle(call)

    def _called(self, call: Call) -> Reply:
        if (account := self.tokens.owner(call)) is None:
            return self.expired()
        now = self.now()
        match call.method, call.path:
            case "POST", "/api/v1/statuses":
                meter = self._posts
            case "POST", "/api/v2/media":
                meter = self._uploads
            case _:
                meter = self._calls
        allowed = self._calls.take(account, now) and (meter is self._calls or meter.take(account, now))
        reply = self._answered(call, account) if allowed else self.rate_limited()
        if not allowed:
            self.log.add(self.name, "too many", account=account, path=call.path)
        reset = datetime.fromtimestamp(meter.resets_at(now), UTC).isoformat(timespec="microseconds")
        return replace(
            reply,
            headers={
                **reply.headers,
                "Date": formatdate(now, usegmt=True),
                "X-RateLimit-Limit": str(meter.limit),
                "X-RateLimit-Remaining": str(meter.left(account, now)),
                "X-RateLimit-Reset": reset.replace("+00:00", "Z"),
            },
        )

    def _answered(self, call: Call, account: str) -> Reply:
        for method, pattern, answer in _ENDPOINTS:
            if method == call.method and (found := re.fullmatch(pattern, call.path)):
                return answer(self, call, account, found[1] if found.groups() else "")
        return error("Der Eintrag konnte nicht gefunden werden", 404)

    def _whoami(self, _call: Call, account: str, _rest: str) -> Reply:
        return json_reply({"id": self.tokens.id(account), "username": account, "acct": account})

    def _upload(self, call: Call, account: str, _rest: str) -> Reply:
        files = [part for part in call.parts() if part.filename is not None and part.name == "file"]
        description = dict(call.form()).get("description")
        if len(files) != 1 or files[0].type not in TYPES or len(files[0].data) > IMAGE_BYTES:
            return self.refused(1)
        if description is not None and len(description) > MOST_ALT:
            return self.refused(2)
        digest = sha256(files[0].data).hexdigest()
        media = Media(self._next(), account, files[0].type, digest, description)
        self._media[media.id] = media
        self._pictures[digest] = (media.type, files[0].data)
        while len(self._pictures) > PICTURES:
            self._pictures.popitem(last=False)
        size = len(files[0].data)
        self.log.add(self.name, "upload", account=account, item=media.id, sha256=digest, size=size, alt=description)
        media.looks = 0 if self.on["slow_media"] else LOOKS_UNTIL_READY
        return json_reply(self._attached(call, media), 200 if media.ready else 202)

    def _asked_media(self, call: Call, account: str, known: str) -> Reply:
        media = self._media.get(known)
        if self.on["forgets_media"]:
            self._media.clear()
            self.on["forgets_media"] = False
            media = None
        if media is None or media.account != account or media.status is not None:
            return error("Der Eintrag konnte nicht gefunden werden", 404)
        media.looks += 1
        return json_reply(self._attached(call, media), 200 if media.ready else 206)

    def _publish(self, call: Call, account: str, _rest: str) -> Reply:
        now, key = self.now(), call.headers.get("idempotency-key", "")
        known, at = self._keys.get((account, key), ("", 0.0))
        if key and known and now - at < KEY_LASTS:
            self.log.add(self.name, "again", account=account, key=key)
            return json_reply(self._told(call, self._statuses[known]))
        form = call.form()
        fields = dict(form)
        ids = tuple(value for name, value in form if name == "media_ids[]")
        text, warning = fields.get("status", "").strip(), fields.get("spoiler_text", "").strip()
        if wrong := self._wrong(account, text, warning, ids, fields):
            return wrong
        made = Status(
            self._next(),
            account,
            text,
            warning,
            fields.get("sensitive") in {"true", "1"} or bool(warning),
            fields.get("visibility", "public"),
            fields.get("language"),
            ids,
            now,
        )
        self._statuses[made.id] = made
        self._keys[account, key] = (made.id, now)
        for each in ids:
            self._media[each].status = made.id
        self.log.add(
            self.name,
            "publish",
            account=account,
            key=key or made.id,
            remote_id=made.id,
            title=text.partition("\n\n")[0],
            fields=form,
            picture=f"/{self.name}/picture/{self._media[ids[0]].sha256}" if ids else None,
            url=_url(call, made),
        )
        return json_reply(self._told(call, made))

    def _wrong(
        self, account: str, text: str, warning: str, ids: tuple[str, ...], fields: Mapping[str, str]
    ) -> Reply | None:
        """Say what is wrong with a status."""
        files = [self._media.get(each) for each in ids]
        bad_file = any(each is None or each.account != account or each.status is not None for each in files)
        early = any(each is not None and not each.ready for each in files)
        characters, most_files = GENEROUS if self.on["generous"] else (MOST_CHARACTERS, MOST_FILES)
        long = count(warning + countable(_COUNTED_AS, text)) > characters
        unknown = fields.get("visibility", "public") not in {"public", "unlisted", "private", "direct"}
        if bad_file or early or long or unknown or len(ids) > most_files or not (text or ids):
            return self.refused(3)
        return None

    def _own(self, call: Call, account: str, known: str) -> Reply:
        if known != self.tokens.id(account):
            return json_reply([])
        horizon, before = self.now() - call.lag, int(call.query.get("max_id", "0") or 0)
        mine = [each for each in self._statuses.values() if each.account == account and each.at <= horizon]
        shown = [each for each in reversed(mine) if not before or int(each.id) < before]
        return json_reply([self._told(call, each) for each in shown[: int(call.query.get("limit", "20"))]])

    def _source(self, _call: Call, account: str, known: str) -> Reply:
        found = self._statuses.get(known)
        if found is None or found.account != account:
            return error("Der Eintrag konnte nicht gefunden werden", 404)
        return json_reply({"id": known, "text": found.text, "spoiler_text": found.warning})

    def _told(self, call: Call, status: Status) -> dict[str, object]:
        at = datetime.fromtimestamp(status.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        paragraphs = "".join(f"<p>{escape(each).replace(chr(10), '<br />')}</p>" for each in status.text.split("\n\n"))
        return {
            "id": status.id,
            "created_at": at,
            "in_reply_to_id": None,
            "sensitive": status.sensitive,
            "spoiler_text": status.warning,
            "visibility": status.visibility,
            "language": status.language,
            "uri": f"{call.base_url}/users/{status.account}/statuses/{status.id}",
            "url": _url(call, status),
            "content": paragraphs,
            "reblog": None,
            "application": {"name": "Imprint", "website": None},
            "account": {"id": self.tokens.id(status.account), "username": status.account, "acct": status.account},
            "media_attachments": [self._attached(call, self._media[each]) for each in status.media],
        }

    def _attached(self, call: Call, media: Media) -> dict[str, object]:
        url = f"{call.base_url}/picture/{media.sha256}" if media.ready else None
        return {"id": media.id, "type": "image", "url": url, "description": media.description, "meta": {}}

    def _page(self, known: str) -> Reply:
        found = self._statuses.get(known)
        if found is None:
            return html_reply("<h1>404</h1>", 404)
        title, _, rest = found.text.partition("\n\n")
        picture = f"/{self.name}/picture/{self._media[found.media[0]].sha256}" if found.media else ""
        return html_reply(work(title, found.account, rest, (), picture, found.at))

    def _configuration(self) -> dict[str, object]:
        """Say what the instance takes."""
        characters, files = GENEROUS if self.on["generous"] else (MOST_CHARACTERS, MOST_FILES)
        return {
            "statuses": {
                "max_characters": characters,
                "max_media_attachments": files,
                "characters_reserved_per_url": A_LINK,
            },
            "media_attachments": {
                "supported_mime_types": [*TYPES, "video/mp4"],
                "description_limit": MOST_ALT,
                "image_size_limit": IMAGE_BYTES,
                "image_matrix_limit": 33_177_600,
                "video_size_limit": 99 * 1024 * 1024,
            },
        }

    def _next(self) -> str:
        return str((int(time.time() * 1000) << 16) + len(self._statuses) + len(self._media))


Endpoint = Callable[[MastodonSite, Call, str, str], Reply]
_ENDPOINTS: tuple[tuple[str, str, Endpoint], ...] = (
    ("GET", r"/api/v1/accounts/verify_credentials", MastodonSite._whoami),  # noqa: SLF001 - the table of its own class
    ("GET", r"/api/v1/accounts/(\d+)/statuses", MastodonSite._own),  # noqa: SLF001
    ("POST", r"/api/v2/media", MastodonSite._upload),  # noqa: SLF001
    ("GET", r"/api/v1/media/(\d+)", MastodonSite._asked_media),  # noqa: SLF001
    ("POST", r"/api/v1/statuses", MastodonSite._publish),  # noqa: SLF001
    ("GET", r"/api/v1/statuses/(\d+)/source", MastodonSite._source),  # noqa: SLF001
)


def _url(call: Call, status: Status) -> str:
    return f"{call.base_url}/@{status.account}/{status.id}"


SITE = MastodonSite
