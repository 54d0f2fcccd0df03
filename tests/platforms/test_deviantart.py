"""DeviantArt: every field, every code, every fault people have seen, and the look-up of a lost publish."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from imprint.engine.wire import Sender, Wire
from imprint.platforms.contract import Receipt
from imprint.platforms.deviantart import MOST_PAGES, PUBLISH_CODES, DeviantArt, DeviantArtOptions
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.failure import Failure, NoAnswer, NotYet, RateLimited, Refused, SignInAgain
from imprint.platforms.work import RemoteFile, Work
from imprint.sandbox.faults import Fault
from imprint.sandbox.server import Sandbox, sandbox
from tests.platforms.recorded import Recorded, answer
from tests.platforms.works import picture, work

DA = DeviantArt()
LOGIN = DeviantArtLogin(client_id="1", client_secret=SecretStr("s"), access_token=SecretStr("t"), app_name="Imprint")
BEGINNING = datetime(2016, 1, 1, tzinfo=UTC)


@pytest.fixture
async def running() -> AsyncIterator[Sandbox]:
    """Give a sandbox."""
    async with sandbox() as one:
        yield one


@pytest.fixture
def login(running: Sandbox) -> DeviantArtLogin:
    """Give an account of the sandbox."""
    return DeviantArtLogin.model_validate_json(running.login("deviantart", "artist"))


def http() -> Sender:
    """Give a sender."""
    return Wire().within(10)


def ready(**more: Any) -> Work:
    """Make a work whose file is uploaded already."""
    made = work(**more)
    return made.with_upload(RemoteFile("9007199254740993", made.files[0].sha256))


async def uploaded(login: DeviantArtLogin, made: Work) -> Work:
    """Upload the file of a work."""
    return made.with_upload(await DA.upload(http(), login, made, made.files[0], lambda _: None))


async def published(login: DeviantArtLogin, **more: Any) -> tuple[Work, Receipt]:
    """Upload and publish a work."""
    made = await uploaded(login, work(**more))
    return made, await DA.publish(http(), login, made)


async def test_every_field_arrives(running: Sandbox, login: DeviantArtLogin) -> None:
    """Each field of a post and each option is sent under the name DeviantArt gives it."""
    (gallery, *_) = await DA.galleries(http(), login)
    options = {
        "feature": False,
        "requestCritique": True,
        "sharing": "hide_share_buttons",
        "creativeCommons": True,
        "commercial": False,
        "modify": "share",
        "addWatermark": True,
        "subjectTags": ["boats"],
        "groups": ["painters"],
    }
    made = work(
        is_mature=True,
        mature_level="moderate",
        mature_classification=("nudity", "gore"),
        gallery_ids=(gallery.id,),
        allow_comments=False,
        allow_free_download=True,
        is_ai_generated=True,
        no_ai=True,
        display_resolution=8,
        options=options,
    )
    assert DA.validate(login, made) == []
    made = await uploaded(login, made)
    receipt = await DA.publish(http(), login, made)
    (effect,) = running.log.effects("deviantart")
    assert effect.data["remote_id"] == receipt.remote_id
    assert effect.data["fields"] == [
        ("itemid", made.uploads[0].id),
        ("is_mature", "1"),
        ("mature_level", "moderate"),
        ("mature_classification[]", "nudity"),
        ("mature_classification[]", "gore"),
        ("feature", "0"),
        ("allow_comments", "0"),
        ("request_critique", "1"),
        ("display_resolution", "8"),
        ("sharing", "hide_share_buttons"),
        ("license_options[creative_commons]", "1"),
        ("license_options[commercial]", "0"),
        ("license_options[modify]", "share"),
        ("galleryids[]", gallery.id),
        ("allow_free_download", "1"),
        ("add_watermark", "1"),
        ("tags[]", "harbour"),
        ("tags[]", "InkDrawing"),
        ("tags[]", "été"),
        ("subject_tags[]", "boats"),
        ("groups[]", "painters"),
        ("is_ai_generated", "1"),
        ("noai", "1"),
    ]


async def test_the_terms_are_agreed_to_only_where_that_is_set(running: Sandbox, login: DeviantArtLogin) -> None:
    """The old fields are off by default; an application that needs them can have them."""
    running.sites["deviantart"].switch("wants_terms", on=True)
    made = await uploaded(login, work())
    with pytest.raises(Refused) as refused:
        await DA.publish(http(), login, made)
    assert refused.value.code == "deviantart.submission_policy"
    assert (await DA.publish(http(), login.model_copy(update={"agree_terms": True}), made)).remote_id


async def test_item_ids_are_text(login: DeviantArtLogin) -> None:
    """An item id beyond 2^53 comes through to the last digit."""
    made = await uploaded(login, work())
    assert int(made.uploads[0].id) > 2**53
    assert int(made.uploads[0].id) % 2 == 1
    for told, kept in ((9223372036854775807, "9223372036854775807"), ("12", "12")):
        http_ = Recorded(answer({"status": "success", "itemid": told}))
        assert (await DA.upload(http_, LOGIN, work(), picture(), lambda _: None)).id == kept
    for bad in (None, True, -1, 1.5, "", "1e5", "12a", [1], 10**30):
        with pytest.raises(NotYet):
            await DA.upload(
                Recorded(answer({"status": "success", "itemid": bad})), LOGIN, work(), picture(), lambda _: None
            )


@pytest.mark.parametrize("number", range(9))
async def test_every_error_code_of_a_publish(running: Sandbox, login: DeviantArtLogin, number: int) -> None:
    """Each code is a refusal with a name and a sentence of its own."""
    made = await uploaded(login, work())
    running.faults.next(Fault.REFUSE, code=number)
    with pytest.raises(Refused) as refused:
        await DA.publish(http(), login, made)
    assert (refused.value.code, refused.value.sentence) == (
        f"deviantart.{PUBLISH_CODES[number][0]}",
        PUBLISH_CODES[number][1],
    )
    assert running.log.effects() == []


async def test_already_published_is_success(running: Sandbox, login: DeviantArtLogin) -> None:
    """A second publish of the same item is refused by DeviantArt, and that proves that the first one worked."""
    made = await uploaded(login, work())
    running.faults.next(Fault.ERROR_AFTER)
    with pytest.raises(NoAnswer):
        await DA.publish(http(), login, made)
    receipt = await DA.publish(http(), login, made)
    assert (receipt.remote_id, receipt.url) == (f"item:{made.uploads[0].id}", None)
    assert len(running.log.effects()) == 1
    found = await DA.find(http(), login, made, datetime.now(UTC))
    assert found
    assert found.remote_id == running.log.effects()[0].data["remote_id"]


async def test_code_9_of_a_broken_server_proves_nothing() -> None:
    """Only a refusal counts as one: a 500 with a code in it is unknown."""
    told = {"error": "invalid_request", "error_code": 9, "status": "error"}
    with pytest.raises(NoAnswer):
        await DA.publish(Recorded(answer(told, 500)), LOGIN, ready())
    with pytest.raises(NoAnswer):
        await DA.publish(Recorded(answer({"error_code": 9}, 400)), LOGIN, ready())


async def test_where_a_second_publish_is_not_refused_the_log_shows_two(
    running: Sandbox, login: DeviantArtLogin
) -> None:
    """The switch makes a blind resend visible as what it is: a duplicate in public."""
    running.sites["deviantart"].switch("refuses_second_publish", on=False)
    made, first = await published(login)
    second = await DA.publish(http(), login, made)
    assert first.remote_id != second.remote_id
    assert [each.data["again"] for each in running.log.effects()] == [False, True]


THRESHOLDS = ("user_api_threshold", "application_api_threshold")


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "code"),
    [
        *((429, {"error": each, "status": "error"}, {}, RateLimited, f"deviantart.{each}") for each in THRESHOLDS),
        (429, b"", {"retry-after": "60"}, RateLimited, "deviantart.rate_limited"),
        (403, b"", {"content-type": "text/html"}, RateLimited, "deviantart.rate_limited"),
        (403, b" \n", {"content-type": "text/html; charset=utf-8"}, RateLimited, "deviantart.rate_limited"),
        (403, b"<h1>no</h1>", {"content-type": "text/html"}, NoAnswer, "deviantart.publish"),
        (403, {"error": "insufficient_scope", "status": "error"}, {}, SignInAgain, "deviantart.scope"),
        (401, {"error": "invalid_token", "status": "error"}, {}, SignInAgain, "deviantart.invalid_token"),
        (401, b"", {}, NoAnswer, "deviantart.publish"),
        (404, {"error": "version_error", "status": "error"}, {}, Refused, "deviantart.version_error"),
        (400, {"error": "x" * 99, "status": "error"}, {}, Refused, "deviantart.refused"),
        (400, {"error": "<b>", "status": "error"}, {}, Refused, "deviantart.refused"),
        (400, {"error": 5, "status": "error"}, {}, NoAnswer, "deviantart.publish"),
        (400, b"<html>", {}, NoAnswer, "deviantart.publish"),
        (500, {"error": "server_error", "status": "error"}, {}, NoAnswer, "deviantart.publish"),
        (502, b"", {}, NoAnswer, "deviantart.publish"),
        (200, b" " * 19, {}, NoAnswer, "deviantart.publish"),
        (200, b"", {}, NoAnswer, "deviantart.publish"),
        (200, {"status": "success"}, {}, NoAnswer, "deviantart.publish"),
        (200, {"status": "success", "deviationid": ""}, {}, NoAnswer, "deviantart.publish"),
        (200, {"status": "success", "deviationid": 5}, {}, NoAnswer, "deviantart.publish"),
        (200, {"error": "server_error", "status": "error"}, {}, NoAnswer, "deviantart.publish"),
        (301, b"", {"location": "/x"}, NoAnswer, "deviantart.publish"),
    ],
)
async def test_each_answer_to_a_publish_has_one_meaning(
    status: int, body: Any, headers: dict[str, str], kind: type[Failure], code: str
) -> None:
    """Known refusals are named, limits are kept apart, everything else is unknown."""
    with pytest.raises(Failure) as seen:
        await DA.publish(Recorded(answer(body, status, **headers)), LOGIN, ready())
    assert (type(seen.value), seen.value.code) == (kind, code)
    if kind is NoAnswer:  # what may be out after a publish is only a lost upload after a submit
        with pytest.raises(NotYet):
            await DA.upload(Recorded(answer(body, status, **headers)), LOGIN, work(), picture(), lambda _: None)


async def test_an_expired_token_can_be_told_from_a_lost_login(running: Sandbox, login: DeviantArtLogin) -> None:
    """An access token that ended is renewed once; a refresh token that is burnt needs a person."""
    site: Any = running.sites["deviantart"]
    site.tokens.expire("artist")
    with pytest.raises(SignInAgain) as seen:
        await DA.check(http(), login, work())
    assert seen.value.renewable
    fresh = await DA.renew(http(), login)
    await DA.check(http(), fresh, work())
    assert fresh.expires_in == timedelta(hours=1)
    assert fresh.renewable_for == timedelta(days=90)
    assert fresh.refresh_token != login.refresh_token
    with pytest.raises(SignInAgain) as seen:
        await DA.renew(http(), login)  # used once already
    assert not seen.value.renewable
    await DA.renew(http(), fresh)
    site.tokens.burn("artist")
    with pytest.raises(SignInAgain):
        await DA.renew(http(), fresh)


async def test_a_lost_refresh_is_burnt(running: Sandbox, login: DeviantArtLogin) -> None:
    """When only the answer is lost, one more try tells that the token is gone."""
    running.faults.next(Fault.RESET_AFTER, path="/oauth2/token")
    with pytest.raises(NoAnswer):
        await DA.renew(http(), login)
    with pytest.raises(SignInAgain) as seen:
        await DA.renew(http(), login)
    assert not seen.value.renewable


async def test_a_refresh_that_never_arrived_can_be_repeated(running: Sandbox, login: DeviantArtLogin) -> None:
    """A reset before the server acted burns nothing, and neither does a platform that cannot be reached."""
    running.faults.next(Fault.RESET_BEFORE, path="/oauth2/token")
    with pytest.raises(NoAnswer):
        await DA.renew(http(), login)
    with pytest.raises(NotYet):
        await DA.renew(Wire().within(-1), login)
    assert (await DA.renew(http(), login)).refresh_token != login.refresh_token


async def test_each_fault_of_a_refresh(running: Sandbox, login: DeviantArtLogin) -> None:
    """A limit, a broken server and a blank answer are not taken for a lost login."""
    for rule, kind in (
        ({"does": Fault.RATE_LIMIT, "retry_after": "5"}, RateLimited),
        ({"does": Fault.FORBIDDEN}, RateLimited),
        ({"does": Fault.ERROR_BEFORE}, NoAnswer),
    ):
        running.faults.next(path="/oauth2/token", **rule)
        with pytest.raises(kind):
            await DA.renew(http(), login)
    login = await DA.renew(http(), login)
    running.faults.next(Fault.BLANK, path="/oauth2/token")
    with pytest.raises(NoAnswer):
        await DA.renew(http(), login)
    with pytest.raises(SignInAgain):
        await DA.renew(http(), login.model_copy(update={"refresh_token": None}))


async def test_a_lagging_gallery_hides_for_a_while(running: Sandbox, login: DeviantArtLogin) -> None:
    """Absence is no proof: the third look finds what two did not."""
    begun = datetime.now(UTC)
    made, receipt = await published(login)
    running.faults.next(Fault.LAG, path="*gallery/all", times=2, seconds=3600)
    assert [await DA.find(http(), login, made, begun) for _ in range(3)] == [None, None, receipt]


async def test_a_look_reads_no_further_than_it_must(running: Sandbox, login: DeviantArtLogin) -> None:
    """Sixty deviations are three pages; one that is first on the first page still needs the rest of its window."""
    begun = datetime.now(UTC)
    made, receipt = await published(login, tags=("one",))
    for _ in range(59):
        item = await uploaded(login, work(files=(picture(100),)))
        await DA.publish(http(), login, item)
    assert await DA.find(http(), login, made, begun) == receipt
    pages = [each for each in running.log.entries("request") if str(each.data["path"]).endswith("gallery/all")]
    assert len(pages) == 3
    assert await DA.find(http(), login, made, datetime.now(UTC) + timedelta(hours=1)) is None
    pages = [each for each in running.log.entries("request") if str(each.data["path"]).endswith("gallery/all")]
    assert len(pages) == 4


async def test_tags_tell_two_of_the_same_title_apart(login: DeviantArtLogin) -> None:
    """The one with the tags is found, not the newer one without."""
    begun = datetime.now(UTC)
    made, receipt = await published(login, title="Sketch", tags=("monday",))
    await published(login, title="Sketch", tags=("tuesday",))
    assert await DA.find(http(), login, made, begun) == receipt
    other = replace(made, tags=("wednesday",))
    assert await DA.find(http(), login, other, begun) is None


async def test_what_another_app_has_sent_is_not_ours(login: DeviantArtLogin) -> None:
    """A person who posts the same by hand does not settle our publication."""
    begun = datetime.now(UTC)
    made, receipt = await published(login)
    elsewhere = login.model_copy(update={"app_name": "Another app"})
    assert await DA.find(http(), elsewhere, made, begun) is None
    unnamed = login.model_copy(update={"app_name": ""})
    assert await DA.find(http(), unnamed, made, begun) == receipt


async def test_more_than_ten_of_the_same_title(login: DeviantArtLogin) -> None:
    """The extended metadata come ten at a time; the eleventh is found all the same."""
    begun = datetime.now(UTC)
    made, receipt = await published(login, title="Sketch", tags=("first",), files=(picture(100),))
    for _ in range(12):
        await published(login, title="Sketch", tags=(), files=(picture(100),))
    assert await DA.find(http(), login, made, begun) == receipt


async def test_a_gallery_without_end_is_not_absence() -> None:
    """Who cannot look through all of it does not say that it is not there."""
    page = {"has_more": True, "results": [{"deviationid": "X", "title": "x", "published_time": 4_000_000_000}]}
    with pytest.raises(NotYet) as seen:
        await DA.find(Recorded(*[answer(page)] * MOST_PAGES), LOGIN, work(), BEGINNING)
    assert seen.value.code == "deviantart.long_gallery"


async def test_validate_knows_deviantarts_own_rules() -> None:
    """Maturity, resolution and options are looked at before anything is sent."""
    made = work(
        is_mature=True,
        mature_classification=("nudity", "boredom"),
        display_resolution=9,
        options={"sharing": "everywhere", "bogus": 1},
        title="x" * 51,
        files=(),
    )
    codes = {each.code for each in DA.validate(LOGIN, made)}
    assert codes == {
        "fit.mature_level",
        "fit.mature_classification",
        "fit.display_resolution",
        "fit.options",
        "fit.long_title",
        "fit.few_files",
    }
    with pytest.raises(Refused):
        await DA.publish(Recorded(), LOGIN, ready(options={"bogus": 1}))
    with pytest.raises(NotYet):
        await DA.publish(Recorded(), LOGIN, work())
    assert DeviantArtOptions.model_validate({"requestCritique": True}).request_critique


async def test_a_preview_before_the_upload_says_what_is_still_to_come() -> None:
    """The item id is the only thing a preview cannot know."""
    submit, publish = await DA.preview(LOGIN, work())
    assert submit.url.endswith("/stash/submit")
    assert (submit.known, publish.known) == (True, False)
    assert ["itemid", "(the item id that the upload gives)"] in publish.shown()["body"]
    (only,) = await DA.preview(LOGIN, ready())
    assert ["itemid", "9007199254740993"] in only.shown()["body"]
