"""Mastodon, on any instance: files first, each with its description, then the status that names them.

Our key goes with the status and is remembered for an hour: within it the same sent again is the same status. Afterwards
an own status is looked for by its text. Messages of errors are in the language of the instance: only the status counts.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, ClassVar, Literal
from urllib.parse import quote, urlencode, urlsplit

from pydantic import Field, SecretStr

from imprint.platforms import mastodon_sign_in as sign_in
from imprint.platforms.answer import Answer
from imprint.platforms.caption import caption
from imprint.platforms.contract import Http, Once, Quota, Receipt, token_for
from imprint.platforms.failure import NotYet, RateLimited, Refused, SignInAgain, harmless
from imprint.platforms.graphemes import count
from imprint.platforms.limits import Limits, Misfit, TextLimit, Unit, misfits
from imprint.platforms.login import Ask, Errand
from imprint.platforms.mastodon_sign_in import MastodonLogin
from imprint.platforms.options import Options
from imprint.platforms.request import Fields, Form, Later, Multipart, Progress, Request
from imprint.platforms.work import File, RemoteFile, Work

LIMITS = Limits(
    types=sign_in.TYPES,
    most_files=sign_in.MOST_FILES,
    bytes=sign_in.IMAGE_BYTES,
    pixels=sign_in.IMAGE_PIXELS,
    text=(TextLimit(sign_in.MOST_CHARACTERS, Unit.GRAPHEMES),),
)
KEY_LASTS = timedelta(hours=1)
READY_AFTER = timedelta(seconds=5)
# Seconds between looks at a file that the instance works on: two minutes in one attempt, a quarter of an hour in all.
READY_LOOKS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
# A look begins a little before the request left, since clocks differ, and ends where the statuses are older than that.
SLACK = timedelta(minutes=10)
PAGE, MOST_PAGES = 40, 10
PENDING_FILE = Later("(the id that the upload gives)")
_LINK = re.compile(r"(?<![\w@#$/])https?://[^\s<>\"]*[^\s<>\".,;:!?')]", re.IGNORECASE)
_MENTION = re.compile(r"(?<![=/\w])@([a-z0-9_]+(?:[a-z0-9_.-]*[a-z0-9_]+)?)@[\w.-]*\w", re.IGNORECASE)


class MastodonOptions(Options):
    """What can be set for Mastodon alone: a text of one's own, a link, a content warning, who sees it, its language."""

    text: str | None = None
    link: Annotated[str, Field(pattern=r"^https?://\S+$", max_length=2000)] | None = None
    content_warning: str = ""
    sensitive: bool | None = None
    visibility: Literal["public", "unlisted", "private", "direct"] | None = None
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] | None = None


class Mastodon:
    """The Mastodon platform."""

    name: ClassVar[str] = "mastodon"
    limits: ClassVar[Limits] = LIMITS
    once: ClassVar[Once] = token_for(KEY_LASTS)
    can_look: ClassVar[bool] = True
    login_type = MastodonLogin
    options: ClassVar[type[Options]] = MastodonOptions
    asks: ClassVar[tuple[Ask, ...]] = (Ask("instance", "The instance your account is on, such as mastodon.social."),)

    def __init__(self, ready_looks: Sequence[float] = READY_LOOKS) -> None:
        self._ready_looks = ready_looks

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> MastodonLogin | Errand:
        """Register at the instance and send the person there."""
        return await sign_in.begin(http, given, redirect_url)

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> MastodonLogin:
        """Exchange the code for a token, and read what the instance takes."""
        return await sign_in.finish(http, errand, returned_to)

    async def renew(self, http: Http, login: MastodonLogin) -> MastodonLogin:
        """Read anew what the instance takes, once a day; a token has no end, so one that is refused was taken back."""
        return await sign_in.renew(http, login)

    async def revoke(self, http: Http, login: MastodonLogin) -> bool:
        """Let the token end."""
        await sign_in.revoke(http, login)
        return True

    def host(self, login: MastodonLogin) -> str:
        """Name the instance."""
        return urlsplit(login.base_url).netloc

    def quota(self, answer: Answer) -> Quota | None:
        """Read the rate headers; those of a status, of a file and of all else are counted apart."""
        return _quota(answer)

    def limits_for(self, login: MastodonLogin) -> Limits:
        """Give the limits of the instance."""
        return replace(
            self.limits,
            types=login.types,
            most_files=login.most_files,
            bytes=login.image_bytes,
            pixels=login.image_pixels,
            text=(TextLimit(login.most_characters, Unit.GRAPHEMES),),
            counted=partial(countable, login),
        )

    def validate(self, login: MastodonLogin, work: Work) -> list[Misfit]:
        """List what the instance will not take."""
        return [*misfits("Mastodon", self.limits_for(login), work), *_own_misfits(login, work)]

    async def check(self, http: Http, login: MastodonLogin, work: Work) -> None:
        """Ask whether the token is good and every uploaded file is ready."""
        if not work.uploads:
            await _read(http, login, "/api/v1/accounts/verify_credentials")
        for upload in work.uploads:
            await self._until_ready(http, login, upload)

    async def prepare(self, http: Http, login: MastodonLogin, work: Work) -> Work:
        """Need nothing besides the files."""
        del http, login
        return work

    async def upload(self, http: Http, login: MastodonLogin, work: Work, file: File, progress: Progress) -> RemoteFile:
        """Bring the file with its description; one that no status names is thrown away after a day."""
        with harmless():
            answer = await http.send(_upload(login, work, file), progress)
            known = answer.json().get("id")
            if answer.ok and isinstance(known, str) and known:
                return RemoteFile(known, file.sha256)
            _refuse(answer)
            raise answer.not_understood("mastodon.upload", "The instance did not say whether it has the file.")

    async def publish(self, http: Http, login: MastodonLogin, work: Work) -> Receipt:
        """Send the status with our key."""
        if any(work.uploaded(file) is None for file in work.files):
            raise NotYet("mastodon.not_uploaded", "The files have not been uploaded yet.")
        answer = await http.send(_status(login, work))
        told = answer.json()
        if answer.ok and isinstance(told.get("id"), str) and told["id"]:
            return _receipt(told)
        _refuse(answer)
        raise answer.not_understood("mastodon.publish", "The instance did not say whether it is published.")

    async def find(
        self, http: Http, login: MastodonLogin, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Look through the account's own statuses, newest first, for the same text with as many files."""
        oldest, before = since - SLACK, ""
        for _ in range(MOST_PAGES):
            fields = {"limit": str(PAGE), "exclude_reblogs": "true", **({"max_id": before} if before else {})}
            page = await _list(http, login, f"/api/v1/accounts/{login.account_id}/statuses?{urlencode(fields)}")
            young = [each for each in page if (_moment(each) or oldest) >= oldest]
            for each in young:
                if (
                    str(each.get("id")) not in besides
                    and _alike(each, work)
                    and await self._same(http, login, each, work)
                ):
                    return _receipt(each)
            if len(young) < len(page) or not page:
                return None
            before = str(page[-1].get("id"))
        raise NotYet("mastodon.many_statuses", "There are more statuses than can be looked through at once.")

    async def preview(self, login: MastodonLogin, work: Work) -> list[Request]:
        """Give the uploads that are still to come, and the status."""
        missing = (file for file in work.files if work.uploaded(file) is None)
        return [*(_upload(login, work, file) for file in missing), _status(login, work)]

    async def _until_ready(self, http: Http, login: MastodonLogin, upload: RemoteFile) -> None:
        """Wait for the instance here: every attempt that ends counts, and a long video is nobody's failure."""
        for seconds in self._ready_looks:
            if await _is_ready(http, login, upload):
                return
            await asyncio.sleep(seconds)
        if not await _is_ready(http, login, upload):
            raise NotYet("mastodon.processing", "The instance is still at work on a file.", after=READY_AFTER)

    async def _same(self, http: Http, login: MastodonLogin, told: Mapping[str, object], work: Work) -> bool:
        """Compare the words that were sent, not what the instance has made of them."""
        source = await _read(http, login, f"/api/v1/statuses/{quote(str(told.get('id')), safe='')}/source")
        return _plain(str(source.get("text", ""))) == _plain(_text(login, work))


def countable(login: MastodonLogin, text: str) -> str:
    """Give a text as it is counted: every link as long as any other, a mention without its domain."""
    text = _LINK.sub("x" * login.characters_of_a_link, text)
    return _MENTION.sub(r"@\1", text)


def _own_misfits(login: MastodonLogin, work: Work) -> Iterator[Misfit]:
    if bad := MastodonOptions.misfits(work, "Mastodon"):
        yield from bad
        return
    options = _options(work)
    text, most = _text(login, work), login.most_characters
    if (length := count(options.content_warning + countable(login, text))) > most:
        yield Misfit("fit.long_text", f"The text has {length} characters; this instance takes {most} at most.")
    if not work.files and not text.strip():
        yield Misfit("fit.no_text", "There is nothing to post on Mastodon: neither a text nor a picture.")
    for file in work.files:
        if len(file.alt) > login.most_alt:
            yield Misfit("fit.long_alt", f"The description of {file.name} is longer than {login.most_alt} characters.")


def _options(work: Work) -> MastodonOptions:
    return MastodonOptions.of(work, "Mastodon")


def _text(login: MastodonLogin, work: Work) -> str:
    options = _options(work)
    if options.text is not None:
        return options.text
    room = login.most_characters - count(options.content_warning)
    return caption(work, lambda text: count(countable(login, text)) <= room, options.link)


def _upload(login: MastodonLogin, work: Work, file: File) -> Request:
    fields: Fields = (("description", file.alt),) if file.alt else ()
    return _request(login, "upload a file", "POST", "/api/v2/media", Multipart(fields, "file", file, work.key))


def _status(login: MastodonLogin, work: Work) -> Request:
    options = _options(work)
    uploads = [work.uploaded(file) for file in work.files]
    sensitive = work.is_mature if options.sensitive is None else options.sensitive
    fields: Fields = (
        ("status", _text(login, work)),
        *(("media_ids[]", each.id if each else PENDING_FILE) for each in uploads),
        ("sensitive", "true" if sensitive else "false"),
        *((("spoiler_text", options.content_warning),) if options.content_warning else ()),
        *((("visibility", options.visibility),) if options.visibility else ()),
        *((("language", options.language),) if options.language else ()),
    )
    return _request(
        login, "publish the status", "POST", "/api/v1/statuses", Form(fields), (("Idempotency-Key", work.key),)
    )


def _request(
    login: MastodonLogin, what: str, method: str, path: str, body: Form | Multipart | None = None, more: Fields = ()
) -> Request:
    bearer = SecretStr(f"Bearer {login.access_token.get_secret_value()}")
    headers: Fields = (("Authorization", bearer), ("Accept", "application/json"), *more)
    return Request(what, method, f"{login.base_url}{path}", headers, body)


async def _is_ready(http: Http, login: MastodonLogin, upload: RemoteFile) -> bool:
    """Ask whether the instance has done its work on a file."""
    with harmless():
        answer = await http.send(_request(login, "look", "GET", f"/api/v1/media/{quote(upload.id, safe='')}"))
        match answer.status:
            case 200 if answer.json():
                return True
            case 206:
                return False
            case 404:
                raise NotYet("mastodon.file_gone", "The instance no longer has an uploaded file.", uploads_gone=True)
            case 422:
                raise Refused("mastodon.bad_file", "The instance could not make anything of a file.")
        _refuse(answer)
        raise answer.not_understood("mastodon.look", "The instance did not give an answer that can be read.")


async def _read(http: Http, login: MastodonLogin, path: str) -> dict[str, object]:
    """Ask for one thing that is there; any answer that cannot be used is NotYet."""
    with harmless():
        answer = await http.send(_request(login, "look", "GET", path))
        if answer.ok and (told := answer.json()):
            return told
        _refuse(answer)
        raise answer.not_understood("mastodon.look", "The instance did not give an answer that can be read.")


async def _list(http: Http, login: MastodonLogin, path: str) -> list[dict[str, object]]:
    """Ask for several things; any answer that cannot be used is NotYet."""
    with harmless():
        answer = await http.send(_request(login, "look", "GET", path))
        if answer.ok:
            return answer.items()
        _refuse(answer)
        raise answer.not_understood("mastodon.look", "The instance did not give an answer that can be read.")


def _quota(answer: Answer) -> Quota | None:
    left, reset = (answer.headers.get(f"x-ratelimit-{name}", "") for name in ("remaining", "reset"))
    try:
        moment = datetime.fromisoformat(reset)
    except ValueError:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", left) or moment.tzinfo is None:
        return None
    return Quota(int(left), answer.until(moment))


def _refuse(answer: Answer) -> None:
    """Raise what a known status means; return when nothing can be concluded from the answer."""
    match answer.status:
        case 429:
            quota = _quota(answer)
            after = answer.after() or (quota.resets_in if quota else None)
            raise RateLimited("mastodon.rate_limited", "The instance asks for fewer calls.", after=after)
        case 401 | 403:
            sentence = "The instance does not take the token, or not for this; connect the account again."
            raise SignInAgain(f"mastodon.refused_{answer.status}", sentence, renewable=False)
        case 400 | 404 | 410 | 413 | 415 | 422:
            raise Refused(f"mastodon.refused_{answer.status}", f"The instance refused this with {answer.status}.")


def _receipt(told: Mapping[str, object]) -> Receipt:
    url = told.get("url")
    return Receipt(str(told["id"]), url if isinstance(url, str) and url else None)


def _moment(told: Mapping[str, object]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(told.get("created_at")))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _alike(told: Mapping[str, object], work: Work) -> bool:
    """Say whether a status may be the one: its warning, and its files, by their ids where those are known."""
    attached = told.get("media_attachments")
    files = [str(each.get("id")) for each in attached if isinstance(each, dict)] if isinstance(attached, list) else []
    if len(files) != len(work.files) or str(told.get("spoiler_text", "")) != _options(work).content_warning.strip():
        return False
    mine = [work.uploaded(file) for file in work.files]
    return all(each is None or each.id in files for each in mine)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
