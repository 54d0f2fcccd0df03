"""DeviantArt: a file goes into the private stash (submit), then becomes a deviation (publish).

There is no idempotency key and no scheduling field. A publish whose answer is lost is looked up in the gallery; the
stash item can become one deviation only, so "already published" (code 9) is evidence of success. Nothing here was
tried against the live service: what nobody could verify is a field of the login or an option, not a constant.
"""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from imprint.platforms import deviantart_sign_in as sign_in
from imprint.platforms.answer import Answer
from imprint.platforms.contract import LOOKUP, Http, Once, Quota, Receipt
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.failure import NotYet, RateLimited, Refused, SignInAgain, harmless
from imprint.platforms.limits import Limits, Misfit, TextLimit, misfits
from imprint.platforms.login import Ask, Errand
from imprint.platforms.options import Options
from imprint.platforms.request import Fields, Form, Later, Multipart, Progress, Request, Value
from imprint.platforms.work import File, RemoteFile, Work

API = "/api/v1/oauth2"
MINOR_VERSION = "20240701"
LIMITS = Limits(
    types=frozenset({"image/jpeg", "image/png", "image/gif"}),
    least_files=1,
    most_files=1,
    bytes=sign_in.MOST_BYTES,
    title=TextLimit(50),
    tags=30,
    needs_title=True,
)
CLASSIFICATIONS = frozenset({"nudity", "sexual", "gore", "language", "ideology"})
RESOLUTIONS = range(9)
PUBLISH_CODES = {
    0: ("submission_policy", "DeviantArt wants its submission policy agreed to; see the account's agree_terms."),
    1: ("terms", "DeviantArt wants its terms of service agreed to; see the account's agree_terms."),
    2: ("category_not_found", "DeviantArt does not know the category."),
    3: ("invalid_category", "DeviantArt does not take this category."),
    4: ("invalid_license", "DeviantArt does not take this license."),
    5: ("invalid_resolution", "DeviantArt does not take this display resolution."),
    6: ("publication_failed", "DeviantArt says that it could not publish this."),
    7: ("item_not_found", "DeviantArt no longer has the uploaded file; look whether it is out before trying again."),
    8: ("preview_required", "DeviantArt wants a preview image for this."),
}
ALREADY_PUBLISHED = 9
# A look begins a little before the request left, since clocks differ, and ends where the gallery is older than that.
SLACK = timedelta(minutes=10)
PAGE, MOST_PAGES = 24, 40
METADATA_AT_ONCE = 10
PENDING_ITEM = Later("(the item id that the upload gives)")


class DeviantArtOptions(Options):
    """What can be set for DeviantArt alone; None is left to DeviantArt."""

    feature: bool | None = None
    request_critique: bool | None = None
    sharing: Literal["allow", "hide_share_buttons", "hide_and_members_only"] | None = None
    creative_commons: bool | None = None
    commercial: bool | None = None
    modify: Literal["yes", "no", "share"] | None = None
    add_watermark: bool | None = None
    subject_tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    stack: Annotated[str, Field(max_length=200)] | None = None
    original_url: str | None = None


class Gallery(BaseModel):
    """A gallery folder of an account."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Annotated[str, Field(alias="folderid")]
    name: str


class DeviantArt:
    """The DeviantArt platform."""

    name: ClassVar[str] = "deviantart"
    limits: ClassVar[Limits] = LIMITS
    once: ClassVar[Once] = LOOKUP
    can_look: ClassVar[bool] = True
    login_type = DeviantArtLogin
    options: ClassVar[type[Options]] = DeviantArtOptions
    asks: ClassVar[tuple[Ask, ...]] = sign_in.ASKS

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> DeviantArtLogin | Errand:
        """Send the person to DeviantArt."""
        del http
        return sign_in.begin(given, redirect_url)

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> DeviantArtLogin:
        """Exchange the code for tokens and ask whose they are."""
        login = await sign_in.finish(http, errand, returned_to)
        answer = await _read(http, login, "user/whoami")
        return login.model_copy(update={"name": str(answer.get("username", ""))})

    async def renew(self, http: Http, login: DeviantArtLogin) -> DeviantArtLogin:
        """Use the refresh token, which can be used once: store what comes back before anything else."""
        return await sign_in.renew(http, login)

    async def revoke(self, http: Http, login: DeviantArtLogin) -> bool:
        """Let the tokens end."""
        await sign_in.revoke(http, login)
        return True

    def host(self, login: DeviantArtLogin) -> str:
        """Name DeviantArt, or the sandbox."""
        return urlsplit(login.base_url).netloc

    def quota(self, answer: Answer) -> Quota | None:
        """Read nothing: DeviantArt does not tell."""
        del answer
        return None

    def limits_for(self, login: DeviantArtLogin) -> Limits:
        """Give the limits, with the size that this account may upload."""
        return replace(self.limits, bytes=login.most_bytes)

    def validate(self, login: DeviantArtLogin, work: Work) -> list[Misfit]:
        """List what DeviantArt will not take."""
        return [*misfits("DeviantArt", self.limits_for(login), work), *_own_misfits(work)]

    async def check(self, http: Http, login: DeviantArtLogin, work: Work) -> None:
        """Ask whether the token is good, with the call that does nothing; an upload has shown it already."""
        if not work.uploads:
            await _read(http, login, "placebo")

    async def galleries(self, http: Http, login: DeviantArtLogin) -> list[Gallery]:
        """List the folders a deviation can go into."""
        found: list[Gallery] = []
        for offset in range(0, PAGE * MOST_PAGES, PAGE):
            page = await _read(http, login, "gallery/folders", (("limit", str(PAGE)), ("offset", str(offset))))
            found += [Gallery.model_validate(each) for each in _objects(page, "results")]
            if page.get("has_more") is not True:
                break
        return found

    async def upload(
        self, http: Http, login: DeviantArtLogin, work: Work, file: File, progress: Progress
    ) -> RemoteFile:
        """Put the file into the stash; a lost answer leaves an item nobody sees, and the next try makes another."""
        request = _submit(login, work, file)
        with harmless():
            answer = await http.send(request, progress)
            item = _item(answer.json().get("itemid"))
            if answer.ok and item:
                return RemoteFile(item, file.sha256)
            _refuse(answer)
            raise answer.not_understood("deviantart.submit", "DeviantArt did not say whether it has the file.")

    async def prepare(self, http: Http, login: DeviantArtLogin, work: Work) -> Work:
        """Need nothing besides the files."""
        del http, login
        return work

    async def publish(self, http: Http, login: DeviantArtLogin, work: Work) -> Receipt:
        """Turn the stash item into a deviation."""
        item = _uploaded(work)
        if item is None:
            raise NotYet("deviantart.not_uploaded", "The file has not been uploaded yet.")
        answer = await http.send(_publish(login, work, item))
        told = answer.json()
        if answer.ok and isinstance(told.get("deviationid"), str) and told["deviationid"]:
            return Receipt(str(told["deviationid"]), _text(told.get("url")))
        if _is_error(answer) and answer.status < 500 and told.get("error_code") == ALREADY_PUBLISHED:  # noqa: PLR2004
            return Receipt(f"item:{item}")  # it is out; which deviation it became, a look will tell
        _refuse(answer, PUBLISH_CODES)
        raise answer.not_understood("deviantart.publish", "DeviantArt did not say whether it is published.")

    async def find(
        self, http: Http, login: DeviantArtLogin, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Look through the gallery, newest first, for title and tags; then ask which app has sent it."""
        candidates: dict[str, Receipt] = {}
        for offset in range(0, PAGE * MOST_PAGES, PAGE):
            page = await _read(http, login, "gallery/all", (("limit", str(PAGE)), ("offset", str(offset))))
            seen = _objects(page, "results")
            times = [moment for each in seen if (moment := _published_at(each)) is not None]
            for each in seen:
                known = _text(each.get("deviationid"))
                young = (_published_at(each) or since) >= since - SLACK
                if known and young and known not in besides and _same_text(_text(each.get("title")), work.title):
                    candidates[known] = Receipt(known, _text(each.get("url")))
            # Featured folders may come first whatever their age: only a page that is old as a whole ends the look.
            if page.get("has_more") is not True or (times and max(times) < since - SLACK):
                return await self._chosen(http, login, work, list(candidates.values()))
        raise NotYet("deviantart.long_gallery", "The gallery is longer than can be looked through at once.")

    async def preview(self, login: DeviantArtLogin, work: Work) -> list[Request]:
        """Give the upload, if it is still to come, and the publish."""
        item = _uploaded(work)
        uploads = [_submit(login, work, file) for file in work.files[:1]] if item is None else []
        return [*uploads, _publish(login, work, item or PENDING_ITEM)]

    async def _chosen(
        self, http: Http, login: DeviantArtLogin, work: Work, candidates: list[Receipt]
    ) -> Receipt | None:
        """Tell the candidates apart by their tags and by the app they were submitted with."""
        for at in range(0, len(candidates), METADATA_AT_ONCE):
            some = {each.remote_id: each for each in candidates[at : at + METADATA_AT_ONCE]}
            fields: Fields = (*(("deviationids[]", each) for each in some), ("ext_submission", "1"))
            for told in _objects(await _read(http, login, "deviation/metadata", fields), "metadata"):
                known = some.get(_text(told.get("deviationid")) or "")
                if known is not None and _same_tags(told, work) and _our_app(told, login):
                    return known
        return None


def _own_misfits(work: Work) -> Iterator[Misfit]:
    if work.is_mature and work.mature_level is None:
        yield Misfit("fit.mature_level", "DeviantArt wants to know how mature a mature work is: strict or moderate.")
    if unknown := set(work.mature_classification) - CLASSIFICATIONS:
        yield Misfit("fit.mature_classification", f"DeviantArt does not know {', '.join(sorted(unknown))}.")
    if work.display_resolution not in RESOLUTIONS:
        yield Misfit("fit.display_resolution", "DeviantArt's display resolution is a number from 0 to 8.")
    yield from DeviantArtOptions.misfits(work, "DeviantArt")


def _options(work: Work) -> DeviantArtOptions:
    return DeviantArtOptions.of(work, "DeviantArt")


def _submit(login: DeviantArtLogin, work: Work, file: File) -> Request:
    options = _options(work)
    fields = _fields(
        ("title", work.title),
        ("artist_comments", work.description),
        ("tags[]", _tags(work)),
        ("original_url", options.original_url),
        ("is_dirty", False),
        ("stack", options.stack),
        ("is_ai_generated", work.is_ai_generated),
        ("noai", work.no_ai),
    )
    body = Multipart(fields, "file", file, work.key)
    return _request(login, "upload the file into the stash", "POST", "stash/submit", body)


def _publish(login: DeviantArtLogin, work: Work, item: str) -> Request:
    options = _options(work)
    agreed = True if login.agree_terms else None
    fields = _fields(
        ("itemid", item),
        ("is_mature", work.is_mature),
        ("mature_level", work.mature_level if work.is_mature else None),
        ("mature_classification[]", work.mature_classification if work.is_mature else ()),
        ("agree_submission", agreed),
        ("agree_tos", agreed),
        ("feature", options.feature),
        ("allow_comments", work.allow_comments),
        ("request_critique", options.request_critique),
        ("display_resolution", str(work.display_resolution)),
        ("sharing", options.sharing),
        ("license_options[creative_commons]", options.creative_commons),
        ("license_options[commercial]", options.commercial),
        ("license_options[modify]", options.modify),
        ("galleryids[]", work.gallery_ids),
        ("allow_free_download", work.allow_free_download),
        ("add_watermark", options.add_watermark),
        ("tags[]", _tags(work)),
        ("subject_tags[]", options.subject_tags),
        ("groups[]", options.groups),
        ("is_ai_generated", work.is_ai_generated),
        ("noai", work.no_ai),
    )
    return _request(login, "publish the uploaded file", "POST", "stash/publish", Form(fields))


def _fields(*given: tuple[str, str | bool | tuple[str, ...] | None]) -> Fields:
    """Write fields down: a list once for each, a yes or no as 1 or 0, what is None not at all."""
    fields: list[tuple[str, Value]] = []
    for name, value in given:
        match value:
            case None | "":
                pass
            case bool():
                fields.append((name, "1" if value else "0"))
            case str():
                fields.append((name, value))
            case _:
                fields += [(name, each) for each in value]
    return tuple(fields)


def _request(
    login: DeviantArtLogin, what: str, method: str, path: str, body: Form | Multipart | None = None
) -> Request:
    headers: Fields = (
        ("Authorization", SecretStr(f"Bearer {login.access_token.get_secret_value()}")),
        ("dA-minor-version", MINOR_VERSION),
        ("Accept", "application/json"),
    )
    return Request(what, method, f"{login.base_url}{API}/{path}", headers, body)


async def _read(http: Http, login: DeviantArtLogin, path: str, fields: Fields = ()) -> dict[str, object]:
    """Ask something that changes nothing; any answer that cannot be used is NotYet."""
    query = f"{path}?{urlencode([(name, str(value)) for name, value in fields])}" if fields else path
    with harmless():
        answer = await http.send(_request(login, "look", "GET", query))
        told = answer.json()
        if answer.ok and told:
            return told
        _refuse(answer)
        raise answer.not_understood("deviantart.look", "DeviantArt did not give an answer that can be read.")


def _is_error(answer: Answer) -> bool:
    told = answer.json()
    return told.get("status") == "error" and isinstance(told.get("error"), str)


def _refuse(answer: Answer, codes: Mapping[int, tuple[str, str]] | None = None) -> None:
    """Raise what a known refusal means; return when nothing can be concluded from the answer."""
    told, error = answer.json(), _word(answer.json().get("error"))
    # The load balancer in front of it says so without a word; its staff ask to take it as a 429.
    if answer.status == 429 or (answer.status == 403 and not answer.body.strip() and answer.type == "text/html"):  # noqa: PLR2004
        kind = error if error in {"user_api_threshold", "application_api_threshold"} else "rate_limited"
        raise RateLimited(f"deviantart.{kind}", "DeviantArt asks for fewer calls.", after=answer.after())
    if not 400 <= answer.status <= 499 or not _is_error(answer):  # noqa: PLR2004
        return
    if answer.status == 401:  # noqa: PLR2004
        raise SignInAgain(f"deviantart.{error}", "DeviantArt does not take the access token.", renewable=True)
    if error == "insufficient_scope":
        raise SignInAgain(
            "deviantart.scope", "DeviantArt wants this account connected with more rights.", renewable=False
        )
    number = told.get("error_code")
    if codes and isinstance(number, int) and number in codes:
        code, sentence = codes[number]
        raise Refused(f"deviantart.{code}", sentence)
    details = told.get("error_details")
    fields = sorted(map(_word, details)) if isinstance(details, dict) else []
    named = f" because of {', '.join(fields)}" if fields else ""
    raise Refused(f"deviantart.{error}", f"DeviantArt refused this{named}.")


def _objects(told: Mapping[str, object], name: str) -> list[dict[str, object]]:
    found = told.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _word(value: object) -> str:
    """Let nothing of an answer into codes and sentences but short plain names."""
    return value if isinstance(value, str) and re.fullmatch(r"[a-z_]{1,40}", value) else "refused"


def _item(value: object) -> str | None:
    """Keep an item id as text: it is an int64, larger than what other programs can hold exactly."""
    if isinstance(value, bool):
        return None
    return str(value) if re.fullmatch(r"[0-9]{1,19}", str(value), re.ASCII) else None


def _uploaded(work: Work) -> str | None:
    return next((each.id for file in work.files[:1] if (each := work.uploaded(file))), None)


def _published_at(told: Mapping[str, object]) -> datetime | None:
    # A number in old recordings, a text in newer ones.
    text = str(told.get("published_time"))
    return datetime.fromtimestamp(int(text), UTC) if re.fullmatch(r"[0-9]{1,11}", text, re.ASCII) else None


def _tags(work: Work) -> tuple[str, ...]:
    """Give the tags as DeviantArt keeps them: letters, digits and underscores, each once."""
    return tuple(dict.fromkeys(plain for tag in work.tags if (plain := re.sub(r"\W", "", tag))))


def _same_text(one: str | None, other: str) -> bool:
    plain = [re.sub(r"\s+", " ", html.unescape(each)).strip().casefold() for each in (one or "", other)]
    return plain[0] == plain[1]


def _same_tags(told: Mapping[str, object], work: Work) -> bool:
    there = {(_text(each.get("tag_name")) or "").casefold() for each in _objects(told, "tags")}
    return {tag.casefold() for tag in _tags(work)} <= there


def _our_app(told: Mapping[str, object], login: DeviantArtLogin) -> bool:
    """Say whether it was submitted by us; where either side does not tell, that speaks neither way."""
    submission = told.get("submission")
    with_ = submission.get("submitted_with") if isinstance(submission, dict) else None
    app = _text(with_.get("app")) if isinstance(with_, dict) else None
    return not app or not login.app_name or app == login.app_name
