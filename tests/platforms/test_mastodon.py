"""Mastodon: what is sent, how it is counted, an instance's own limits, the sign-in, the look, and every answer."""

import json
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import SecretStr

from imprint.engine.wire import Sender, Wire
from imprint.platforms.answer import Answer
from imprint.platforms.contract import Quota, Receipt
from imprint.platforms.failure import Failure, NoAnswer, NotYet, RateLimited, Refused, SignInAgain
from imprint.platforms.graphemes import count
from imprint.platforms.login import Errand
from imprint.platforms.mastodon import MOST_PAGES, Mastodon, countable
from imprint.platforms.mastodon_sign_in import TYPES, MastodonLogin, read_limits
from imprint.platforms.work import RemoteFile, Work
from imprint.sandbox.faults import Fault
from imprint.sandbox.server import Sandbox, sandbox
from tests.platforms.recorded import Recorded, answer, recording
from tests.platforms.works import picture, work

MASTODON = Mastodon()
LOGIN = MastodonLogin(
    base_url="https://m.test", client_id="c", client_secret=SecretStr("s"), access_token=SecretStr("t"), account_id="7"
)
BACK = "http://127.0.0.1:7600/back"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def running() -> AsyncIterator[Sandbox]:
    """Give a sandbox."""
    async with sandbox() as one:
        yield one


@pytest.fixture
def login(running: Sandbox) -> MastodonLogin:
    """Give an account of the sandbox."""
    return MastodonLogin.model_validate_json(running.login("mastodon", "artist"))


def http() -> Sender:
    """Give a sender."""
    return Wire().within(10)


async def uploaded(login: MastodonLogin, **more: Any) -> Work:
    """Make a work with its files there."""
    made = work(**more)
    for file in made.files:
        made = made.with_upload(await MASTODON.upload(http(), login, made, file, lambda _: None))
    return made


def ready(**more: Any) -> Work:
    """Make a work whose file is uploaded already."""
    made = work(**more)
    return made.with_upload(RemoteFile("9", made.files[0].sha256)) if made.files else made


async def test_every_field_arrives(running: Sandbox, login: MastodonLogin) -> None:
    """Text, files in their order with their descriptions, warning, visibility, language, and our key in its header."""
    options = {
        "text": "Hello #ink",
        "contentWarning": "Ink",
        "visibility": "unlisted",
        "language": "de",
    }
    made = await uploaded(login, files=(picture(), picture(seed=2, name="b.png")), is_mature=True, options=options)
    assert MASTODON.validate(login, made) == []
    await MASTODON.check(http(), login, made)
    receipt = await MASTODON.publish(http(), login, made)
    (out,) = running.log.effects("mastodon")
    assert out.data["fields"] == [
        ("status", "Hello #ink"),
        ("media_ids[]", made.uploads[0].id),
        ("media_ids[]", made.uploads[1].id),
        ("sensitive", "true"),
        ("spoiler_text", "Ink"),
        ("visibility", "unlisted"),
        ("language", "de"),
    ]
    assert out.data["key"] == made.key
    assert receipt == Receipt(str(out.data["remote_id"]), str(out.data["url"]))
    assert [each.data["alt"] for each in running.log.entries("upload")] == ["a drawing", "a drawing"]


async def test_the_default_text(running: Sandbox, login: MastodonLogin) -> None:
    """Title, description, link and hashtags, shortened so that it fits; a link counts as every other one."""
    link = f"https://example.org/{'x' * 300}"
    made = await uploaded(
        login, title="Harbour", description="word " * 200, tags=("Ink Drawing",), options={"link": link}
    )
    assert MASTODON.validate(login, made) == []
    await MASTODON.publish(http(), login, made)
    text = dict(running.log.effects("mastodon")[0].data["fields"])["status"]  # type: ignore[call-overload] # pairs
    assert text.startswith("Harbour\n\nword word")
    assert text.endswith(f"word…\n\n{link}\n\n#InkDrawing")
    assert len(text) > 700


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("plain", 5),
        (f"see https://example.org/{'x' * 90} now", 4 + 23 + 4),
        ("https://a.b", 23),
        ("https://a.b.", 24),
        ("(https://example.org/a)", 25),
        ("xhttps://example.org", 20),
        ("hi @someone@a.very.long.instance.example!", 3 + 8 + 1),
        ("@someone", 8),
        ("a@b.example", 11),
        ("👨‍👩‍👧‍👦🇩🇪", 2),
    ],
)
def test_text_is_counted_as_mastodon_counts(text: str, length: int) -> None:
    """Graphemes; a link is 23 however long; a mention is as long as its name."""
    assert count(countable(LOGIN, text)) == length


def test_validate_knows_the_limits_of_the_instance() -> None:
    """Length with the warning, alt texts, options and emptiness are looked at before anything is sent."""

    def codes(login: MastodonLogin = LOGIN, **more: Any) -> set[str]:
        return {each.code for each in MASTODON.validate(login, work(**more))}

    assert codes(options={"text": "x" * 500}) == set()
    assert codes(options={"text": "x" * 499, "contentWarning": "ab"}) == {"fit.long_text"}
    assert codes(LOGIN.model_copy(update={"most_characters": 5000}), options={"text": "x" * 5000}) == set()
    assert codes(description="x" * 9000) == set()
    assert codes(files=(replace(picture(), alt="x" * 1501),)) == {"fit.long_alt"}
    assert codes(options={"visibility": "everybody", "bogus": 1}) == {"fit.options"}
    assert codes(files=(), options={"text": ""}) == {"fit.no_text"}
    assert codes(LOGIN.model_copy(update={"types": frozenset({"image/jpeg"})})) == {"fit.type"}


def test_recorded_limits_of_a_real_instance() -> None:
    """What mastodon.social said of itself is read; nonsense is not believed."""
    found = read_limits(cassette("entity_instancemediaconfiguration")[0].json())
    assert (found["most_characters"], found["most_files"], found["characters_of_a_link"]) == (500, 4, 23)
    assert found["image_bytes"] == 16 * 1024 * 1024
    assert found["types"] == TYPES
    assert read_limits({}) == {"types": TYPES}
    odd = {"configuration": {"statuses": {"max_characters": -1}, "media_attachments": {"supported_mime_types": ["x"]}}}
    assert read_limits(odd) == {"types": TYPES}


def cassette(name: str) -> list[Answer]:
    """Read the answers of a recording."""
    played = [each["response"] for each in yaml.safe_load(recording(f"mastodon/test_{name}.yaml"))["interactions"]]
    return [
        answer(
            each["body"]["string"].encode(),
            each["status"]["code"],
            **{name.lower(): values[0] for name, values in each["headers"].items()},
        )
        for each in played
    ]


@pytest.mark.parametrize(
    ("name", "status"),
    [("status_post_None-public-", 200), ("status_post_Content_warning-unlisted-", 200), ("lang_for_errors", 422)],
)
async def test_recorded_answers(name: str, status: int) -> None:
    """Real statuses give receipts, real errors in several languages are one refusal, real headers tell what is left."""
    for real in [each for each in cassette(name) if each.status == status]:
        if status == 200:
            receipt = await MASTODON.publish(Recorded(real), LOGIN, ready())
            assert receipt.url
            assert receipt.url.endswith(receipt.remote_id)
        else:
            with pytest.raises(Refused) as seen:
                await MASTODON.publish(Recorded(real), LOGIN, ready())
            assert seen.value.code == "mastodon.refused_422"
        assert (MASTODON.quota(real) is not None) == ("x-ratelimit-reset" in real.headers)


def test_what_is_left_is_read_from_the_headers() -> None:
    """The moment is ISO 8601; what cannot be read says nothing."""
    date = {"date": "Mon, 16 Nov 2026 01:00:00 GMT", "x-ratelimit-remaining": "12"}
    assert MASTODON.quota(answer({}, 200, **date, **{"x-ratelimit-reset": "2026-11-16T01:05:00.5Z"})) == Quota(
        12, timedelta(minutes=5, seconds=0.5)
    )
    for odd in ("soon", "", "2026-11-16T01:05:00"):
        assert MASTODON.quota(answer({}, 200, **date, **{"x-ratelimit-reset": odd})) is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Refused), (401, SignInAgain), (403, SignInAgain), (404, Refused), (410, Refused), (413, Refused),
     (422, Refused), (429, RateLimited), (500, NoAnswer), (503, NoAnswer), (200, NoAnswer), (302, NoAnswer)],
)  # fmt: skip
async def test_each_status_means_one_thing(status: int, kind: type[Failure]) -> None:
    """Only the status tells; the text is in some language."""
    with pytest.raises(Failure) as seen:
        await MASTODON.publish(Recorded(answer({"error": "irgendwas"}, status)), LOGIN, ready())
    assert type(seen.value) is kind
    assert "irgendwas" not in str(seen.value)


async def test_a_refusal_for_the_rate_says_until_when(running: Sandbox, login: MastodonLogin) -> None:
    """There is no Retry-After, but the moment at which it is counted anew."""
    for _ in range(30):
        await MASTODON.upload(http(), login, work(), picture(100), lambda _: None)
    with pytest.raises(RateLimited) as seen:
        await MASTODON.upload(http(), login, work(), picture(100), lambda _: None)
    assert seen.value.after
    assert timedelta(0) < seen.value.after <= timedelta(minutes=30)
    assert len(running.log.entries("upload")) == 30


async def test_files_that_take_time(running: Sandbox, login: MastodonLogin) -> None:
    """A file on its way is NotYet; a status that names it too early would be refused; one that is gone says so."""
    running.sites["mastodon"].switch("slow_media", on=True)
    made = await uploaded(login)
    with pytest.raises(Refused):
        await MASTODON.publish(http(), login, made)
    with pytest.raises(NotYet) as seen:
        await Mastodon(ready_looks=()).check(http(), login, made)
    assert (seen.value.code, seen.value.uploads_gone) == ("mastodon.processing", False)
    await MASTODON.check(http(), login, made)
    await MASTODON.publish(http(), login, made)
    running.sites["mastodon"].switch("forgets_media", on=True)
    with pytest.raises(NotYet) as gone:
        await MASTODON.check(http(), login, await uploaded(login))
    assert gone.value.uploads_gone
    for status, kind in ((422, Refused), (500, NotYet), (401, SignInAgain)):
        with pytest.raises(kind):
            await MASTODON.check(Recorded(answer({}, status)), LOGIN, ready())
    with pytest.raises(NotYet):
        await MASTODON.publish(Recorded(), LOGIN, work())


async def test_a_file_is_waited_for(running: Sandbox, login: MastodonLogin) -> None:
    """An instance that is still at work is asked again within the attempt, which is then none that failed."""
    running.sites["mastodon"].switch("slow_media", on=True)
    made = await uploaded(login)
    await Mastodon(ready_looks=(0, 0)).check(http(), login, made)
    await MASTODON.publish(http(), login, made)


async def test_a_key_lasts_an_hour(running: Sandbox, login: MastodonLogin) -> None:
    """Within it the same status comes back; a second later the same key makes another, which is why nobody sends it."""
    made = work(files=())
    first = await MASTODON.publish(http(), login, made)
    for later, same in ((3590, True), (3601, False)):
        running.sites["mastodon"].ahead = later
        assert (await MASTODON.publish(http(), login, made) == first) is same
    assert len(running.log.effects("mastodon")) == 2
    assert MASTODON.once.may_resend(timedelta(minutes=59))
    assert not MASTODON.once.may_resend(timedelta(minutes=60))
    assert "60 minutes" in MASTODON.once.promise


async def test_a_look_goes_by_the_words_that_were_sent(running: Sandbox, login: MastodonLogin) -> None:
    """HTML, other warnings, other numbers of files and older statuses do not lead it astray; pages are turned."""
    begun = datetime.now(UTC)
    text = "<b>Ink</b> & water\n\nhttps://example.org/a?b=1&c=2"
    made = work(files=(), options={"text": text})
    receipt = await MASTODON.publish(http(), login, made)
    for number in range(45):
        await MASTODON.publish(http(), login, work(files=(), options={"text": f"other {number}"}))
    assert await MASTODON.find(http(), login, made, begun) == receipt
    assert await MASTODON.find(http(), login, made, begun, frozenset({receipt.remote_id})) is None
    assert await MASTODON.find(http(), login, made, begun + timedelta(hours=1)) is None
    assert (
        await MASTODON.find(http(), login, replace(made, options={"text": text, "contentWarning": "x"}), begun) is None
    )
    assert await MASTODON.find(http(), login, replace(made, files=(picture(),)), begun) is None
    running.faults.next(Fault.LAG, path="*/statuses", seconds=3600)
    assert await MASTODON.find(http(), login, made, begun) is None


async def test_a_list_without_end_is_not_absence() -> None:
    """Who cannot look through all of it does not say that it is not there; nor does who gets no list."""
    page = answer([{"id": "1", "created_at": "2030-01-01T00:00:00.000Z", "media_attachments": [1], "spoiler_text": ""}])
    with pytest.raises(NotYet) as seen:
        await MASTODON.find(Recorded(*[page] * MOST_PAGES), LOGIN, work(), BEGINNING)
    assert seen.value.code == "mastodon.many_statuses"
    with pytest.raises(NotYet):
        await MASTODON.find(Recorded(answer({"error": "?"})), LOGIN, work(), BEGINNING)
    assert await MASTODON.find(Recorded(answer([])), LOGIN, work(), BEGINNING) is None


async def begun(running: Sandbox) -> Errand:
    """Set out."""
    errand = await MASTODON.begin(http(), {"instance": running.base_url("mastodon") + "/"}, BACK)
    assert isinstance(errand, Errand)
    return errand


async def came_back(errand: Errand) -> str:
    """Sign in as a person would, and give the address the browser ends at."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        assert (await browser.get(errand.url)).status_code == 200
        back = await browser.get(errand.url + "&as=painter")
    assert back.status_code == 302
    return str(back.headers["location"])


@pytest.mark.parametrize("old", [False, True])
async def test_the_whole_way_in(running: Sandbox, *, old: bool) -> None:
    """Register, set out with PKCE, come back: a login with the limits of its instance, old ones too."""
    running.sites["mastodon"].switch("old_version", on=old)
    errand = await begun(running)
    query = parse_qs(urlsplit(errand.url).query)
    assert query["scope"] == ["read:accounts read:statuses write:media write:statuses"]
    assert query["code_challenge_method"] == ["S256"]
    address = await came_back(errand)
    login = await MASTODON.finish(http(), errand, address)
    assert login.name == f"@painter@{urlsplit(running.url).netloc}"
    assert login.most_characters == 500
    await MASTODON.check(http(), login, work())
    with pytest.raises(SignInAgain):
        await MASTODON.finish(http(), errand, address)  # a code works once
    other = await begun(running)
    with pytest.raises(Refused):
        await MASTODON.finish(http(), other, address)
    stolen = Errand(other.url, other.state, errand.kept)
    with pytest.raises(SignInAgain) as seen:
        await MASTODON.finish(http(), stolen, await came_back(other))
    secrets = [errand.state.get_secret_value(), json.loads(errand.kept.get_secret_value())["client_secret"]]
    told = "".join(traceback.format_exception(seen.value)) + repr(errand)
    assert not any(secret in told for secret in secrets)


@pytest.mark.parametrize("place", ["mastodon.social", "@me@mastodon.social", " https://mastodon.social/ "])
async def test_an_instance_is_named_as_people_name_it(place: str) -> None:
    """A domain, a name on it or an address are the same instance; anything else is refused."""
    told = answer({"client_id": "c", "client_secret": "s"})
    errand = await MASTODON.begin(Recorded(told), {"instance": place}, BACK)
    assert isinstance(errand, Errand)
    assert errand.url.startswith("https://mastodon.social/oauth/authorize?")
    for bad in ("", "ftp://x", "https://u:p@x"):
        with pytest.raises(Refused):
            await MASTODON.begin(Recorded(told), {"instance": bad}, BACK)
    with pytest.raises(Refused):
        await MASTODON.begin(Recorded(answer({"hello": "world"})), {"instance": place}, BACK)
    with pytest.raises(SignInAgain):
        await MASTODON.begin(Recorded(answer({}, 404)), {"instance": place}, BACK)
