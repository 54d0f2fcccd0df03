"""The behaviour kit: what every platform does; over real HTTP against the sandbox where it speaks HTTP.

A new platform takes part by its line in the registry and its site in the sandbox; nothing here needs to change.
"""

import asyncio
import traceback
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from imprint.engine.wire import Wire
from imprint.platforms.answer import Answer
from imprint.platforms.contract import Receipt
from imprint.platforms.failure import (
    Failure,
    NoAnswer,
    NotYet,
    RateLimited,
    Refused,
    SignInAgain,
)
from imprint.platforms.limits import Limits
from imprint.platforms.registry import PLATFORMS
from imprint.platforms.work import File, RemoteFile, Work
from imprint.sandbox.faults import Fault
from tests.platforms.stage import NAMES, Stage, served, staged
from tests.platforms.works import PNG, picture, work


@pytest.fixture(params=NAMES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """Give each platform in turn."""
    async with staged(request.param, tmp_path) as one:
        yield one


@pytest.fixture(params=served())
async def remote(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """Give each platform that is called over HTTP in turn."""
    async with staged(request.param, tmp_path) as one:
        yield one


def since() -> datetime:
    """Give the moment at which a request is about to leave."""
    return datetime.now(UTC)


async def test_it_says_what_it_is(stage: Stage) -> None:
    """Name, limits, the promise and what a person is asked for are all there, and the login can be sealed."""
    platform = stage.platform
    assert platform.name.islower()
    assert platform.once.promise
    assert all(ask.sentence.endswith(".") for ask in platform.asks)
    assert platform.login_type.model_validate_json(stage.login.sealable()) == stage.login
    assert isinstance(platform.limits_for(stage.login), Limits)
    assert platform.quota(Answer(200, {}, b"")) is None
    assert PLATFORMS.get(platform.name) in (platform, None)


async def test_upload_and_publish(stage: Stage) -> None:
    """A work that is uploaded and published can be seen once, and there is a receipt."""
    made = work()
    assert stage.platform.validate(stage.login, made) == []
    await stage.platform.check(stage.http, stage.login, made)
    told: list[int] = []
    remote = await stage.platform.upload(stage.http, stage.login, made, made.files[0], told.append)
    assert isinstance(remote, RemoteFile)
    assert remote.sha256 == made.files[0].sha256
    assert told == sorted(told)
    assert not told or told[-1] == made.files[0].size
    assert stage.effects(made) == 0
    made = await stage.platform.prepare(stage.http, stage.login, made.with_upload(remote))
    assert stage.effects(made) == 0
    await stage.platform.check(stage.http, stage.login, made)
    receipt = await stage.platform.publish(stage.http, stage.login, made)
    assert receipt.remote_id
    assert stage.effects(made) == 1


async def test_preparing_again_changes_nothing(stage: Stage) -> None:
    """What a work needs besides its files is made once, and nobody sees a post for it."""
    made = work()
    once = await stage.platform.prepare(stage.http, stage.login, made)
    uploads = len(stage.sandbox.log.entries("upload")) if stage.sandbox else 0
    assert await stage.platform.prepare(stage.http, stage.login, made) == once
    assert await stage.platform.prepare(stage.http, stage.login, once) == once
    assert stage.effects(made) == 0
    assert stage.sandbox is None or len(stage.sandbox.log.entries("upload")) == uploads


async def test_two_works_are_two(stage: Stage) -> None:
    """Works with the same title and the same file, but not the same key, do not stand for each other."""
    one = work()
    other = replace(one, key="msg_other")
    first = await stage.platform.publish(stage.http, stage.login, await stage.uploaded(one))
    second = await stage.platform.publish(stage.http, stage.login, await stage.uploaded(other))
    assert first.remote_id != second.remote_id
    assert stage.effects(one) == 2


async def test_the_same_key_again_changes_nothing(stage: Stage) -> None:
    """A platform that takes our key ends with one effect, however often it is sent, at once or one after the other."""
    if not stage.platform.once.token:
        pytest.skip("this platform takes no key")
    made = await stage.uploaded(work())
    first = await stage.platform.publish(stage.http, stage.login, made)
    assert await stage.platform.publish(stage.http, stage.login, made) == first
    again = await asyncio.gather(*(stage.platform.publish(stage.http, stage.login, made) for _ in range(5)))
    assert set(again) == {first}
    assert stage.effects(made) == 1


async def test_find(stage: Stage) -> None:
    """Nothing is found before, the receipt is found after, and another work is never taken for it."""
    begun = since()
    made = await stage.uploaded(work())
    assert await stage.platform.find(stage.http, stage.login, made, begun) is None
    receipt = await stage.platform.publish(stage.http, stage.login, made)
    found = await stage.platform.find(stage.http, stage.login, made, begun)
    assert found == (receipt if stage.platform.can_look else None)
    other = work()
    assert await stage.platform.find(stage.http, stage.login, other, begun) is None


async def test_what_belongs_to_others_is_not_found(stage: Stage) -> None:
    """A twin with the same title is not taken for a lost work once it is known to belong to another publication."""
    begun = since()
    twin = await stage.uploaded(work())
    receipt = await stage.platform.publish(stage.http, stage.login, twin)
    lost = await stage.uploaded(replace(twin, key="msg_lost", uploads=()))
    known = frozenset({receipt.remote_id})
    assert await stage.platform.find(stage.http, stage.login, lost, begun, known) is None


async def test_a_look_changes_nothing(stage: Stage) -> None:
    """Finding and checking send nothing that could have an effect."""
    made = await stage.uploaded(work())
    before, calls = stage.effects(made), len(stage.received())
    await stage.platform.find(stage.http, stage.login, made, since())
    await stage.platform.check(stage.http, stage.login, made)
    assert stage.effects(made) == before
    if stage.sandbox:
        looks = stage.sandbox.log.entries("request", stage.platform.name)[calls:]
        assert {each.data["method"] for each in looks} <= {"GET"}


async def test_a_preview_sends_nothing_and_is_what_is_sent(stage: Stage) -> None:
    """Every request that was previewed is what then really arrives, byte for byte."""
    made = work()
    previews = await stage.platform.preview(stage.login, made)
    assert stage.received() == []
    uploads = [await each.digest() for each in previews[:-1]]
    ready = await stage.uploaded(made)
    (*_, last) = await stage.platform.preview(stage.login, ready)
    before = len(stage.received())
    await stage.platform.publish(stage.http, stage.login, ready)
    assert last.known
    assert not Counter([*uploads, await last.digest()]) - Counter(stage.received())
    if stage.sandbox:
        assert stage.received()[before:] == [await last.digest()]
        seen = stage.sandbox.log.entries("request", stage.platform.name)[-1]
        shown = {name.lower(): value for name, value in last.sent_headers() if not value.startswith("(")}
        arrived = seen.data["headers"]
        assert isinstance(arrived, dict)
        assert {name: shown[name] for name in shown if name in arrived}.items() <= arrived.items()
        assert last.url.endswith(str(seen.data["path"]))
        assert last.method == seen.data["method"]


async def test_secrets_are_never_shown(stage: Stage) -> None:
    """No secret is in a repr, a preview or the text of any failure."""
    made = work()
    secrets = stage.secrets()
    shown = [repr(stage.login), str(stage.login), repr(stage.platform), repr(made)]
    for request in await stage.platform.preview(stage.login, made):
        shown += [repr(request), str(request.shown())]
    dead = Wire(resolve=_nowhere)
    for call in (
        stage.platform.publish(dead.within(5), stage.login, await stage.uploaded(made)),
        stage.platform.check(dead.within(5), stage.login, made),
        stage.platform.renew(dead.within(5), stage.login),
        stage.platform.find(dead.within(-1), stage.login, made, since()),
    ):
        try:
            await call
        except Failure as failure:
            shown += [repr(failure), failure.sentence, "".join(traceback.format_exception(failure))]
    assert not any(secret in text for secret in secrets for text in shown)
    assert secrets or stage.platform.name == "folder"


async def test_an_access_that_is_given_back_has_ended(stage: Stage) -> None:
    """Where there is something to give back it works no longer, and once more does no harm; else nothing is sent."""
    made = work()
    before = len(stage.received())
    if not await stage.platform.revoke(stage.http, stage.login):
        assert len(stage.received()) == before
        await stage.platform.check(stage.http, stage.login, made)
        return
    with pytest.raises(SignInAgain):
        await stage.platform.check(stage.http, stage.login, made)
    with pytest.raises(SignInAgain):
        await stage.platform.renew(stage.http, stage.login)
    await stage.platform.revoke(stage.http, stage.login)


@pytest.mark.parametrize(
    "does", ["reset_before", "reset_after", "half_answer", "error_before", "error_after", "rate_limit"]
)
async def test_giving_back_fails_only_in_known_ways(remote: Stage, does: str) -> None:
    """Whoever removes an account meets a failure and nothing else, and no secret is in it."""
    assert remote.sandbox
    remote.sandbox.faults.next(Fault(does))
    dead = Wire(resolve=_nowhere)
    for http, login in ((remote.http, remote.login), (dead.within(5), _moved(remote))):
        try:
            await remote.platform.revoke(http, login)
        except Failure as failure:
            told = "".join(traceback.format_exception(failure))
            assert not any(secret in told for secret in remote.secrets())


async def _nowhere(_host: str, _port: int) -> list[str]:
    raise OSError("no such name")


async def test_cancelling_in_the_middle_of_an_upload(stage: Stage) -> None:
    """Whoever is cancelled while uploading has published nothing, and the same work can be sent afterwards."""
    held, data = asyncio.Event(), PNG + bytes(_large(stage) - len(PNG))
    begun = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield data[:1_000_000]
        begun.set()
        await held.wait()
        yield data[1_000_000:]

    file = File("slow.png", "image/png", len(data), sha256(data).hexdigest(), slow)
    made = work(files=(file,))
    task = asyncio.create_task(stage.platform.upload(stage.http, stage.login, made, file, lambda _: None))
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert stage.effects(made) == 0
    assert stage.sandbox is None or stage.sandbox.log.entries("upload") == []
    held.set()
    await stage.platform.publish(stage.http, stage.login, await stage.uploaded(made))
    assert stage.effects(made) == 1


async def test_a_file_that_changed_is_not_uploaded(stage: Stage) -> None:
    """Bytes that are no longer what was confirmed are refused, and nothing of them is kept."""
    if stage.platform.name == "webhook":
        pytest.skip("a webhook sends no files")
    right = picture()
    made = work(files=(replace(right, sha256="0" * 64),))
    with pytest.raises(Refused) as refused:
        await stage.platform.upload(stage.http, stage.login, made, made.files[0], lambda _: None)
    assert refused.value.code == "file.changed"
    assert stage.sandbox is None or stage.sandbox.log.entries("upload") == []


@pytest.mark.parametrize(
    "title",
    ["../../etc/passwd", "a" * 40, "\0\r\nX: y", "'\"<script>&%00", "…", "🖤 ﷽ Ω", "=1+1", "C:\\x", "${x}", "a\u202eb"],
    ids=range(10),
)
async def test_hostile_titles_arrive_as_they_are(stage: Stage, title: str) -> None:
    """No title breaks out of where it belongs."""
    made = await stage.uploaded(work(title=title, files=(picture(name=f'{title}".png'),)))
    await stage.platform.publish(stage.http, stage.login, made)
    assert stage.effects(made) == 1


# What is done to a publish, what must be said about it, and how many effects there then are.
PUBLISH_FAULTS: list[tuple[str, dict[str, Any], type[Failure], int]] = [
    ("reset_before", {}, NoAnswer, 0),
    ("reset_during", {}, NoAnswer, 0),
    ("reset_after", {}, NoAnswer, 1),
    ("half_answer", {}, NoAnswer, 1),
    ("error_before", {"status": 500}, NoAnswer, 0),
    ("error_before", {"status": 503, "retry_after": "30"}, NoAnswer, 0),
    ("error_after", {"status": 500}, NoAnswer, 1),
    ("error_after", {"status": 502}, NoAnswer, 1),
    ("rate_limit", {}, RateLimited, 0),
    ("rate_limit", {"retry_after": "7"}, RateLimited, 0),
    ("expired", {}, SignInAgain, 0),
]


@pytest.mark.parametrize(("does", "more", "kind", "effects"), PUBLISH_FAULTS)
async def test_each_fault_of_a_publish(
    remote: Stage, does: str, more: dict[str, Any], kind: type[Failure], effects: int
) -> None:
    """Each fault gives the one failure that is true of it, and the way back that the platform promises works."""
    assert remote.sandbox
    made = await remote.uploaded(work())
    begun = since()
    remote.sandbox.faults.next(Fault(does), **more)
    with pytest.raises(Failure) as seen:
        await remote.platform.publish(remote.http, remote.login, made)
    assert type(seen.value) is kind
    assert remote.effects(made) == effects
    if isinstance(seen.value, NoAnswer):
        assert seen.value.evidence.left
    if isinstance(seen.value, RateLimited):
        wanted = more.get("retry_after")
        # Without a Retry-After a platform may still have told when it counts anew.
        assert wanted is None or seen.value.after == timedelta(seconds=int(wanted))
    if remote.platform.can_look:
        found = await remote.platform.find(remote.http, remote.login, made, begun)
        assert (found is not None) == (effects == 1)
    if remote.platform.once.token or effects == 0:
        assert (await remote.platform.publish(remote.http, remote.login, made)).remote_id
        assert remote.effects(made) == 1


async def test_a_blank_answer_to_a_publish(remote: Stage) -> None:
    """A blank 200 is a success where the status is all there is, and unknown where an id belongs into it."""
    assert remote.sandbox
    made = await remote.uploaded(work())
    remote.sandbox.faults.next(Fault.BLANK)
    try:
        receipt: Receipt | None = await remote.platform.publish(remote.http, remote.login, made)
    except NoAnswer as lost:
        receipt = None
        assert lost.evidence.status == 200  # noqa: PT017 - one of two right ends
    assert receipt is None or not remote.platform.can_look
    assert remote.effects(made) == 1


async def test_nobody_there_is_not_yet(remote: Stage) -> None:
    """If nothing left, that is said, and nothing arrived."""
    made = await remote.uploaded(work())
    for dead in (Wire(resolve=_nowhere), Wire(resolve=_dead)):
        with pytest.raises(NotYet) as seen:
            await remote.platform.publish(dead.within(5), _moved(remote), made)
        assert seen.value.evidence
        assert not seen.value.evidence.left
    with pytest.raises(NotYet):
        await remote.platform.publish(Wire().within(-1), remote.login, made)
    assert remote.effects(made) == 0


async def _dead(_host: str, _port: int) -> list[str]:
    return ["127.0.0.2"]  # the sandbox listens on 127.0.0.1 only


def _moved(remote: Stage) -> Any:
    text = remote.login.sealable().replace("127.0.0.1", "somewhere.invalid")
    return remote.platform.login_type.model_validate_json(text)


async def test_a_slow_answer_is_unknown(remote: Stage) -> None:
    """What is not answered before the deadline has left all the same."""
    assert remote.sandbox
    made = await remote.uploaded(work())
    remote.sandbox.faults.next(Fault.LATENCY, seconds=60)
    with pytest.raises(NoAnswer):
        await remote.platform.publish(Wire().within(0.2), remote.login, made)


def _large(stage: Stage) -> int:
    """Give the size of a file that takes more than one write, and that the platform takes."""
    return min(3_000_000, stage.platform.limits.bytes or 3_000_000)


UPLOAD_FAULTS: list[tuple[str, dict[str, Any], type[Failure]]] = [
    ("reset_before", {}, NotYet),
    ("reset_during", {}, NotYet),
    ("reset_after", {}, NotYet),
    ("half_answer", {}, NotYet),
    ("blank", {}, NotYet),
    ("error_before", {"status": 500}, NotYet),
    ("error_after", {"status": 500}, NotYet),
    ("rate_limit", {"retry_after": "Sun, 06 Nov 1994 08:49:37 GMT"}, RateLimited),
    ("expired", {}, SignInAgain),
]


@pytest.mark.parametrize(("does", "more", "kind"), UPLOAD_FAULTS)
async def test_each_fault_of_an_upload(remote: Stage, does: str, more: dict[str, Any], kind: type[Failure]) -> None:
    """A lost upload is never unknown: it is made again, and the work still goes out once."""
    assert remote.sandbox
    made = work(files=(picture(_large(remote)),))
    remote.sandbox.faults.next(Fault(does), **more)
    try:
        await remote.uploaded(made)
    except Failure as failure:
        assert type(failure) is kind  # noqa: PT017 - a platform that uploads nothing has nothing to fail
    else:
        assert remote.received() == []
        remote.sandbox.faults.clear()
    await remote.platform.publish(remote.http, remote.login, await remote.uploaded(made))
    assert remote.effects(made) == 1


LOOK_FAULTS = ["reset_before", "reset_after", "half_answer", "blank", "error_before", "rate_limit", "expired"]


@pytest.mark.parametrize("does", LOOK_FAULTS)
async def test_a_look_that_fails_says_so(remote: Stage, does: str) -> None:
    """A look that did not work is never taken for "it is not there"."""
    assert remote.sandbox
    made = await remote.uploaded(work())
    remote.sandbox.faults.next(Fault(does))
    if not remote.platform.can_look:
        assert await remote.platform.find(remote.http, remote.login, made, since()) is None
        return
    with pytest.raises((NotYet, RateLimited, SignInAgain)):
        await remote.platform.find(remote.http, remote.login, made, since())


async def test_validate_names_what_does_not_fit(stage: Stage) -> None:
    """Each limit that is passed is named, and what a rendition would mend is marked."""
    limits = stage.platform.limits
    huge = replace(picture(), size=10**12, type="application/x-unheard-of")
    tall = replace(picture(), width=10**6, height=10**6)
    codes = {each.code for each in stage.platform.validate(stage.login, work(files=(huge, tall), tags=("x",) * 1000))}
    assert ("fit.large" in codes) == (limits.bytes is not None)
    assert ("fit.type" in codes) == bool(limits.types)
    assert ("fit.edge" in codes) == (limits.edge is not None)
    assert ("fit.many_tags" in codes) == (limits.tags is not None)
    assert ("fit.many_files" in codes) == (limits.most_files is not None and limits.most_files < 2)
    bare = Work(key="k", made_at=datetime.now(UTC))
    codes = {each.code for each in stage.platform.validate(stage.login, bare)}
    assert ("fit.no_title" in codes) == limits.needs_title
    assert ("fit.few_files" in codes) == (limits.least_files > 0)
    assert all(each.sentence.endswith(".") for each in stage.platform.validate(stage.login, bare))
