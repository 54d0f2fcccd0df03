"""WordPress: the post that is sent, slugs and marks, terms, the sign-in, and every answer it is known to give."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from imprint.engine.wire import Sender, Wire
from imprint.platforms.contract import Receipt
from imprint.platforms.failure import Failure, NoAnswer, NotYet, RateLimited, Refused, SignInAgain
from imprint.platforms.wordpress import WordPress, WordPressLogin, mark_of, slug_of
from imprint.platforms.work import Work
from imprint.sandbox.faults import Fault
from imprint.sandbox.server import Sandbox, sandbox
from imprint.sandbox.wordpress import APP_PASSWORD
from tests.platforms.recorded import Recorded, answer
from tests.platforms.works import picture, work

WP = WordPress()
LOGIN = WordPressLogin(api_url="https://w.test/wp-json", username="me", app_password=SecretStr("p"))
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def running() -> AsyncIterator[Sandbox]:
    """Give a sandbox."""
    async with sandbox() as one:
        yield one


@pytest.fixture
def login(running: Sandbox) -> WordPressLogin:
    """Give an author of the sandbox."""
    return WordPressLogin.model_validate_json(running.login("wordpress", "artist"))


def http() -> Sender:
    """Give a sender."""
    return Wire().within(10)


async def ready(login: WordPressLogin, **more: Any) -> Work:
    """Make a work with everything it needs."""
    made = work(**more)
    for file in made.files:
        made = made.with_upload(await WP.upload(http(), login, made, file, lambda _: None))
    return await WP.prepare(http(), login, made)


async def test_every_field_arrives(running: Sandbox, login: WordPressLogin) -> None:
    """Title, content with its pictures, slug, terms by their numbers, featured image, excerpt, format, comments."""
    made = await ready(
        login,
        title="Harbour & Sea",
        description="<p>Early light.</p>",
        tags=("Ink & Water", "harbour"),
        allow_comments=False,
        files=(picture(), picture(seed=2)),
        options={"categories": ["Drawings", "uncategorized"], "excerpt": "Short.", "format": "image"},
    )
    assert WP.validate(login, made) == []
    receipt = await WP.publish(http(), login, made)
    (out,) = running.log.effects("wordpress")
    fields: Any = out.data["fields"]
    first, second = made.uploads
    assert receipt == Receipt(str(out.data["remote_id"]), str(out.data["url"]))
    assert {name: fields[name] for name in ("title", "status", "excerpt", "format", "comment_status")} == {
        "title": "Harbour & Sea",
        "status": "publish",
        "excerpt": "Short.",
        "format": "image",
        "comment_status": "closed",
    }
    assert fields["featured_media"] == int(first.id)
    assert fields["slug"] == slug_of(made)
    assert fields["slug"].startswith("harbour-sea-")
    assert len(fields["tags"]) == 2
    assert fields["categories"][1] == 1  # the one that was there
    assert f'class="wp-image-{second.id}"' in fields["content"]
    assert 'alt="a drawing"' in fields["content"]
    assert "<p>Early light.</p>" in fields["content"]
    assert fields["content"].endswith(f"<!-- {mark_of(made)} -->")
    assert [each.data["name"] for each in running.log.entries("term")] == ["Ink & Water", "harbour", "Drawings"]
    assert [each.data["alt"] for each in running.log.entries("upload")] == ["a drawing"] * 2


async def test_terms_are_made_once(running: Sandbox, login: WordPressLogin) -> None:
    """A second post with the same tags, however they are written, makes no new ones; a lost answer is no harm."""
    await ready(login, tags=("Ink & Water",))
    running.faults.next(Fault.RESET_AFTER, path="*/tags", skip=2)
    with pytest.raises(NotYet):
        await ready(login, tags=("ink & water", "new"), files=())
    await ready(login, tags=("INK & water", "New", "newer"), files=())
    names = [str(each.data["name"]).casefold() for each in running.log.entries("term")]
    assert sorted(names) == ["ink & water", "new", "newer"]
    exists = answer({"code": "term_exists", "data": {"status": 400, "term_id": 7}}, 400)
    told = await WP.prepare(Recorded(answer([]), answer([]), answer([]), exists), LOGIN, work(tags=("x",), files=()))
    assert told.prepared == {"tag:x": "7"}


async def test_terms_that_several_make_at_once_are_one(running: Sandbox, login: WordPressLogin) -> None:
    """Whoever is slower is told which one is there already."""
    made = [work(tags=("harbour",), options={"categories": ["Fog"]}, files=()) for _ in range(5)]
    running.faults.next(Fault.LATENCY, path="*/tags", times=5, seconds=0.05)  # all look before anybody makes one
    told = await asyncio.gather(*(WP.prepare(http(), login, each) for each in made))
    assert len({tuple(each.prepared.items()) for each in told}) == 1
    assert [each.data["name"] for each in running.log.entries("term")] == ["harbour", "Fog"]


async def test_a_file_that_the_server_does_not_let_through() -> None:
    """Whoever stands in front of the site says so with a page of its own; that will never change."""
    page = answer(b"<h1>413 Request Entity Too Large</h1>", 413)
    with pytest.raises(Refused) as refused:
        await WP.upload(Recorded(page), LOGIN, work(), work().files[0], lambda _: None)
    assert refused.value.code == "wordpress.too_large"


async def test_who_may_not_make_a_category_is_told(running: Sandbox, login: WordPressLogin) -> None:
    """An author without that right can use the categories that are there."""
    running.sites["wordpress"].switch("may_make_categories", on=False)
    await ready(login, options={"categories": ["Uncategorized"]})
    with pytest.raises(Refused) as seen:
        await ready(login, options={"categories": ["Mine"]})
    assert seen.value.code == "wordpress.rest_cannot_create"


@given(st.text(), st.text(min_size=1))
def test_a_slug_is_one_and_belongs_to_the_work(title: str, key: str) -> None:
    """Whatever the title, the slug is plain, short, and the same for every attempt."""
    made = work(title=title, key=key)
    slug = slug_of(made)
    assert slug == slug_of(replace(made, description="other", made_at=datetime.now(UTC)))
    assert slug.replace("-", "").isalnum()
    assert slug.isascii()
    assert slug == slug.lower()
    assert len(slug) < 80
    assert slug != slug_of(replace(made, key=key + "x"))


async def test_a_chosen_slug_that_is_taken_is_refused(running: Sandbox, login: WordPressLogin) -> None:
    """It would silently become another one; a post that is ours already is never sent again."""
    chosen = {"slug": "harbour"}
    made = await ready(login, options=chosen)
    receipt = await WP.publish(http(), login, made)
    with pytest.raises(Refused) as seen:
        await ready(login, options=chosen)
    assert seen.value.code == "wordpress.slug_taken"
    again = await WP.prepare(http(), login, replace(made, prepared={}))
    assert await WP.publish(http(), login, again) == receipt
    assert len(running.log.effects("wordpress")) == 1
    # Sent all the same, as by somebody who did not look, it is there under another slug: so it really is at the site.
    assert (await WP.publish(http(), login, replace(made, key="other"))).url != receipt.url
    assert running.log.effects("wordpress")[1].data["slug"] == "harbour-2"


async def test_a_post_is_found_by_its_mark_wherever_it_is(running: Sandbox, login: WordPressLogin) -> None:
    """A slug that became another one hides nothing, and somebody else's post under our slug is not ours."""
    other = await ready(login, options={"slug": "harbour"})
    await WP.publish(http(), login, other)
    made = replace(await ready(login), options={"slug": "harbour"})
    assert await WP.find(http(), login, made, BEGINNING) is None
    receipt = await WP.publish(http(), login, made)
    assert running.log.effects("wordpress")[1].data["slug"] == "harbour-2"
    assert await WP.find(http(), login, made, BEGINNING) == receipt
    assert await WP.find(http(), login, made, BEGINNING, frozenset({receipt.remote_id})) is None


async def test_an_answer_with_notices_in_it(running: Sandbox, login: WordPressLogin) -> None:
    """A plugin that writes into every answer makes it unreadable, not untrue: the post is found when that is mended."""
    made = await ready(login)
    running.sites["wordpress"].switch("notices", on=True)
    with pytest.raises(NoAnswer):
        await WP.publish(http(), login, made)
    with pytest.raises(NotYet):
        await WP.find(http(), login, made, BEGINNING)
    running.sites["wordpress"].switch("notices", on=False)
    assert await WP.find(http(), login, made, BEGINNING)
    assert len(running.log.effects("wordpress")) == 1


@pytest.mark.parametrize("plain", [False, True])
async def test_the_way_in(running: Sandbox, *, plain: bool) -> None:
    """The password is tried at once, with or without its spaces; a site without pretty addresses works as well."""
    running.sites["wordpress"].switch("plain_addresses", on=plain)
    given_ = {
        "site": running.base_url("wordpress") + "/",
        "username": "painter",
        "app_password": " ".join(APP_PASSWORD[at : at + 4] for at in range(0, 24, 4)),
        "most_bytes": "5000000",
    }
    login = await WP.begin(http(), given_, "")
    assert isinstance(login, WordPressLogin)
    assert login.most_bytes == 5_000_000
    assert WP.limits_for(login).bytes == 5_000_000
    made = await ready(login)
    receipt = await WP.publish(http(), login, made)
    assert await WP.find(http(), login, made, BEGINNING) == receipt
    with pytest.raises(SignInAgain):
        await WP.begin(http(), {**given_, "app_password": "wrong"}, "")
    for bad in ("", "ftp://x", "https://u:p@x"):
        with pytest.raises(Refused):
            await WP.begin(Recorded(), {**given_, "site": bad}, "")
    with pytest.raises(Refused) as nowhere:
        await WP.begin(Recorded(answer({}, 404), answer({"hello": 1})), {**given_, "site": "https://x.test"}, "")
    assert nowhere.value.code == "wordpress.no_site"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(400, "rest_invalid_param", Refused), (401, "rest_not_logged_in", SignInAgain),
     (403, "rest_cannot_create", Refused), (413, "rest_upload_too_large", Refused),
     (429, "", RateLimited), (403, "", NoAnswer), (404, "Nicht da!", NoAnswer),
     (500, "db_insert_error", NoAnswer), (200, "", NoAnswer), (301, "", NoAnswer)],
)  # fmt: skip
async def test_each_answer_means_one_thing(status: int, code: str, kind: type[Failure]) -> None:
    """Errors are told apart by status and code; a page of some firewall says nothing about the post."""
    said = answer({"code": code, "message": "secret text", "data": {"status": status}}, status)
    with pytest.raises(Failure) as seen:
        await WP.publish(Recorded(said), LOGIN, work(files=(), tags=()))
    assert type(seen.value) is kind
    assert "secret text" not in str(seen.value)


async def test_nothing_is_sent_half_prepared() -> None:
    """Files and terms come first; a preview shows what is still to come."""
    with pytest.raises(NotYet):
        await WP.publish(Recorded(), LOGIN, work())
    with pytest.raises(NotYet):
        await WP.publish(Recorded(), LOGIN, work(files=()))
    upload, post = await WP.preview(LOGIN, work())
    assert (upload.known, post.known) == (True, False)
    codes = {each.code for each in WP.validate(LOGIN, work(title=" ", options={"slug": "Not A Slug", "x": 1}))}
    assert codes == {"fit.no_title", "fit.options"}
    with pytest.raises(Refused):
        await WP.publish(Recorded(), LOGIN, work(options={"x": 1}))
    plain = await WP.preview(LOGIN, work(tags=(), files=(), options={"featured": False, "imagesInContent": False}))
    assert [each.known for each in plain] == [True]
