"""A DeviantArt to the letter of what is known of it: its paths, shapes, error codes and the faults people have seen."""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar
from uuid import NAMESPACE_URL, uuid4, uuid5

from pydantic import SecretStr

from imprint.platforms.deviantart import CLASSIFICATIONS, MINOR_VERSION, RESOLUTIONS
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.sandbox.deviantart_tokens import APP_NAME, CLIENT_ID, CLIENT_SECRET, Tokens, error, expired
from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply
from imprint.sandbox.log import Log
from imprint.sandbox.page import work
from imprint.sandbox.site import Site

API = "/api/v1/oauth2/"
# Larger than JavaScript can hold exactly, as the real ones may be.
FIRST_ITEM = 2**53 + 1
PICTURES = 60
YES, NO = {"1", "true", "yes"}, {"0", "false", "no"}


@dataclass
class Item:
    """Something in somebody's stash."""

    account: str
    title: str
    comments: str
    tags: tuple[str, ...]
    size: int
    sha256: str
    deviation: str | None = None


@dataclass(frozen=True)
class Deviation:
    """Something that everybody can see."""

    id: str
    account: str
    title: str
    description: str
    tags: tuple[str, ...]
    url: str
    at: float
    is_mature: bool
    size: int
    picture: str


class DeviantArtSite(Site):
    """The simulated DeviantArt."""

    name: ClassVar[str] = "deviantart"
    sends_for: ClassVar[bool] = True
    switches: ClassVar[Mapping[str, bool]] = {"refuses_second_publish": True, "wants_terms": False}

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.tokens = Tokens()
        self._items: dict[str, Item] = {}
        self._deviations: dict[str, Deviation] = {}
        self._pages: dict[str, Deviation] = {}
        self._galleries: dict[str, list[str]] = {}
        self._folders: dict[str, list[str]] = {}
        self._pictures: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def login(self, base_url: str, account: str) -> str:
        """Make an account with tokens, as if somebody had signed in."""
        granted = self.tokens.grant(account)
        return DeviantArtLogin(
            name=account,
            base_url=base_url,
            client_id=CLIENT_ID,
            client_secret=SecretStr(CLIENT_SECRET),
            access_token=SecretStr(str(granted["access_token"])),
            refresh_token=SecretStr(str(granted["refresh_token"])),
            app_name=APP_NAME,
        ).sealable()

    def answers(self, base_url: str, account: str) -> dict[str, str]:
        """Give the application, and the site as it is for one who is signed in there."""
        ours = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "app_name": APP_NAME}
        return {"base_url": f"{base_url}/~{account}", **ours}

    def spoil(self, account: str, token: str) -> None:
        """Let the access token of an account expire, or its refresh token be burnt."""
        {"access": self.tokens.expire, "refresh": self.tokens.burn}[token](account)

    def rate_limited(self) -> Reply:
        """Answer that this user has called too often."""
        return error("user_api_threshold", "User request limit reached.", 429)

    def broken(self, status: int) -> Reply:
        """Answer as it does when something breaks inside."""
        return error("server_error", "Internal Server Error.", status)

    def expired(self) -> Reply:
        """Answer that the token has expired."""
        return expired()

    def refused(self, code: int) -> Reply:
        """Answer with one of the codes of a publish."""
        return error("invalid_request", "The deviation could not be published.", 400, error_code=code)

    async def handle(self, call: Call) -> Reply:
        """Answer a call to the site, the sign-in or the interface.

        Under /~NAME everything is as it is for one who has signed in as NAME in a browser, so that nobody is asked.
        """
        if visitor := re.match(r"/~([\w-]{1,40})(?=/)", call.path):
            call = replace(call, path=call.path[visitor.end() :], query={"as": visitor[1], **call.query})
        if call.path == "/oauth2/authorize" and call.method == "GET":
            return self.tokens.authorize(call)
        if call.method == "GET" and re.fullmatch(r"/[^/]+/art/[^/]+", call.path):
            return self._page(f"{call.base_url}{call.path}")
        if call.path.startswith("/picture/"):
            kind, data = self._pictures.get(call.path.removeprefix("/picture/"), ("", b""))
            return Reply(200, data, {"Content-Type": kind}) if kind else html_reply("gone", 404)
        if not call.headers.get("user-agent") or "gzip" not in call.headers.get("accept-encoding", ""):
            return html_reply("<h1>403 Forbidden</h1><p>Send a User-Agent and take compressed answers.</p>", 403)
        return self._interface(call).packed()

    def _interface(self, call: Call) -> Reply:
        if call.method == "POST" and call.path in {"/oauth2/token", "/oauth2/revoke"}:
            before = self.tokens.refreshes
            reply = self.tokens.token(call) if call.path == "/oauth2/token" else self.tokens.revoke(call)
            self.log.add(self.name, "token", path=call.path, status=reply.status, used=self.tokens.refreshes - before)
            return reply
        if not call.path.startswith(API):
            return error("invalid_request", "Api endpoint not found.", 404)
        if call.headers.get("da-minor-version") != MINOR_VERSION:
            return error("version_error", f"Api Version {call.headers.get('da-minor-version')} not supported", 404)
        path = call.path.removeprefix(API)
        known = _ENDPOINTS.get((call.method, path))
        if known is None and call.method == "GET" and re.fullmatch(r"deviation/[0-9A-F-]{36}", path):
            known = (("browse",), DeviantArtSite._deviation)
        if known is None:
            return error("invalid_request", "Api endpoint not found.", 404)
        scopes, endpoint = known
        account = self.tokens.access(call, *scopes)
        return account if isinstance(account, Reply) else endpoint(self, call, account)

    def _page(self, url: str) -> Reply:
        found = self._pages.get(url)
        if found is None:
            return html_reply("<h1>404</h1>", 404)
        words = (found.title, found.account, found.description, found.tags)
        return html_reply(work(*words, found.picture, found.at))

    def _placebo(self, _call: Call, _account: str) -> Reply:
        return json_reply({"status": "success"})

    def _whoami(self, _call: Call, account: str) -> Reply:
        return json_reply(_author(account))

    def _submit(self, call: Call, account: str) -> Reply:
        parts = call.parts()
        files = [part for part in parts if part.filename is not None]
        if len(files) != 1 or not files[0].filename:
            return self.broken(500)  # what it really does with a part that has no filename
        file, form = files[0], call.form()
        digest = sha256(file.data).hexdigest()
        number = str(FIRST_ITEM + 2 * len(self._items))
        fields = dict(form)
        self._items[number] = Item(
            account,
            fields.get("title", "") or "Untitled",
            fields.get("artist_comments", ""),
            tuple(value for name, value in form if name == "tags[]"),
            len(file.data),
            digest,
        )
        self._pictures[digest] = (file.type, file.data)
        while len(self._pictures) > PICTURES:
            self._pictures.popitem(last=False)
        self.log.add(self.name, "upload", account=account, item=number, sha256=digest, size=len(file.data))
        return json_reply(
            {"status": "success", "itemid": int(number), "stack": "Sta.sh Uploads", "stackid": int(number) + 1}
        )

    def _publish(self, call: Call, account: str) -> Reply:
        form = call.form()
        fields = dict(form)
        number = fields.get("itemid", "")
        wrong = _wrong(form)
        if wrong:
            return error("invalid_request", "Request field validation failed.", 400, error_details=wrong)
        item = self._items.get(number)
        if (code := self._objection(item, account, fields)) is not None or item is None:
            return self.refused(7 if code is None else code)
        tags = tuple(value for name, value in form if name == "tags[]") or item.tags
        known = str(uuid4()).upper()
        slug = re.sub(r"[^A-Za-z0-9]+", "-", item.title).strip("-") or "Untitled"
        url = f"{call.base_url}/{account}/art/{slug}-{len(self._deviations) + 1}"
        mature, picture = fields["is_mature"] in YES, f"/{self.name}/picture/{item.sha256}"
        at = self.now()
        made = Deviation(known, account, item.title, item.comments, tags, url, at, mature, item.size, picture)
        # An item is one deviation; to publish it a second time, where that is not refused, is what must never happen.
        again = item.deviation is not None
        item.deviation = known
        self._deviations[known] = self._pages[url] = made
        self._galleries.setdefault(account, []).append(known)
        self.log.add(
            self.name,
            "publish",
            account=account,
            key=number,
            remote_id=known,
            title=item.title,
            again=again,
            fields=form,
            picture=picture,
            url=url,
        )
        return json_reply({"status": "success", "url": url, "deviationid": known})

    def _objection(self, item: Item | None, account: str, fields: Mapping[str, str]) -> int | None:
        """Give the code of what speaks against a publish."""
        agreed = [fields.get(name) in YES for name in ("agree_submission", "agree_tos")]
        if self.on["wants_terms"] and not all(agreed):
            return 1 if agreed[0] else 0
        if item is None or item.account != account:
            return 7
        if fields.get("license_options[modify]", "yes") not in {"yes", "no", "share"}:
            return 4
        resolution = fields.get("display_resolution", "0")
        if not resolution.isdigit() or int(resolution) not in RESOLUTIONS:
            return 5
        if item.deviation is not None and self.on["refuses_second_publish"]:
            return 9
        return None

    def _gallery_folders(self, _call: Call, account: str) -> Reply:
        folders = self._folders.setdefault(account, ["Featured", "Scraps"])
        results = [{"folderid": _folder(account, each), "parent": None, "name": each} for each in folders]
        return json_reply({"has_more": False, "next_offset": None, "results": results})

    def _gallery_all(self, call: Call, account: str) -> Reply:
        limit, offset = call.query.get("limit", "10"), call.query.get("offset", "0")
        if not limit.isdigit() or not offset.isdigit() or not 1 <= int(limit) <= 24:  # noqa: PLR2004
            details = {"limit": "limit must be between 1 and 24"}
            return error("invalid_request", "Request field validation failed.", 400, error_details=details)
        owner = call.query.get("username", account)
        horizon = self.now() - call.lag
        seen = [self._deviations[each] for each in reversed(self._galleries.get(owner, []))]
        shown = [each for each in seen if each.at <= horizon]
        start, end = int(offset), int(offset) + int(limit)
        more = len(shown) > end
        results = [_told(each) for each in shown[start:end]]
        return json_reply({"has_more": more, "next_offset": end if more else None, "results": results})

    def _deviation(self, call: Call, _account: str) -> Reply:
        found = self._deviations.get(call.path.rpartition("/")[2])
        return json_reply(_told(found)) if found else error("invalid_request", "Deviation not found.", 404)

    def _metadata(self, call: Call, _account: str) -> Reply:
        asked = [value for name, value in call.query_pairs if name.startswith("deviationids[")]
        extended = call.query.get("ext_submission") in YES
        if not asked or len(asked) > (10 if extended else 50):
            details = {"deviationids": "deviationids is required, with 50 at most, 10 when extended"}
            return error("invalid_request", "Request field validation failed.", 400, error_details=details)
        found = [self._deviations[each] for each in asked if each in self._deviations]
        return json_reply({"metadata": [_metadata(each, extended=extended) for each in found]})


Endpoint = Callable[[DeviantArtSite, Call, str], Reply]
_ENDPOINTS: dict[tuple[str, str], tuple[tuple[str, ...], Endpoint]] = {
    ("GET", "placebo"): ((), DeviantArtSite._placebo),  # noqa: SLF001 - the table of its own class
    ("GET", "user/whoami"): (("user",), DeviantArtSite._whoami),  # noqa: SLF001
    ("POST", "stash/submit"): (("stash",), DeviantArtSite._submit),  # noqa: SLF001
    ("POST", "stash/publish"): (("stash", "publish"), DeviantArtSite._publish),  # noqa: SLF001
    ("GET", "gallery/folders"): (("browse",), DeviantArtSite._gallery_folders),  # noqa: SLF001
    ("GET", "gallery/all"): (("browse",), DeviantArtSite._gallery_all),  # noqa: SLF001
    ("GET", "deviation/metadata"): (("browse",), DeviantArtSite._metadata),  # noqa: SLF001
}


def _wrong(form: list[tuple[str, str]]) -> dict[str, str]:
    """Give what is wrong with the fields of a publish, each with its message."""
    fields = dict(form)
    wrong: dict[str, str] = {}
    if not fields.get("itemid", "").isdigit():
        wrong["itemid"] = "itemid is required"
    if fields.get("is_mature") not in YES | NO:
        wrong["is_mature"] = "is_mature is required"
    if fields.get("is_mature") in YES and fields.get("mature_level") not in {"strict", "moderate"}:
        wrong["mature_level"] = "mature_level is required"
    if {value for name, value in form if name == "mature_classification[]"} - CLASSIFICATIONS:
        wrong["mature_classification"] = "mature_classification is not valid"
    if fields.get("sharing", "allow") not in {"allow", "hide_share_buttons", "hide_and_members_only"}:
        wrong["sharing"] = "sharing is not valid"
    if any(not re.fullmatch(r"[0-9A-F-]{36}", value) for name, value in form if name == "galleryids[]"):
        wrong["galleryids"] = "galleryids is not a valid UUID"
    return wrong


def _folder(account: str, name: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"{account}/{name}")).upper()


def _author(account: str) -> dict[str, object]:
    known = str(uuid5(NAMESPACE_URL, account)).upper()
    return {"userid": known, "username": account, "usericon": "", "type": "regular"}


def _told(deviation: Deviation) -> dict[str, object]:
    return {
        "deviationid": deviation.id,
        "printid": None,
        "url": deviation.url,
        "title": deviation.title,
        "is_favourited": False,
        "is_deleted": False,
        "is_published": True,
        "is_blocked": False,
        "author": _author(deviation.account),
        "stats": {"comments": 0, "favourites": 0},
        "published_time": str(int(deviation.at)),
        "allows_comments": True,
        "is_mature": deviation.is_mature,
        "is_downloadable": False,
    }


def _metadata(deviation: Deviation, *, extended: bool) -> dict[str, object]:
    told: dict[str, object] = {
        "deviationid": deviation.id,
        "printid": None,
        "author": _author(deviation.account),
        "is_watching": False,
        "title": deviation.title,
        "description": deviation.description,
        "license": "No License",
        "allows_comments": True,
        "tags": [{"tag_name": tag.lower(), "sponsored": False, "sponsor": ""} for tag in deviation.tags],
        "is_favourited": False,
        "is_mature": deviation.is_mature,
    }
    if extended:
        told["submission"] = {
            "creation_time": str(int(deviation.at)),
            "file_size": str(deviation.size),
            "submitted_with": {"app": APP_NAME, "url": ""},
        }
    return told


SITE = DeviantArtSite
