"""WordPress, on any site with its REST interface: files into the media library, then a post that shows them.

There is no key. The slug is chosen once and follows from the publication, and a mark that no visitor sees stands in the
content: by both a post is looked for, before it is sent and whenever an answer was lost. A slug that is taken would
silently become another one, so that is looked at first.
"""

import html
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Annotated, ClassVar, Literal
from unicodedata import normalize
from urllib.parse import urlencode, urlsplit

from pydantic import Field, SecretStr

from imprint.platforms.answer import Answer
from imprint.platforms.contract import LOOKUP, Http, Once, Quota, Receipt
from imprint.platforms.failure import NotYet, RateLimited, Refused, SignInAgain, harmless
from imprint.platforms.limits import Limits, Misfit, misfits
from imprint.platforms.login import Ask, Errand, Login
from imprint.platforms.options import Options
from imprint.platforms.request import Fields, Multipart, Progress, Request, Text
from imprint.platforms.work import File, RemoteFile, Work

MOST_BYTES = 8 * 1024 * 1024
LIMITS = Limits(
    types=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}), bytes=MOST_BYTES, needs_title=True
)
PAGE = 100
LONGEST_SLUG = 60
STILL_TO_COME = "(known when it is sent)"
KINDS = {"tag": "tags", "category": "categories"}
# What a person can do about the refusals that are met most often.
REFUSALS = {
    "rest_cannot_create": "This user may not write posts or upload files there; give them the role author or editor.",
    "rest_cannot_edit": "This user may not change that post; give them the role editor.",
    "rest_cannot_publish": "This user may write but not publish there; give them the role author or editor.",
    "rest_cannot_assign_term": "This user may not use these tags or categories; give them the role author or editor.",
    "rest_forbidden": "The site does not let this user in here; a security plugin may block its REST interface.",
    "rest_upload_sideload_error": "The site does not take this type of file; its settings say which ones it takes.",
    "rest_upload_unknown_error": "The site could not keep the file; look whether its disk is full.",
}


class WordPressLogin(Login):
    """A person at a site and the application password; `most_bytes` is what the site's server lets through at once."""

    api_url: str
    username: str
    app_password: SecretStr
    most_bytes: int = MOST_BYTES


class WordPressOptions(Options):
    """What can be set for WordPress alone: slug, categories by their names, an excerpt, and how pictures are shown."""

    slug: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=180)] | None = None
    categories: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=20)] = ()
    excerpt: str = ""
    featured: bool = True
    images_in_content: bool = True
    format: Literal["standard", "aside", "gallery", "image", "link", "quote", "status", "video", "audio"] | None = None


class WordPress:
    """The WordPress platform."""

    name: ClassVar[str] = "wordpress"
    limits: ClassVar[Limits] = LIMITS
    once: ClassVar[Once] = LOOKUP
    can_look: ClassVar[bool] = True
    login_type = WordPressLogin
    options: ClassVar[type[Options]] = WordPressOptions
    asks: ClassVar[tuple[Ask, ...]] = (
        Ask("site", "The address of the site, such as https://example.org."),
        Ask("username", "Your user name there."),
        Ask("app_password", "An application password: make one in your profile there.", secret=True),
        Ask("most_bytes", "How many bytes of a file the site's server takes.", default=str(MOST_BYTES)),
    )

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> WordPressLogin | Errand:
        """Find the interface of the site, and see that the password is taken."""
        del redirect_url
        site, most = _site(given["site"]), given.get("most_bytes", "")
        login = WordPressLogin(
            name=f"{given['username'].strip()}@{urlsplit(site).netloc}",
            api_url=f"{site}/wp-json",
            username=given["username"].strip(),
            app_password=SecretStr(re.sub(r"\s", "", given["app_password"])),
            most_bytes=int(most) if re.fullmatch(r"[1-9][0-9]{3,11}", most) else MOST_BYTES,
        )
        # Sites without pretty addresses have their interface at another place.
        for api_url in (login.api_url, f"{site}/?rest_route="):
            login = login.model_copy(update={"api_url": api_url})
            with harmless():
                answer = await http.send(_request(login, "look", "GET", "/wp/v2/users/me", {"context": "edit"}))
            if answer.ok and isinstance(answer.json().get("id"), int):
                return login
            if answer.status != 404:  # noqa: PLR2004
                _refuse(answer)
        raise Refused("wordpress.no_site", "There is no WordPress with its REST interface at this address.")

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> WordPressLogin:
        """Refuse: nobody is ever sent away."""
        del http, errand, returned_to
        raise Refused("sign_in.not_begun", "WordPress needs no browser.")

    async def renew(self, http: Http, login: WordPressLogin) -> WordPressLogin:
        """Refuse: an application password has no end, so one that is not taken was taken back."""
        del http, login
        raise SignInAgain("wordpress.password", "The site no longer takes the password; make another.", renewable=False)

    async def revoke(self, http: Http, login: WordPressLogin) -> bool:
        """Give nothing back: an application password is taken back by its person."""
        del http, login
        return False

    def host(self, login: WordPressLogin) -> str:
        """Name the site."""
        return urlsplit(login.api_url).netloc

    def quota(self, answer: Answer) -> Quota | None:
        """Read nothing: WordPress does not tell."""
        del answer
        return None

    def limits_for(self, login: WordPressLogin) -> Limits:
        """Give the limits, with what this site's server takes."""
        return replace(self.limits, bytes=login.most_bytes)

    def validate(self, login: WordPressLogin, work: Work) -> list[Misfit]:
        """List what the site will not take."""
        return [*misfits("WordPress", self.limits_for(login), work), *WordPressOptions.misfits(work, "WordPress")]

    async def check(self, http: Http, login: WordPressLogin, work: Work) -> None:
        """Ask whether the password is good; an upload or a look has shown it already."""
        if not work.uploads and not work.prepared:
            await _read(http, login, "/wp/v2/users/me", {"context": "edit"})

    async def prepare(self, http: Http, login: WordPressLogin, work: Work) -> Work:
        """Look whether the post is there already, and find or make its tags and categories."""
        if "post" in work.prepared:
            return work
        found = await self.find(http, login, work, work.made_at)
        if found is not None:
            return work.with_prepared({"post": found.remote_id, "url": found.url or ""})
        # Only a slug that a person has chosen can be another post's; ours has the publication in it.
        slug = _options(work).slug
        if slug is not None and await _posts(http, login, {"slug": slug}):
            raise Refused("wordpress.slug_taken", f"Another post of this site has the slug {slug}; choose another.")
        for kind, name in _terms(work):
            if f"{kind}:{name}" not in work.prepared:
                work = work.with_prepared({f"{kind}:{name}": await _term(http, login, KINDS[kind], name)})
        return work

    async def upload(self, http: Http, login: WordPressLogin, work: Work, file: File, progress: Progress) -> RemoteFile:
        """Put the file into the media library; it has no post yet, so a lost one is harmless."""
        with harmless():
            answer = await http.send(_upload(login, work, file), progress)
            told = answer.json()
            url = told.get("source_url")
            if answer.ok and isinstance(told.get("id"), int):
                return RemoteFile(
                    str(told["id"]), file.sha256, json.dumps({"url": url if isinstance(url, str) else ""})
                )
            _refuse(answer)
            raise answer.not_understood("wordpress.upload", "The site did not say whether it has the file.")

    async def publish(self, http: Http, login: WordPressLogin, work: Work) -> Receipt:
        """Send the post; one that a look has found is not sent again."""
        if known := work.prepared.get("post"):
            return Receipt(known, work.prepared.get("url") or None)
        request = _post(login, work)
        if not request.known:
            raise NotYet("wordpress.not_prepared", "The files or the tags of this post are not there yet.")
        answer = await http.send(request)
        told = answer.json()
        if answer.ok and isinstance(told.get("id"), int):
            return _receipt(told)
        _refuse(answer)
        raise answer.not_understood("wordpress.publish", "The site did not say whether it is published.")

    async def find(
        self, http: Http, login: WordPressLogin, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Look for the slug, then for the mark: a person, or another post, may have changed the slug."""
        del since
        for fields in ({"slug": slug_of(work)}, {"search": mark_of(work)}):
            for each in await _posts(http, login, fields):
                if mark_of(work) in _raw(each) and str(each.get("id")) not in besides:
                    return _receipt(each)
        return None

    async def preview(self, login: WordPressLogin, work: Work) -> list[Request]:
        """Give the uploads that are still to come, and the post."""
        missing = (file for file in work.files if work.uploaded(file) is None)
        return [*(_upload(login, work, file) for file in missing), _post(login, work)]


def mark_of(work: Work) -> str:
    """Give what tells the post of a publication from all others; it stands in a comment."""
    return f"imprint-{sha256(work.key.encode()).hexdigest()[:24]}"


def slug_of(work: Work) -> str:
    """Give the slug: the one that was chosen, or one of the title with something that no other post has."""
    if (chosen := _options(work).slug) is not None:
        return chosen
    plain = normalize("NFKD", work.title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain)[:LONGEST_SLUG].strip("-") or "post"
    return f"{words}-{sha256(work.key.encode()).hexdigest()[:8]}"


def _options(work: Work) -> WordPressOptions:
    return WordPressOptions.of(work, "WordPress")


def _terms(work: Work) -> list[tuple[str, str]]:
    return [*(("tag", each) for each in work.tags), *(("category", each) for each in _options(work).categories)]


def _upload(login: WordPressLogin, work: Work, file: File) -> Request:
    fields: Fields = (("title", work.title), *((("alt_text", file.alt),) if file.alt else ()))
    return _request(login, "upload a file", "POST", "/wp/v2/media", body=Multipart(fields, "file", file, work.key))


def _post(login: WordPressLogin, work: Work) -> Request:
    options = _options(work)
    uploads = [work.uploaded(file) for file in work.files]
    first = uploads[0] if uploads else None
    ids = {kind: [_number(work.prepared.get(f"{k}:{name}")) for k, name in _terms(work) if k == kind] for kind in KINDS}
    told: dict[str, object] = {
        "title": work.title,
        "content": _content(work, options),
        "status": "publish",
        "slug": slug_of(work),
        "comment_status": "open" if work.allow_comments else "closed",
    }
    told |= {KINDS[kind]: numbers for kind, numbers in ids.items() if numbers}
    if work.files and options.featured:
        told["featured_media"] = _number(first.id if first else None)
    if options.excerpt:
        told["excerpt"] = options.excerpt
    if options.format:
        told["format"] = options.format
    data = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    known = all(uploads) and STILL_TO_COME not in [each for numbers in ids.values() for each in numbers]
    return _request(login, "publish the post", "POST", "/wp/v2/posts", body=Text(data, known=known))


def _content(work: Work, options: WordPressOptions) -> str:
    shown = [_figure(work, file) for file in work.files] if options.images_in_content else []
    return "\n\n".join([*shown, work.description, f"<!-- {mark_of(work)} -->"])


def _figure(work: Work, file: File) -> str:
    remote = work.uploaded(file)
    known = remote.id if remote else STILL_TO_COME
    url = json.loads(remote.data)["url"] if remote else STILL_TO_COME
    image = f'<img src="{html.escape(url)}" alt="{html.escape(file.alt)}" class="wp-image-{known}"/>'
    figure = f'<figure class="wp-block-image">{image}</figure>'
    return f'<!-- wp:image {{"id":{json.dumps(_number(known))}}} -->\n{figure}\n<!-- /wp:image -->'


def _number(text: str | None) -> int | str:
    return int(text) if text and text.isdigit() else STILL_TO_COME


def _request(
    login: WordPressLogin,
    what: str,
    method: str,
    path: str,
    fields: Mapping[str, str] | None = None,
    body: Text | Multipart | None = None,
) -> Request:
    given = f"{login.username}:{login.app_password.get_secret_value()}".encode()
    headers: Fields = (
        ("Authorization", SecretStr(f"Basic {b64encode(given).decode()}")),
        ("Accept", "application/json"),
    )
    joint = "&" if "?" in login.api_url else "?"
    query = f"{joint}{urlencode(fields)}" if fields else ""
    return Request(what, method, f"{login.api_url}{path}{query}", headers, body)


async def _read(http: Http, login: WordPressLogin, path: str, fields: Mapping[str, str]) -> Answer:
    """Ask something that changes nothing; any answer that cannot be used is NotYet."""
    with harmless():
        answer = await http.send(_request(login, "look", "GET", path, fields))
        if answer.ok and answer.body.strip():
            return answer
        _refuse(answer)
        raise answer.not_understood("wordpress.look", "The site did not give an answer that can be read.")


async def _posts(http: Http, login: WordPressLogin, fields: Mapping[str, str]) -> list[dict[str, object]]:
    answer = await _read(http, login, "/wp/v2/posts", {**fields, "status": "any", "context": "edit"})
    with harmless():
        return answer.items()


async def _term(http: Http, login: WordPressLogin, kind: str, name: str) -> str:
    """Find a tag or a category by its name, or make it; whoever is faster made the same."""
    answer = await _read(http, login, f"/wp/v2/{kind}", {"search": name, "per_page": str(PAGE), "context": "edit"})
    with harmless():
        for each in answer.items():
            if _same(str(each.get("name", "")), name):
                return str(each.get("id"))
        body = Text(json.dumps({"name": name}, ensure_ascii=False).encode("utf-8", "replace"))
        answer = await http.send(_request(login, "make a term", "POST", f"/wp/v2/{kind}", body=body))
        told, data = answer.json(), answer.json().get("data")
        if answer.ok and isinstance(told.get("id"), int):
            return str(told["id"])
        there = data.get("term_id") if isinstance(data, dict) else None
        if answer.status == 400 and told.get("code") == "term_exists" and isinstance(there, int):  # noqa: PLR2004
            return str(there)
        _refuse(answer)
        raise answer.not_understood("wordpress.term", "The site did not say whether there is such a tag or category.")


def _same(one: str, other: str) -> bool:
    plain = [re.sub(r"\s+", " ", html.unescape(each)).strip().casefold() for each in (one, other)]
    return plain[0] == plain[1]


def _raw(told: Mapping[str, object]) -> str:
    content = told.get("content")
    return str(content.get("raw") or content.get("rendered") or "") if isinstance(content, dict) else ""


def _receipt(told: Mapping[str, object]) -> Receipt:
    link = told.get("link")
    return Receipt(str(told["id"]), link if isinstance(link, str) and link else None)


def _refuse(answer: Answer) -> None:
    """Raise what a known refusal means; return when nothing can be concluded from the answer."""
    code = answer.json().get("code")
    known = code if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,60}", code) else None
    if answer.status == 429:  # noqa: PLR2004
        raise RateLimited("wordpress.rate_limited", "The site asks for fewer calls.", after=answer.after())
    if answer.status == 413:  # noqa: PLR2004 - the server in front of it says so, with a page of its own
        sentence = (
            "The site's server does not take a file so large; connect the account anew with a smaller most_bytes."
        )
        raise Refused("wordpress.too_large", sentence)
    if not 400 <= answer.status <= 499 or known is None:  # noqa: PLR2004
        return
    if answer.status == 401:  # noqa: PLR2004
        sentence = "The site does not take the user name and the application password; make another."
        raise SignInAgain(f"wordpress.{known}", sentence, renewable=False)
    why = REFUSALS.get(known, f"The site refused this and gives {known} as the reason; its settings or plugins decide.")
    raise Refused(f"wordpress.{known}", why)


def _site(text: str) -> str:
    place = text.strip().rstrip("/")
    place = place if "://" in place else f"https://{place}"
    parts = urlsplit(place)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
        raise Refused("wordpress.bad_site", "The address of the site must begin with https:// or http://.")
    return place.removesuffix("/wp-json").removesuffix("/wp-admin")
