"""The town: platforms and sources at one address, faults that are written in a line, and pages for people."""

import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from imprint.engine.address import listen
from imprint.engine.wire import Wire
from imprint.platforms.deviantart import DeviantArt
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.failure import NoAnswer, RateLimited
from imprint.platforms.login import Errand
from imprint.platforms.registry import PLATFORMS
from imprint.platforms.webhook import Webhook, WebhookLogin
from imprint.problem import Problem
from imprint.sandbox.town import Town, town
from tests.platforms.works import work


@pytest.fixture
async def running() -> AsyncIterator[Town]:
    """Give a town."""
    async with town(listen("127.0.0.1", 0)) as one:
        yield one


@pytest.fixture
async def browser(running: Town) -> AsyncIterator[httpx2.AsyncClient]:
    """Give somebody who looks at the town from outside."""
    async with httpx2.AsyncClient(base_url=running.url, trust_env=False) as one:
        yield one


def answers(command: str) -> dict[str, str]:
    """Read what an `imprint account add` line gives."""
    parts = shlex.split(command)
    return dict(parts[at + 1].split("=", 1) for at, part in enumerate(parts) if part == "--set")


def signs(running: Town) -> dict[str, str]:
    """Give the signs by their names."""
    return {sign.name: sign.text for sign in running.signs}


async def test_everything_is_at_one_address(running: Town, browser: httpx2.AsyncClient) -> None:
    """Platforms, sources, their two controls and the page do not get into each other's way."""
    found = signs(running)
    feed, series = (found[name].removeprefix("imprint series add ") for name in ("feed", "mangadex"))
    assert "<rss" in (await browser.get(feed)).text
    id_ = series.removeprefix("mangadex:")
    assert len((await browser.get(f"/mangadex/manga/{id_}/feed")).json()["data"]) == 12
    asked = {"query": "get_comicChapterList", "variables": {"comicId": "1"}}
    listed = (await browser.post(found["mangapark"], json=asked)).json()["data"]["get_comicChapterList"]
    assert len(listed) == 12
    assert (await browser.post("/sandbox/series", json={"title": "Another", "chapters": 2})).status_code == 201
    assert "Another" in (await browser.get("/feeds/2.atom")).text
    assert (await browser.get(found["gallery"])).status_code == 200
    assert (await browser.get(found["log"])).json() == []  # the sources keep a log of their own
    assert len((await browser.get("/sandbox/log")).json()) == 4


async def test_one_who_has_signed_in_is_not_asked(running: Town, browser: httpx2.AsyncClient) -> None:
    """The address on the sign leads through the whole sign-in without a page in between."""
    given = answers(signs(running)["deviantart"])
    errand = await DeviantArt().begin(Wire().within(5), given, "http://127.0.0.1:1/back")
    assert isinstance(errand, Errand)
    sent = await browser.get(errand.url, follow_redirects=False)
    login = await DeviantArt().finish(Wire().within(5), errand, sent.headers["location"])
    assert login.name == "painter"
    await DeviantArt().check(Wire().within(5), login, work())
    asked = await browser.get(errand.url.replace("/~painter", ""), follow_redirects=False)
    assert (asked.status_code, "Who are you?" in asked.text) == (200, True)


@pytest.mark.parametrize("name", ["bluesky", "mastodon", "wordpress"])
async def test_each_sign_leads_to_an_account(running: Town, browser: httpx2.AsyncClient, name: str) -> None:
    """What a sign says connects an account that can publish, and the work has a page there."""
    of, http = PLATFORMS[name], Wire().within(10)
    given = {ask.name: ask.default or "" for ask in of.asks} | answers(signs(running)[name])
    login = await of.begin(http, given, "http://127.0.0.1:1/back")
    if isinstance(login, Errand):
        sent = await browser.get(login.url, follow_redirects=False)
        login = await of.finish(http, login, sent.headers["location"])
    assert "painter" in login.name
    made = work(title="<b>Bold</b>")
    made = made.with_upload(await of.upload(http, login, made, made.files[0], lambda _: None))
    receipt = await of.publish(http, login, await of.prepare(http, login, made))
    where = running.sandbox.log.effects(name)[0].data["url"]
    page = (await browser.get(str(where))).text
    assert "&lt;b&gt;Bold&lt;/b&gt;" in page
    assert made.files[0].sha256 in page
    assert receipt.url
    assert str(where) in (await browser.get("/")).text


async def test_a_work_has_a_page(running: Town, browser: httpx2.AsyncClient) -> None:
    """The address that a publish gives can be looked at, and what was written is text there."""
    login = DeviantArtLogin.model_validate_json(running.sandbox.login("deviantart", "painter"))
    made = work(title="<b>Bold</b>")
    remote = await DeviantArt().upload(Wire().within(5), login, made, made.files[0], lambda _: None)
    receipt = await DeviantArt().publish(Wire().within(5), login, made.with_upload(remote))
    assert receipt.url
    page = await browser.get(receipt.url)
    assert "&lt;b&gt;Bold&lt;/b&gt;" in page.text
    assert made.files[0].sha256 in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert (await browser.get(f"{receipt.url}0")).status_code == 404
    gallery = (await browser.get("/")).text
    assert receipt.url in gallery
    assert ">twice<" not in gallery
    running.sandbox.sites["deviantart"].switch("refuses_second_publish", on=False)
    await DeviantArt().publish(Wire().within(5), login, made.with_upload(remote))
    assert (await browser.get("/")).text.count(">twice<") == 2


async def test_faults_in_a_line(tmp_path: Path) -> None:
    """Each kind of rule is read: how often, how long, where; also one for a source."""
    faults = [
        "rate_limit,site=webhook,times=1,retry_after=7",
        "reset_after,path=/receiver,times=always",
        "status,site=feeds,path=/1,times=1,status=503",
    ]
    log = tmp_path / "log"
    async with town(listen("127.0.0.1", 0), log=log, faults=faults) as running:
        login = WebhookLogin.model_validate({"name": "x", **answers(signs(running)["webhook"])})
        with pytest.raises(RateLimited) as told:
            await Webhook().publish(Wire().within(5), login, work())
        assert told.value.after is not None
        assert told.value.after.total_seconds() == 7
        for _ in range(3):
            with pytest.raises(NoAnswer):
                await Webhook().publish(Wire().within(5), login, work())
        async with httpx2.AsyncClient(base_url=running.url, trust_env=False) as browser:
            assert [(await browser.get("/feeds/1.rss")).status_code for _ in range(2)] == [503, 200]
            assert "Made to go wrong: " in (await browser.get("/")).text
    assert log.read_text().count('"publish"') == 3
    assert (tmp_path / "log.sources").read_text().count("/feeds/1.rss") == 2


@pytest.mark.parametrize(
    "text", ["explode", "", "latency,seconds=long", "rate_limit,colour=red", "blank,site=feeds", "blank,times"]
)
async def test_a_fault_that_is_none(text: str) -> None:
    """A mistake is said before anything listens."""
    with listen("127.0.0.1", 0) as opened:
        with pytest.raises(Problem) as told:
            async with town(opened, faults=[text]):
                pass
        assert told.value.code == "sandbox.bad_fault"
