"""Bluesky: a post is a record in the account's repository, under a key that we choose.

The key follows from the publication alone, so it is the same for every attempt, after a restored backup too. A record
is only ever created (`swapRecord: null`): sent again under its key it changes nothing, and a look by the key is
definitive.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar
from urllib.parse import urlencode, urlsplit

from pydantic import Field, SecretStr

from imprint.platforms import bluesky_sign_in as sign_in
from imprint.platforms.answer import Answer
from imprint.platforms.bluesky_sign_in import STALE, BlueskyLogin, error_name
from imprint.platforms.bluesky_text import MOST, facets, fits, mentioned, parts
from imprint.platforms.caption import caption, unshortened
from imprint.platforms.contract import TOKEN, Http, Once, Quota, Receipt
from imprint.platforms.failure import (
    Evidence,
    Failure,
    NoAnswer,
    NotYet,
    RateLimited,
    Refused,
    SignInAgain,
    Stage,
    harmless,
)
from imprint.platforms.limits import Limits, Misfit, misfits
from imprint.platforms.login import Ask, Errand
from imprint.platforms.options import Options
from imprint.platforms.request import Progress, Raw, Request, Text
from imprint.platforms.tid import tid_of
from imprint.platforms.work import File, RemoteFile, Work

COLLECTION = "app.bsky.feed.post"
LIMITS = Limits(
    types=frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"}),
    most_files=4,
    bytes=2_000_000,
    text=MOST,
)
MOST_PARTS = 25
# What one record costs of the points that the rate headers count.
PUT_POINTS = 2
NOBODY = frozenset({"InvalidRequest", "HandleNotFound"})
CLOSED = {"AccountTakedown", "AccountDeactivated", "AccountSuspended"}
LABELS = {"nudity": "nudity", "sexual": "sexual", "gore": "graphic-media"}
STILL_TO_COME = "(known when it is sent)"


class BlueskyOptions(Options):
    """What can be set for Bluesky alone: a text of one's own, a link, languages, and whether long text is a thread."""

    text: str | None = None
    link: Annotated[str, Field(pattern=r"^https?://\S+$", max_length=2000)] | None = None
    langs: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$")], ...], Field(max_length=3)
    ] = ()
    thread: bool = False


@dataclass(frozen=True)
class Ref:
    """A record that is out: where, and which content; replies name both. `new` when it was not there before."""

    uri: str
    cid: str
    new: bool = False


class Bluesky:
    """The Bluesky platform."""

    name: ClassVar[str] = "bluesky"
    limits: ClassVar[Limits] = LIMITS
    once: ClassVar[Once] = TOKEN
    can_look: ClassVar[bool] = True
    login_type = BlueskyLogin
    options: ClassVar[type[Options]] = BlueskyOptions
    asks: ClassVar[tuple[Ask, ...]] = (
        Ask("handle", "Your handle, such as name.bsky.social."),
        Ask("app_password", "An app password: make one in Bluesky's settings, under privacy.", secret=True),
        Ask("base_url", "Where the account lives.", default=sign_in.BASE_URL),
    )

    async def begin(self, http: Http, given: Mapping[str, str], redirect_url: str) -> BlueskyLogin | Errand:
        """Open a session with the app password."""
        del redirect_url
        base, password = given["base_url"].strip().rstrip("/"), SecretStr(given["app_password"].strip())
        return await sign_in.session(http, base, given["handle"].strip().removeprefix("@"), password)

    async def finish(self, http: Http, errand: Errand, returned_to: str) -> BlueskyLogin:
        """Refuse: nobody is ever sent away."""
        del http, errand, returned_to
        raise Refused("sign_in.not_begun", "Bluesky needs no browser.")

    async def renew(self, http: Http, login: BlueskyLogin) -> BlueskyLogin:
        """Use the refresh token, which may be used again for two hours; where it has ended, the app password."""
        return await sign_in.renew(http, login)

    async def revoke(self, http: Http, login: BlueskyLogin) -> bool:
        """Give nothing back: an app password is deleted by its person, and a session ends by itself."""
        del http, login
        return False

    def host(self, login: BlueskyLogin) -> str:
        """Name the server that keeps the account."""
        return urlsplit(login.pds_url).netloc

    def quota(self, answer: Answer) -> Quota | None:
        """Read the rate headers: points that are left, and the second at which they are counted anew."""
        left, reset = (answer.headers.get(f"ratelimit-{name}", "") for name in ("remaining", "reset"))
        if not (left.isdigit() and re.fullmatch(r"[0-9]{1,11}", reset)):
            return None
        # A thread is kept in reserve: none shall break off because its points end in its middle.
        posts = max(int(left) // PUT_POINTS - MOST_PARTS, 0)
        return Quota(posts, answer.until(datetime.fromtimestamp(int(reset), UTC)))

    def limits_for(self, login: BlueskyLogin) -> Limits:
        """Give the limits, the same for all."""
        del login
        return self.limits

    def validate(self, login: BlueskyLogin, work: Work) -> list[Misfit]:
        """List what Bluesky will not take."""
        del login
        return [*misfits("Bluesky", self.limits, work), *_own_misfits(work)]

    async def check(self, http: Http, login: BlueskyLogin, work: Work) -> None:
        """Ask whether the session is good; an upload has shown it already."""
        if not work.uploads:
            await _read(http, login, "com.atproto.server.getSession")

    async def prepare(self, http: Http, login: BlueskyLogin, work: Work) -> Work:
        """Find out who is mentioned; a handle that nobody has stays plain text."""
        for handle in _handles(work):
            if handle not in work.prepared:
                told = await _read(http, login, "com.atproto.identity.resolveHandle", {"handle": handle}, NOBODY)
                did = told.get("did") if told else None
                work = work.with_prepared({handle: did if isinstance(did, str) else ""})
        return work

    async def upload(self, http: Http, login: BlueskyLogin, work: Work, file: File, progress: Progress) -> RemoteFile:
        """Bring the bytes; what comes back goes into the record as it is. One that no record names is thrown away."""
        del work
        with harmless():
            answer = await http.send(_upload(login, file), progress)
            blob = answer.json().get("blob")
            ref = blob.get("ref") if isinstance(blob, dict) else None
            cid = ref.get("$link") if isinstance(ref, dict) else None
            if answer.ok and isinstance(cid, str) and cid:
                return RemoteFile(cid, file.sha256, json.dumps(blob))
            _refuse(answer)
            raise answer.not_understood("bluesky.upload", "Bluesky did not say whether it has the file.")

    async def publish(self, http: Http, login: BlueskyLogin, work: Work) -> Receipt:
        """Create the record, or those of a thread one after the other; what is there already stays as it is."""
        count = len(_texts(work))
        root = await _put(http, login, work, 0)
        try:
            if count > 1:
                known = await _known(http, login, root)
                number, parent = await self._reached(http, login, work, known, count) if not root.new else (0, known)
                for each in range(number + 1, count):
                    parent = await _known(http, login, await _put(http, login, work, each, (known, parent)))
        except Failure as failure:
            after = getattr(failure, "after", None)
            raise NoAnswer(
                "bluesky.thread",
                f"The thread is out only up to its beginning: {failure.sentence} The rest is sent again.",
                Evidence(Stage.ANSWERED),
                after=after,
            ) from failure
        return _receipt(login, work)

    async def _reached(self, http: Http, login: BlueskyLogin, work: Work, root: Ref, count: int) -> tuple[int, Ref]:
        """Find the last record that is there of a thread that was begun before; each has those before it.

        So a thread that takes longer than one attempt may goes on where it was, and comes to its end.
        """
        low, high, last = 0, count - 1, root
        while low < high:
            middle = (low + high + 1) // 2
            found = await _record(http, login, work, middle)
            if found is None:
                high = middle - 1
            else:
                low, last = middle, found
        return low, last

    async def find(
        self, http: Http, login: BlueskyLogin, work: Work, since: datetime, besides: frozenset[str] = frozenset()
    ) -> Receipt | None:
        """Ask for the record by its key, of a thread for the last one: it is there, or it is not."""
        del since, besides
        found = await _record(http, login, work, len(_texts(work)) - 1)
        return None if found is None else _receipt(login, work)

    async def preview(self, login: BlueskyLogin, work: Work) -> list[Request]:
        """Give the uploads that are still to come, and a request for each record."""
        missing = [file for file in work.files if work.uploaded(file) is None]
        later = Ref(STILL_TO_COME, STILL_TO_COME)
        records = [
            _create(login, work, number, (later, later) if number else None) for number in range(len(_texts(work)))
        ]
        return [*(_upload(login, file) for file in missing), *records]


def key_of(work: Work, number: int = 0) -> str:
    """Give the record key of a work, or of a later part of its thread: a TID that follows from the once-key alone."""
    return tid_of(f"{work.key}#{number}")


def record(work: Work, number: int = 0, reply: tuple[Ref, Ref] | None = None) -> dict[str, object]:
    """Write one record of a work: the first has the pictures, all have the text, each its part."""
    options, text = _options(work), _texts(work)[number]
    moment = work.made_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    made: dict[str, object] = {"$type": COLLECTION, "text": text, "createdAt": moment}
    dids = {handle: work.prepared.get(handle, STILL_TO_COME) for handle in mentioned(text)}
    if found := facets(text, dids):
        made["facets"] = found
    if options.langs:
        made["langs"] = list(options.langs)
    if reply is not None:
        root, parent = ({"uri": each.uri, "cid": each.cid} for each in reply)
        made["reply"] = {"root": root, "parent": parent}
    if number == 0 and (embed := _embed(work, options)):
        made["embed"] = embed
    if labels := _labels(work):
        values = [{"val": each} for each in labels]
        made["labels"] = {"$type": "com.atproto.label.defs#selfLabels", "values": values}
    return made


def _embed(work: Work, options: BlueskyOptions) -> dict[str, object] | None:
    if work.files:
        return {"$type": "app.bsky.embed.images", "images": [_image(work, file) for file in work.files]}
    if options.link:
        card = {"uri": options.link, "title": work.title, "description": work.description[:300]}
        return {"$type": "app.bsky.embed.external", "external": card}
    return None


def _image(work: Work, file: File) -> dict[str, object]:
    remote = work.uploaded(file)
    blob = STILL_TO_COME if remote is None else json.loads(remote.data)
    shape = {"aspectRatio": {"width": file.width, "height": file.height}} if file.width and file.height else {}
    return {"alt": file.alt, "image": blob, **shape}


def _labels(work: Work) -> list[str]:
    if not work.is_mature:
        return []
    return [LABELS[each] for each in work.mature_classification if each in LABELS] or ["sexual"]


def _texts(work: Work) -> list[str]:
    options = _options(work)
    if options.thread:
        return parts(options.text if options.text is not None else unshortened(work, options.link))
    return [options.text if options.text is not None else caption(work, fits, options.link)]


def _handles(work: Work) -> list[str]:
    return list(dict.fromkeys(handle for text in _texts(work) for handle in mentioned(text)))


def _own_misfits(work: Work) -> Iterator[Misfit]:
    if bad := BlueskyOptions.misfits(work, "Bluesky"):
        yield from bad
        return
    texts = _texts(work)
    if len(texts) > MOST_PARTS:
        yield Misfit("fit.long_thread", f"The thread would have {len(texts)} posts; Bluesky gets {MOST_PARTS} at most.")
    for limit in MOST:
        if (length := max(map(limit.length, texts))) > limit.most:
            yield Misfit("fit.long_text", f"The text has {length} {limit.unit}; Bluesky takes {limit.most} at most.")
    if not work.files and not texts[0].strip():
        yield Misfit("fit.no_text", "There is nothing to post on Bluesky: neither a text nor a picture.")


def _options(work: Work) -> BlueskyOptions:
    return BlueskyOptions.of(work, "Bluesky")


def _upload(login: BlueskyLogin, file: File) -> Request:
    return _request(login, "upload a file", "POST", "com.atproto.repo.uploadBlob", Raw(file))


def _create(login: BlueskyLogin, work: Work, number: int, reply: tuple[Ref, Ref] | None) -> Request:
    told = {
        "repo": login.did,
        "collection": COLLECTION,
        "rkey": key_of(work, number),
        "record": record(work, number, reply),
        "swapRecord": None,
    }
    data = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    body = Text(data, known=STILL_TO_COME not in data.decode())
    return _request(login, "create the post", "POST", "com.atproto.repo.putRecord", body)


async def _put(http: Http, login: BlueskyLogin, work: Work, number: int, reply: tuple[Ref, Ref] | None = None) -> Ref:
    """Create one record; one that is there under our key is ours, whatever became of the answer to it."""
    if any(work.uploaded(file) is None for file in work.files):
        raise NotYet("bluesky.not_uploaded", "The files have not been uploaded yet.")
    answer = await http.send(_create(login, work, number, reply))
    told, uri = answer.json(), _uri(login, work, number)
    if answer.ok and told.get("uri") == uri and isinstance(told.get("cid"), str):
        # A record that is there as it is makes no commit.
        return Ref(uri, str(told["cid"]), new=isinstance(told.get("commit"), dict))
    if answer.status == 400 and error_name(answer) == "InvalidSwap":  # noqa: PLR2004
        return Ref(uri, "")
    _refuse(answer)
    raise answer.not_understood("bluesky.publish", "Bluesky did not say whether it is published.")


async def _known(http: Http, login: BlueskyLogin, ref: Ref) -> Ref:
    """Ask for the content of a record of which only the place is known."""
    if ref.cid:
        return ref
    found = await _look(http, login, ref.uri.rpartition("/")[2])
    if found is None:
        raise NotYet("bluesky.record_gone", "A post of the thread was there a moment ago and is not any more.")
    return found


async def _record(http: Http, login: BlueskyLogin, work: Work, number: int) -> Ref | None:
    """Ask for a record by its key: it is there, or it is not."""
    return await _look(http, login, key_of(work, number))


async def _look(http: Http, login: BlueskyLogin, rkey: str) -> Ref | None:
    fields = {"repo": login.did, "collection": COLLECTION, "rkey": rkey}
    told = await _read(http, login, "com.atproto.repo.getRecord", fields, frozenset({"RecordNotFound"}))
    return None if told is None else Ref(f"at://{login.did}/{COLLECTION}/{rkey}", str(told.get("cid", "")))


def _uri(login: BlueskyLogin, work: Work, number: int = 0) -> str:
    return f"at://{login.did}/{COLLECTION}/{key_of(work, number)}"


def _receipt(login: BlueskyLogin, work: Work) -> Receipt:
    return Receipt(_uri(login, work), f"{login.app_url}/profile/{login.did}/post/{key_of(work)}")


def _request(login: BlueskyLogin, what: str, method: str, path: str, body: Text | Raw | None = None) -> Request:
    headers = (("Authorization", SecretStr(f"Bearer {login.access_jwt.get_secret_value()}")),)
    return Request(what, method, f"{login.pds_url}/xrpc/{path}", headers, body)


async def _read(
    http: Http,
    login: BlueskyLogin,
    method: str,
    fields: Mapping[str, str] | None = None,
    absent: Collection[str] = (),
) -> dict[str, object] | None:
    """Ask something that changes nothing; None when the answer is an error that means absence."""
    path = f"{method}?{urlencode(fields)}" if fields else method
    with harmless():
        answer = await http.send(_request(login, "look", "GET", path))
        told = answer.json()
        if answer.ok and told:
            return told
        if answer.status == 400 and error_name(answer) in absent:  # noqa: PLR2004
            return None
        _refuse(answer)
        raise answer.not_understood("bluesky.look", "Bluesky did not give an answer that can be read.")


def _refuse(answer: Answer) -> None:
    """Raise what a known refusal means; return when nothing can be concluded from the answer."""
    name = error_name(answer)
    if answer.status == 429:  # noqa: PLR2004
        raise RateLimited("bluesky.rate_limited", "Bluesky asks for fewer calls.", after=answer.after())
    if answer.status == 413:  # noqa: PLR2004 - whoever stands in front of it says so, and in no known shape
        raise Refused("bluesky.too_large", "Bluesky does not take anything so large.")
    if not 400 <= answer.status <= 499 or not name:  # noqa: PLR2004
        return
    if name in STALE:
        raise SignInAgain(f"bluesky.{name}", "Bluesky does not take the session any more.", renewable=True)
    if name in CLOSED:
        raise SignInAgain(f"bluesky.{name}", "Bluesky has closed this account or put it to rest.", renewable=False)
    if name == "BlobNotFound":
        raise NotYet("bluesky.blob_gone", "Bluesky has thrown the uploaded files away.", uploads_gone=True)
    raise Refused(f"bluesky.{name}", f"Bluesky refused this ({name}).")
