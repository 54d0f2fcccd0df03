"""The sandbox as a whole: a real server, connections that are really cut, and control from other processes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from imprint.engine.wire import Wire
from imprint.platforms.deviantart import DeviantArt
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.failure import NoAnswer, SignInAgain
from imprint.platforms.webhook import Webhook, WebhookLogin
from imprint.sandbox.faults import Fault
from imprint.sandbox.server import Sandbox, sandbox
from tests.platforms.works import picture, work


@pytest.fixture
async def running() -> AsyncIterator[Sandbox]:
    """Give a sandbox."""
    async with sandbox() as one:
        yield one


@pytest.fixture
async def browser(running: Sandbox) -> AsyncIterator[httpx2.AsyncClient]:
    """Give somebody who looks at the sandbox from outside."""
    async with httpx2.AsyncClient(base_url=running.url, trust_env=False) as one:
        yield one


async def raw(running: Sandbox, request: bytes) -> bytes:
    """Send bytes and give everything that comes back."""
    host, port = running.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()


async def test_a_cut_is_a_tcp_reset(running: Sandbox) -> None:
    """The client's kernel says that the connection was reset; it did not simply end."""
    running.login("webhook", "artist")
    for does in (Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.RESET_DURING):
        running.faults.next(does)
        with pytest.raises(ConnectionResetError):
            await raw(running, b"POST /webhook/artist HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")


async def test_half_an_answer_is_really_half(running: Sandbox) -> None:
    """The status says 200, and the body breaks off."""
    running.faults.next(Fault.HALF_ANSWER)
    host, port = running.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /webhook/nobody HTTP/1.1\r\nHost: x\r\n\r\n")
    top = await reader.readuntil(b"\r\n\r\n")
    assert b"content-length: 28" in top.lower()
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(28)
    writer.close()


async def test_control_from_another_process(browser: httpx2.AsyncClient) -> None:
    """Accounts, faults, switches and the log are all there over HTTP."""
    told = (await browser.post("/_sandbox/accounts", json={"site": "webhook", "name": "artist"})).json()
    login = WebhookLogin.model_validate(told["login"])
    rule = {"does": "reset_after", "site": "webhook", "times": 1}
    assert (await browser.post("/_sandbox/faults", json=[rule])).status_code == 200
    made = work()
    with pytest.raises(NoAnswer):
        await Webhook().publish(Wire().within(5), login, made)
    switch = {"site": "webhook", "name": "deduplicates", "on": False}
    assert (await browser.post("/_sandbox/switches", json=switch)).status_code == 200
    await Webhook().publish(Wire().within(5), login, made)
    log = (await browser.get("/_sandbox/log", params={"what": "publish"})).json()
    assert [each["data"]["key"] for each in log] == [made.key, made.key]
    later = (await browser.get("/_sandbox/log", params={"after": log[0]["number"]})).json()
    assert later[-1] == log[-1]
    await browser.post("/_sandbox/faults", json={"does": "rate_limit", "times": None})
    assert (await browser.delete("/_sandbox/faults")).status_code == 200
    await Webhook().publish(Wire().within(5), login, work())


async def test_tokens_are_spoilt_from_another_process(browser: httpx2.AsyncClient) -> None:
    """An access token can be let expire and a refresh token be burnt over HTTP."""
    told = (await browser.post("/_sandbox/accounts", json={"site": "deviantart", "name": "artist"})).json()
    login = DeviantArtLogin.model_validate(told["login"])
    spoil = {"site": "deviantart", "account": "artist", "token": "access"}
    assert (await browser.post("/_sandbox/tokens", json=spoil)).status_code == 200
    with pytest.raises(SignInAgain):
        await DeviantArt().check(Wire().within(5), login, work())
    login = await DeviantArt().renew(Wire().within(5), login)
    assert (await browser.post("/_sandbox/tokens", json={**spoil, "token": "refresh"})).status_code == 200
    with pytest.raises(SignInAgain):
        await DeviantArt().renew(Wire().within(5), login)
    assert (await browser.post("/_sandbox/tokens", json={**spoil, "token": "both"})).status_code == 400
    assert (await browser.post("/_sandbox/tokens", json={**spoil, "site": "webhook"})).status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/_sandbox/faults", b"{", 400),
        ("POST", "/_sandbox/faults", b'{"does":"explode"}', 400),
        ("POST", "/_sandbox/switches", b'{"site":"x","name":"y","on":true}', 400),
        ("POST", "/_sandbox/switches", b'{"site":"webhook","name":"y","on":true}', 400),
        ("POST", "/_sandbox/accounts", b"[]", 400),
        ("GET", "/_sandbox/log?after=x", b"", 400),
        ("GET", "/nothing", b"", 404),
        ("PUT", "/", b"", 404),
    ],
)
async def test_bad_control_is_refused(
    browser: httpx2.AsyncClient, method: str, path: str, body: bytes, status: int
) -> None:
    """A mistake is an answer, not a crash."""
    assert (await browser.request(method, path, content=body)).status_code == status


async def test_the_page_shows_what_arrived(running: Sandbox, browser: httpx2.AsyncClient) -> None:
    """Titles are shown as text, pictures as pictures, and duplicates are counted."""
    assert "Nothing yet." in (await browser.get("/")).text
    login = DeviantArtLogin.model_validate_json(running.login("deviantart", "artist"))
    made = work(title="<script>alert(1)</script>")
    remote = await DeviantArt().upload(Wire().within(5), login, made, made.files[0], lambda _: None)
    await DeviantArt().publish(Wire().within(5), login, made.with_upload(remote))
    page = await browser.get("/")
    assert "&lt;script&gt;" in page.text
    assert "<script>" not in page.text
    assert "1 published here, 0 of them more than once" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    shown = await browser.get(f"/deviantart/picture/{made.files[0].sha256}")
    assert shown.headers["content-type"] == "image/png"
    assert len(shown.content) == made.files[0].size
    running.sites["deviantart"].switch("refuses_second_publish", on=False)
    await DeviantArt().publish(Wire().within(5), login, made.with_upload(remote))
    assert "2 published here, 1 of them more than once" in (await browser.get("/")).text


async def test_no_secret_gets_into_the_log(running: Sandbox) -> None:
    """The oracle can be shown to anybody."""
    login = DeviantArtLogin.model_validate_json(running.login("deviantart", "artist"))
    fresh = await DeviantArt().renew(Wire().within(5), login)
    await DeviantArt().check(Wire().within(5), fresh, work())
    secrets = [
        each.get_secret_value()
        for one in (login, fresh)
        for each in (one.access_token, one.refresh_token, one.client_secret)
        if each
    ]
    text = json.dumps([dict(each.data) for each in running.log.entries()])
    assert not any(secret in text for secret in secrets)


async def test_a_log_on_disk(tmp_path: Path) -> None:
    """The log of a sandbox with a file is there for the next one."""
    path = tmp_path / "log.jsonl"
    made = work()
    async with sandbox(log=path) as running:
        login = WebhookLogin.model_validate_json(running.login("webhook", "artist"))
        await Webhook().publish(Wire().within(5), login, made)
    async with sandbox(log=path) as running:
        assert [each.data["key"] for each in running.log.effects()] == [made.key]


async def test_other_applications_beside_it() -> None:
    """The simulated sources can be served at the same address."""

    async def other(scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    async with sandbox(beside={"feeds": other}) as running, httpx2.AsyncClient(trust_env=False) as browser:
        assert (await browser.get(f"{running.url}/feeds/1.rss")).text == "/feeds/1.rss"
        assert (await browser.get(f"{running.url}/")).status_code == 200


async def test_many_at_once(running: Sandbox) -> None:
    """Two hundred publishes by twenty accounts at the same time are two hundred effects, each once."""
    logins = [
        DeviantArtLogin.model_validate_json(running.login("deviantart", f"artist-{number}")) for number in range(20)
    ]
    gate = asyncio.Semaphore(20)

    async def one(number: int) -> str:
        async with gate:
            made = work(files=(picture(2_000, seed=number),))
            login = logins[number % 20]
            remote = await DeviantArt().upload(Wire().within(30), login, made, made.files[0], lambda _: None)
            return (await DeviantArt().publish(Wire().within(30), login, made.with_upload(remote))).remote_id

    receipts = await asyncio.gather(*map(one, range(200)))
    assert sorted(receipts) == sorted(str(each.data["remote_id"]) for each in running.log.effects())
    assert len({each.data["key"] for each in running.log.effects()}) == 200
