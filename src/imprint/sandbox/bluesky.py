"""A Bluesky to the letter of its server's source: sessions, blobs, records under keys, points and error names."""

import json
import re
import secrets
import time
from base64 import b32encode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from typing import Any, ClassVar

from pydantic import SecretStr

from imprint.platforms.bluesky import COLLECTION, LIMITS
from imprint.platforms.bluesky_sign_in import BlueskyLogin
from imprint.platforms.bluesky_text import fits
from imprint.platforms.tid import TID
from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply
from imprint.sandbox.log import Log
from imprint.sandbox.meter import Meter
from imprint.sandbox.page import work
from imprint.sandbox.site import Site

XRPC = "/xrpc/"
APP_PASSWORD = "sand-boxx-pass-word"  # noqa: S105 - everybody's, and of the sandbox only
DOMAIN = ".sandbox.test"
ACCESS_LASTS, REFRESH_LASTS, GRACE = 7200, 90 * 86400, 7200
LARGEST_BLOB = 5 * 1024 * 1024
MOST_ALT = 10_000
PICTURES = 60
POINTS = {"createRecord": 3, "putRecord": 2, "deleteRecord": 1}


@dataclass
class Repository:
    """What one account has: its records by their keys, and the blobs that are there."""

    account: str
    records: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    blobs: dict[str, tuple[str, int, str]] = field(default_factory=dict)


@dataclass
class Token:
    """A token of a session."""

    account: str
    ends_at: float


class BlueskySite(Site):
    """The simulated Bluesky."""

    name: ClassVar[str] = "bluesky"
    switches: ClassVar[Mapping[str, bool]] = {"forgets_blobs": False}

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._repositories: dict[str, Repository] = {}
        self._access: dict[str, Token] = {}
        self._refresh: dict[str, Token] = {}
        self._pictures: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._calls = Meter(3000, 300)
        self._sessions = Meter(30, 300)
        self._writes = (Meter(5000, 3600), Meter(35000, 86400))

    def login(self, base_url: str, account: str) -> str:
        """Make an account with a session, as if its app password had been given."""
        session = self._opened(account)
        return BlueskyLogin(
            name=handle(account),
            base_url=base_url,
            pds_url=base_url,
            app_url=base_url,
            did=did(account),
            app_password=SecretStr(APP_PASSWORD),
            access_jwt=SecretStr(session["accessJwt"]),
            refresh_jwt=SecretStr(session["refreshJwt"]),
        ).sealable()

    def answers(self, base_url: str, account: str) -> dict[str, str]:
        """Give a handle and the app password."""
        return {"handle": handle(account), "app_password": APP_PASSWORD, "base_url": base_url}

    def spoil(self, account: str, token: str) -> None:
        """Let the access tokens of an account expire, or its refresh tokens."""
        for each in {"access": self._access, "refresh": self._refresh}[token].values():
            if each.account == account:
                each.ends_at = 0

    def rate_limited(self) -> Reply:
        """Answer that there were too many calls."""
        return error("RateLimitExceeded", "Rate Limit Exceeded", 429)

    def broken(self, status: int) -> Reply:
        """Answer as it does when something breaks inside."""
        return error("InternalServerError", "Internal Server Error", status)

    def expired(self) -> Reply:
        """Answer that the token has expired: a 400, not a 401."""
        return error("ExpiredToken", "Token has expired")

    def refused(self, code: int) -> Reply:
        """Answer that a record is not as it should be."""
        return error("InvalidRecord", f"Invalid app.bsky.feed.post record: {code}")

    async def handle(self, call: Call) -> Reply:
        """Answer a call to the interface, or show a post."""
        if call.method == "GET" and (page := re.fullmatch(r"/profile/([^/]+)/post/([^/]+)", call.path)):
            return self._page(page[1], page[2])
        if call.path.startswith("/picture/"):
            kind, data = self._pictures.get(call.path.removeprefix("/picture/"), ("", b""))
            return Reply(200, data, {"Content-Type": kind}) if kind else html_reply("gone", 404)
        method = call.path.removeprefix(XRPC)
        if not call.path.startswith(XRPC) or (call.method, method) not in _METHODS:
            return error("MethodNotImplemented", "Method Not Implemented", 501)
        return self._called(call, method)

    def _called(self, call: Call, method: str) -> Reply:
        act = _METHODS[call.method, method]
        if method.startswith("com.atproto.server.") and call.method == "POST":
            return act(self, call, "")
        account = self._account(call)
        if isinstance(account, Reply):
            return account
        now, points = self.now(), POINTS.get(method.rpartition(".")[2], 0)
        tightest = min(self._writes, key=lambda each: each.left(account, now)) if points else self._calls
        allowed = self._calls.take(account, now) and all(
            each.take(account, now, points) for each in self._writes if points
        )
        reply = act(self, call, account) if allowed else self.rate_limited()
        if not allowed:
            reply = reply.with_headers(Retry_After=str(int(tightest.resets_at(now) - now) + 1))
        return _metered(reply, tightest, account, now)

    def _account(self, call: Call) -> str | Reply:
        given = call.headers.get("authorization", "")
        token = self._access.get(given[7:]) if given[:7].lower() == "bearer " else None
        if not given:
            return error("AuthMissing", "Authentication Required", 401)
        if token is None:
            return error("InvalidToken", "Token could not be verified")
        return self.expired() if token.ends_at <= time.time() else token.account

    def _opened(self, account: str) -> dict[str, str]:
        now = time.time()
        access, refresh = _jwt(account, now + ACCESS_LASTS), _jwt(account, now + REFRESH_LASTS)
        self._access[access] = Token(account, now + ACCESS_LASTS)
        self._refresh[refresh] = Token(account, now + REFRESH_LASTS)
        self._repositories.setdefault(did(account), Repository(account))
        return {"accessJwt": access, "refreshJwt": refresh, "handle": handle(account), "did": did(account)}

    def _create_session(self, call: Call, _account: str) -> Reply:
        told, now = _told(call), time.time()
        who, password = str(told.get("identifier", "")), told.get("password")
        account = next((r.account for known, r in self._repositories.items() if known == who), who.removesuffix(DOMAIN))
        if not self._sessions.take(account, now):
            return _metered(self.rate_limited(), self._sessions, account, now).with_headers(Retry_After="300")
        if not re.fullmatch(r"[\w-]{1,60}", account) or password != APP_PASSWORD:
            return error("AuthenticationRequired", "Invalid identifier or password", 401)
        self.log.add(self.name, "token", account=account, path=call.path, status=200)
        return json_reply({**self._opened(account), "email": "", "active": True, "didDoc": {"id": did(account)}})

    def _refresh_session(self, call: Call, _account: str) -> Reply:
        token = self._refresh.get(call.headers.get("authorization", "")[7:])
        now = time.time()
        if token is None:
            return error("InvalidToken", "Token could not be verified")
        if token.ends_at <= now:
            return error("ExpiredToken", "Token has been revoked")
        token.ends_at = min(token.ends_at, now + GRACE)  # rotated; whoever lost the answer may ask again for a while
        self.log.add(self.name, "token", account=token.account, path=call.path, status=200)
        return json_reply({**self._opened(token.account), "active": True})

    def _get_session(self, _call: Call, account: str) -> Reply:
        return json_reply({"handle": handle(account), "did": did(account), "active": True})

    def _resolve(self, call: Call, _account: str) -> Reply:
        account = call.query.get("handle", "").removesuffix(DOMAIN)
        if did(account) not in self._repositories:
            return error("InvalidRequest", "Unable to resolve handle")
        return json_reply({"did": did(account)})

    def _upload(self, call: Call, account: str) -> Reply:
        if len(call.body) > LARGEST_BLOB:
            return error("PayloadTooLarge", "request entity too large", 413)
        digest = sha256(call.body)
        cid = _cid(0x55, digest.digest())
        self._repositories[did(account)].blobs[cid] = (call.type, len(call.body), digest.hexdigest())
        self._pictures[digest.hexdigest()] = (call.type, call.body)
        while len(self._pictures) > PICTURES:
            self._pictures.popitem(last=False)
        size = len(call.body)
        self.log.add(self.name, "upload", account=account, item=cid, sha256=digest.hexdigest(), size=size)
        return json_reply({"blob": {"$type": "blob", "ref": {"$link": cid}, "mimeType": call.type, "size": size}})

    def _create_record(self, call: Call, account: str) -> Reply:
        told = _told(call)
        taken = told.get("rkey") in self._repositories[did(account)].records
        return self.broken(500) if taken else self._write(call, account, told)  # what it really does with a taken key

    def _put_record(self, call: Call, account: str) -> Reply:
        told = _told(call)
        there = self._repositories[did(account)].records.get(str(told.get("rkey")))
        cid = _cid(0x71, _canonical(told.get("record")))
        if there is not None and there[0] == cid:
            uri = f"at://{did(account)}/{COLLECTION}/{told['rkey']}"
            self.log.add(self.name, "again", account=account, key=told["rkey"])
            return json_reply({"uri": uri, "cid": cid, "validationStatus": "valid"})
        if there is not None and "swapRecord" in told and told["swapRecord"] != there[0]:
            self.log.add(self.name, "again", account=account, key=told["rkey"])
            return error("InvalidSwap", f"Record was at {there[0]}")
        return self._write(call, account, told)

    def _write(self, call: Call, account: str, told: dict[str, Any]) -> Reply:
        mine = self._repositories[did(account)]
        record, rkey = told.get("record"), str(told.get("rkey") or "")
        if told.get("repo") not in {did(account), handle(account)} or told.get("collection") != COLLECTION:
            return error("InvalidRequest", "Could not find repo, or collection not known here")
        if not TID.fullmatch(rkey):
            return error("InvalidRequest", "Invalid record key")
        if self.on["forgets_blobs"]:
            mine.blobs.clear()
            self.on["forgets_blobs"] = False
        if (wrong := _wrong(record, mine)) is not None:
            return wrong
        assert isinstance(record, dict)  # noqa: S101 - for the types
        cid, uri = _cid(0x71, _canonical(record)), f"at://{did(account)}/{COLLECTION}/{rkey}"
        mine.records[rkey] = (cid, record)
        images = _images(record)
        picture = f"/{self.name}/picture/{mine.blobs[images[0]][2]}" if images else None
        self.log.add(
            self.name,
            "publish",
            account=account,
            key=rkey,
            remote_id=uri,
            title=str(record["text"]).partition("\n\n")[0],
            record=record,
            picture=picture,
            url=f"{call.base_url}/profile/{did(account)}/post/{rkey}",
        )
        return json_reply({"uri": uri, "cid": cid, "commit": {"cid": cid, "rev": rkey}, "validationStatus": "valid"})

    def _get_record(self, call: Call, _account: str) -> Reply:
        known = self._repositories.get(call.query.get("repo", ""))
        rkey = call.query.get("rkey", "")
        if known is None or rkey not in known.records:
            return error("RecordNotFound", f"Could not locate record: {rkey}")
        cid, record = known.records[rkey]
        uri = f"at://{did(known.account)}/{COLLECTION}/{rkey}"
        return json_reply({"uri": uri, "cid": cid, "value": record})

    def _page(self, repo: str, rkey: str) -> Reply:
        known = self._repositories.get(repo)
        if known is None or rkey not in known.records:
            return html_reply("<h1>404</h1>", 404)
        record = known.records[rkey][1]
        title, _, rest = str(record["text"]).partition("\n\n")
        blobs = [known.blobs[each][2] for each in _images(record) if each in known.blobs]
        picture = f"/{self.name}/picture/{blobs[0]}" if blobs else ""
        return html_reply(work(title, known.account, rest, (), picture, time.time()))


Method = Callable[[BlueskySite, Call, str], Reply]
_METHODS: dict[tuple[str, str], Method] = {
    ("POST", "com.atproto.server.createSession"): BlueskySite._create_session,  # noqa: SLF001 - its own table
    ("POST", "com.atproto.server.refreshSession"): BlueskySite._refresh_session,  # noqa: SLF001
    ("GET", "com.atproto.server.getSession"): BlueskySite._get_session,  # noqa: SLF001
    ("GET", "com.atproto.identity.resolveHandle"): BlueskySite._resolve,  # noqa: SLF001
    ("POST", "com.atproto.repo.uploadBlob"): BlueskySite._upload,  # noqa: SLF001
    ("POST", "com.atproto.repo.createRecord"): BlueskySite._create_record,  # noqa: SLF001
    ("POST", "com.atproto.repo.putRecord"): BlueskySite._put_record,  # noqa: SLF001
    ("GET", "com.atproto.repo.getRecord"): BlueskySite._get_record,  # noqa: SLF001
}


def error(name: str, message: str, status: int = 400) -> Reply:
    """Answer in the shape of every error of atproto."""
    return json_reply({"error": name, "message": message}, status)


def handle(account: str) -> str:
    """Give the handle of an account."""
    return f"{account}{DOMAIN}"


def did(account: str) -> str:
    """Give the lasting id of an account."""
    return f"did:plc:{b32encode(sha256(account.encode()).digest()).decode().lower()[:24]}"


def _metered(reply: Reply, meter: Meter, account: str, now: float) -> Reply:
    return reply.with_headers(
        Date=formatdate(now, usegmt=True),
        RateLimit_Limit=str(meter.limit),
        RateLimit_Remaining=str(max(meter.left(account, now), 0)),
        RateLimit_Reset=str(int(meter.resets_at(now))),
        RateLimit_Policy=f"{meter.limit};w={meter.seconds}",
    )


def _wrong(record: object, mine: Repository) -> Reply | None:
    """Say what is wrong with a post, as the lexicon sees it."""
    if not isinstance(record, dict) or record.get("$type") != COLLECTION or not isinstance(record.get("text"), str):
        return error("InvalidRecord", "Invalid app.bsky.feed.post record: Record must have the property text")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", str(record.get("createdAt"))):
        return error("InvalidRecord", "Invalid app.bsky.feed.post record: createdAt must be an RFC 3339 datetime")
    if not fits(record["text"]) or len(record.get("langs", [])) > 3:  # noqa: PLR2004
        return error("InvalidRecord", "Invalid app.bsky.feed.post record: Record/text must not be longer")
    size = len(record["text"].encode())
    for facet in record.get("facets", []):
        index = facet["index"]
        if not 0 <= index["byteStart"] < index["byteEnd"] <= size:
            return error("InvalidRecord", "Invalid app.bsky.feed.post record: Record/facets/index is not valid")
    return _wrong_images(record, mine)


def _wrong_images(record: Mapping[str, Any], mine: Repository) -> Reply | None:
    embed = record.get("embed", {})
    images = embed.get("images", []) if isinstance(embed, dict) else []
    if len(images) > (LIMITS.most_files or 0) or any(not isinstance(each.get("alt"), str) for each in images):
        return error("InvalidRecord", "Invalid app.bsky.feed.post record: Record/embed/images is not valid")
    for each in images:
        known = mine.blobs.get(each["image"]["ref"]["$link"])
        if known is None:
            return error("BlobNotFound", "Could not find blob")
        if known[1] > (LIMITS.bytes or 0) or each["image"]["size"] != known[1]:
            return error("BlobTooLarge", "This file is too large.")
    return None


def _images(record: Mapping[str, Any]) -> list[str]:
    return [each["image"]["ref"]["$link"] for each in record.get("embed", {}).get("images", [])]


def _told(call: Call) -> dict[str, Any]:
    try:
        told = json.loads(call.body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _canonical(data: object) -> bytes:
    return sha256(json.dumps(data, sort_keys=True).encode()).digest()


def _cid(codec: int, digest: bytes) -> str:
    return "b" + b32encode(bytes((1, codec, 0x12, 0x20)) + digest).decode().lower().rstrip("=")


def _jwt(account: str, ends_at: float) -> str:
    payload = json.dumps({"sub": did(account), "exp": int(ends_at), "jti": secrets.token_hex(8)}).encode()
    parts = (
        urlsafe_b64encode(each).rstrip(b"=").decode() for each in (b'{"alg":"HS256"}', payload, secrets.token_bytes(32))
    )
    return ".".join(parts)


SITE = BlueskySite
