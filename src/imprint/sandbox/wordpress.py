"""A WordPress site to the letter of its source: application passwords, media, terms, and slugs that become another."""

import hmac
import json
import re
import time
from base64 import b64decode
from binascii import Error as NotBase64
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, ClassVar

from pydantic import SecretStr

from imprint.platforms.wordpress import WordPressLogin
from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply
from imprint.sandbox.log import Log
from imprint.sandbox.page import work
from imprint.sandbox.site import Site

API = "/wp-json"
APP_PASSWORD = "sandboxpasswordsandbox00"  # noqa: S105 - everybody's, and of the sandbox only
TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
LARGEST = 64 * 1024 * 1024
PICTURES = 60


@dataclass(frozen=True)
class Media:
    """A file in the library."""

    id: int
    account: str
    sha256: str
    alt: str


@dataclass(frozen=True)
class Post:
    """A post."""

    id: int
    account: str
    title: str
    content: str
    slug: str
    at: float
    fields: Mapping[str, Any]


class WordPressSite(Site):
    """The simulated site; all accounts are authors of one blog."""

    name: ClassVar[str] = "wordpress"
    switches: ClassVar[Mapping[str, bool]] = {"plain_addresses": False, "may_make_categories": True, "notices": False}

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self._accounts: list[str] = []
        self._spoilt: set[str] = set()
        self._media: dict[int, Media] = {}
        self._posts: dict[int, Post] = {}
        self._terms: dict[str, dict[int, str]] = {"tags": {}, "categories": {1: "Uncategorized"}}
        self._pictures: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def login(self, base_url: str, account: str) -> str:
        """Make an author with an application password."""
        self._known(account)
        return WordPressLogin(
            name=account, api_url=f"{base_url}{API}", username=account, app_password=SecretStr(APP_PASSWORD)
        ).sealable()

    def answers(self, base_url: str, account: str) -> dict[str, str]:
        """Give the site, an author and the application password."""
        return {"site": base_url, "username": account, "app_password": APP_PASSWORD}

    def spoil(self, account: str, token: str) -> None:
        """Take the application password of an account back; there is no other."""
        {"access": self._spoilt.add}[token](account)

    def rate_limited(self) -> Reply:
        """Answer as a plugin or a proxy in front of it does."""
        return html_reply("<h1>429 Too Many Requests</h1>", 429)

    def broken(self, status: int) -> Reply:
        """Answer as it does when something breaks inside."""
        return error("internal_server_error", "There has been a critical error on this website.", status)

    def expired(self) -> Reply:
        """Answer that the application password is not good."""
        return error("incorrect_password", "The provided password is an invalid application password.", 401)

    def refused(self, code: int) -> Reply:
        """Answer that a parameter is not as it should be."""
        return error("rest_invalid_param", f"Invalid parameter(s): {code}", 400)

    async def handle(self, call: Call) -> Reply:
        """Answer a call to the interface, or show a post."""
        if call.path.startswith("/picture/"):
            kind, data = self._pictures.get(call.path.removeprefix("/picture/"), ("", b""))
            return Reply(200, data, {"Content-Type": kind}) if kind else html_reply("gone", 404)
        path = call.path.removeprefix(API) if call.path.startswith(f"{API}/") else None
        if self.on["plain_addresses"]:
            path = call.query.get("rest_route") if call.path == "/" else None
        if path is None:
            return self._page(call.path.strip("/"))
        reply = self._called(replace(call, path=path))
        if self.on["notices"]:  # what a badly written plugin does to every answer
            reply = replace(reply, body=b"<br />\n<b>Notice</b>: Undefined index: x in plugin.php\n" + reply.body)
        return reply

    def _called(self, call: Call) -> Reply:
        account = self._author(call)
        if account is None:
            return self.expired()
        for method, pattern, answer in _ENDPOINTS:
            if method == call.method and (found := re.fullmatch(pattern, call.path)):
                return answer(self, call, account, found[1] if found.groups() else "")
        return error("rest_no_route", "No route was found matching the URL and request method.", 404)

    def _author(self, call: Call) -> str | None:
        given = call.headers.get("authorization", "")
        try:
            name, _, password = b64decode(given[6:]).decode().partition(":")
        except (NotBase64, UnicodeDecodeError):
            return None
        right = hmac.compare_digest(password.replace(" ", "").encode(), APP_PASSWORD.encode())
        if given[:6].lower() != "basic " or not right or not name or name in self._spoilt:
            return None
        self._known(name)
        return name

    def _me(self, _call: Call, account: str, _rest: str) -> Reply:
        return json_reply({"id": self._accounts.index(account) + 1, "name": account, "slug": account})

    def _upload(self, call: Call, account: str, _rest: str) -> Reply:
        files = [part for part in call.parts() if part.filename is not None]
        if len(files) != 1 or not files[0].filename:
            return error("rest_upload_no_data", "No data supplied.", 400)
        if files[0].type not in TYPES or len(files[0].data) > LARGEST:
            return error("rest_upload_sideload_error", "Sorry, you are not allowed to upload this file type.", 500)
        digest, number = sha256(files[0].data).hexdigest(), self._next()
        alt = dict(call.form()).get("alt_text", "")
        self._media[number] = Media(number, account, digest, alt)
        self._pictures[digest] = (files[0].type, files[0].data)
        while len(self._pictures) > PICTURES:
            self._pictures.popitem(last=False)
        size = len(files[0].data)
        self.log.add(self.name, "upload", account=account, item=number, sha256=digest, size=size, alt=alt)
        url = f"{call.base_url}/picture/{digest}"
        return json_reply({"id": number, "source_url": url, "alt_text": alt, "media_type": "image"}, 201)

    def _publish(self, call: Call, account: str, _rest: str) -> Reply:
        told = _told(call)
        wrong = [
            name
            for name, right in (
                ("title", isinstance(told.get("title"), str)),
                ("status", told.get("status", "draft") in {"publish", "future", "draft", "pending", "private"}),
                ("tags", set(told.get("tags", [])) <= set(self._terms["tags"])),
                ("categories", set(told.get("categories", [])) <= set(self._terms["categories"])),
            )
            if not right
        ]
        if wrong:
            return error("rest_invalid_param", f"Invalid parameter(s): {', '.join(wrong)}", 400)
        number = self._next()
        slug = self._unique(str(told.get("slug") or re.sub(r"[^a-z0-9]+", "-", str(told["title"]).lower())))
        made = Post(number, account, str(told["title"]), str(told.get("content", "")), slug, time.time(), told)
        self._posts[number] = made
        picture = self._media.get(told.get("featured_media", 0))
        self.log.add(
            self.name,
            "publish",
            account=account,
            key=_mark(made),
            remote_id=str(number),
            title=made.title,
            fields=told,
            slug=slug,
            picture=f"/{self.name}/picture/{picture.sha256}" if picture else None,
            url=f"{call.base_url}/{slug}/",
        )
        return json_reply(_shown(call, made), 201)

    def _unique(self, slug: str) -> str:
        """Make another one of a slug that is taken, without a word."""
        taken = {each.slug for each in self._posts.values()}
        number, found = 2, slug
        while found in taken:
            number, found = number + 1, f"{slug}-{number}"
        return found

    def _listed(self, call: Call, _account: str, _rest: str) -> Reply:
        query, horizon = call.query, time.time() - call.lag
        found = [
            each
            for each in reversed(self._posts.values())
            if each.at <= horizon
            and query.get("slug", each.slug) == each.slug
            and query.get("search", "").lower() in f"{each.title} {each.content}".lower()
        ]
        return json_reply([_shown(call, each) for each in found[: int(query.get("per_page", "10"))]])

    def _terms_listed(self, call: Call, _account: str, kind: str) -> Reply:
        sought = call.query.get("search", "").lower()
        found = [{"id": n, "name": _escaped(name)} for n, name in self._terms[kind].items() if sought in name.lower()]
        return json_reply(found[: int(call.query.get("per_page", "10"))])

    def _term_made(self, call: Call, account: str, kind: str) -> Reply:
        name = str(_told(call).get("name", "")).strip()
        if kind == "categories" and not self.on["may_make_categories"]:
            return error("rest_cannot_create", "Sorry, you are not allowed to create terms in this taxonomy.", 403)
        for number, known in self._terms[kind].items():
            if known.casefold() == name.casefold():
                data = {"status": 400, "term_id": number}
                return json_reply({"code": "term_exists", "message": "A term with the name exists.", "data": data}, 400)
        number = self._next()
        self._terms[kind][number] = name
        self.log.add(self.name, "term", account=account, kind=kind, name=name)
        return json_reply({"id": number, "name": _escaped(name)}, 201)

    def _page(self, slug: str) -> Reply:
        found = next((each for each in self._posts.values() if each.slug == slug), None)
        if found is None:
            return html_reply("<h1>404</h1>", 404)
        picture = self._media.get(found.fields.get("featured_media", 0))
        tags = [self._terms["tags"][each] for each in found.fields.get("tags", [])]
        source = f"/{self.name}/picture/{picture.sha256}" if picture else ""
        return html_reply(work(found.title, found.account, found.content, tags, source, found.at))

    def _known(self, account: str) -> None:
        if account not in self._accounts:
            self._accounts.append(account)

    def _next(self) -> int:
        return 10 + len(self._media) + len(self._posts) + sum(map(len, self._terms.values()))


Endpoint = Callable[[WordPressSite, Call, str, str], Reply]
_ENDPOINTS: tuple[tuple[str, str, Endpoint], ...] = (
    ("GET", r"/wp/v2/users/me", WordPressSite._me),  # noqa: SLF001 - the table of its own class
    ("POST", r"/wp/v2/media", WordPressSite._upload),  # noqa: SLF001
    ("POST", r"/wp/v2/posts", WordPressSite._publish),  # noqa: SLF001
    ("GET", r"/wp/v2/posts", WordPressSite._listed),  # noqa: SLF001
    ("GET", r"/wp/v2/(tags|categories)", WordPressSite._terms_listed),  # noqa: SLF001
    ("POST", r"/wp/v2/(tags|categories)", WordPressSite._term_made),  # noqa: SLF001
)


def error(code: str, message: str, status: int) -> Reply:
    """Answer in the shape of every error of the REST interface."""
    return json_reply({"code": code, "message": message, "data": {"status": status}}, status)


def _shown(call: Call, post: Post) -> dict[str, object]:
    at = datetime.fromtimestamp(post.at, UTC).isoformat(timespec="seconds").removesuffix("+00:00")
    return {
        "id": post.id,
        "date_gmt": at,
        "slug": post.slug,
        "status": post.fields.get("status"),
        "link": f"{call.base_url}/{post.slug}/",
        "title": {"raw": post.title, "rendered": _escaped(post.title)},
        "content": {"raw": post.content, "rendered": post.content},
        "tags": post.fields.get("tags", []),
        "categories": post.fields.get("categories", [1]),
        "featured_media": post.fields.get("featured_media", 0),
    }


def _mark(post: Post) -> str:
    found = re.search(r"imprint-[0-9a-f]+", post.content)
    return found[0] if found else str(post.id)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _told(call: Call) -> dict[str, Any]:
    try:
        told = json.loads(call.body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


SITE = WordPressSite
