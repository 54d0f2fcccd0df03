"""Accounts over HTTP: connected at once or by way of a browser; secrets go in and never come out."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from imprint.sandbox.deviantart_tokens import CLIENT_ID, CLIENT_SECRET
from imprint.sandbox.server import sandbox
from tests.api.visitor import Town

SECRET = "whsec_Y2FuYXJ5LW9mLXRoZS12YXVsdC1jYW5hcnktb2Y="  # noqa: S105 - a canary
HOOK = {"platform": "webhook", "answers": {"url": "https://hooks.example/imprint", "secret": SECRET}}


async def test_an_account_is_connected_and_looked_after(at: Town) -> None:
    """Connect, default, disable, enable, connect anew, remove; each answer says which moves are open."""
    ada = await at.first()
    answer = await ada.call("POST", "/api/accounts", {**HOOK, "label": "my site"}, **{"Idempotency-Key": "k"})
    assert answer.status_code == 201
    made = answer.json()["account"]
    assert (made["label"], made["status"], made["isDefault"]) == ("my site", "connected", True)
    assert [each["name"] for each in made["moves"]] == ["disable", "reconnect", "remove"]
    assert SECRET not in answer.text
    path = f"/api/accounts/{made['id']}"
    assert (await ada.post(f"{path}/disable"))["status"] == "disabled"
    assert await ada.refused("POST", f"{path}/disable") == (409, "account.disabled")
    assert (await ada.post(f"{path}/enable"))["status"] == "connected"
    assert (await ada.post(f"{path}/default"))["isDefault"]
    again = await ada.post(f"{path}/reconnect", {"answers": HOOK["answers"]})
    assert again["account"]["id"] == made["id"]
    assert [each["id"] for each in (await ada.get("/api/accounts"))["items"]] == [made["id"]]
    gone = await ada.delete(f"{path}?cancelWaiting=true", 200)
    assert gone == {"revoked": False, "trouble": None}
    assert await ada.refused("GET", path) == (404, "account.missing")


async def test_what_a_platform_asks_for_is_told_and_wanted(at: Town) -> None:
    """An unknown platform, an unknown answer, a missing one and a bad one are each named, without the secret."""
    ada = await at.first()
    asks = {each["name"]: each["asks"] for each in (await ada.get("/api/accounts/platforms"))["items"]}
    assert {each["name"]: each["secret"] for each in asks["webhook"]} == {"url": True, "secret": True}
    for given, code, field in (
        ({"platform": "nowhere"}, "account.no_platform", "platform"),
        ({"platform": "webhook", "answers": {"x": SECRET}}, "account.unknown_answer", "answers"),
        ({"platform": "webhook"}, "account.no_answer", "answers"),
        ({"platform": "webhook", "answers": {"url": "nonsense", "secret": SECRET}}, "webhook.bad_address", None),
        ({"platform": "webhook", "answers": {"url": SECRET * 1000, "secret": "x"}}, "request.invalid", None),
    ):
        answer = await ada.call("POST", "/api/accounts", given)
        assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
        assert SECRET not in answer.text
        if field:
            assert answer.json()["field"] == field


async def test_only_an_administrator_reaches_into_the_machine(at: Town, tmp_path: Path) -> None:
    """A folder of the server is for whoever looks after it."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    folder = {"platform": "folder", "answers": {"folder": str(tmp_path)}}
    assert await bob.refused("POST", "/api/accounts", folder) == (403, "account.administrators_only")
    assert "folder" not in {each["name"] for each in (await bob.get("/api/accounts/platforms"))["items"]}
    await ada.post("/api/accounts", folder, 201)


async def test_a_person_goes_to_a_platform_and_comes_back(at: Town) -> None:
    """The address leads there and back to us; the browser that comes back connects the account of its own person."""
    async with sandbox() as running:
        base = running.base_url("deviantart")
        ada = await at.first()
        bob = await at.invited(ada, "bob")
        answers = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "base_url": base}
        given = {"platform": "deviantart", "label": "gallery", "answers": answers}
        answer = await ada.call("POST", "/api/accounts", given)
        assert answer.status_code == 202, answer.text
        assert CLIENT_SECRET not in answer.text
        async with httpx2.AsyncClient(trust_env=False) as browser:
            back = (await browser.get(answer.json()["url"] + "&as=painter")).headers["location"]
        assert back.startswith(f"{at.url}/accounts/return?")
        there = back.removeprefix(at.url)
        stranger = await bob.http.get(there)
        assert (stranger.status_code, "does not belong" in stranger.text) == (400, True)
        nobody = await (await at.visitor()).http.get(there)
        assert (nobody.status_code, nobody.headers["location"][:14]) == (303, "/sign-in?next=")
        page = await ada.http.get(there)
        assert (page.status_code, "gallery is connected" in page.text) == (200, True)
        assert (await ada.http.get(there)).status_code == 400
        (account,) = (await ada.get("/api/accounts"))["items"]
        assert (account["platform"], account["status"]) == ("deviantart", "connected")
        again = await ada.post(f"/api/accounts/{account['id']}/reconnect", {"answers": answers}, 202)
        async with httpx2.AsyncClient(trust_env=False) as browser:
            back = (await browser.get(again["url"] + "&as=painter")).headers["location"]
        assert (await ada.post("/api/accounts/finish", {"returnedTo": back}))["id"] == account["id"]
        gone = {"returnedTo": f"{at.url}/accounts/return?state=nonsense"}
        assert await ada.refused("POST", "/api/accounts/finish", gone) == (422, "sign_in.not_begun")
        assert urlsplit(back).path == "/accounts/return"


async def test_what_was_answered_is_used_again_only_as_a_whole(at: Town) -> None:
    """Given nothing, an account signs in as before; given an address alone, the old secret is not sent there."""
    ada = await at.first()
    made = (await ada.post("/api/accounts", HOOK, 201))["account"]["id"]
    path = f"/api/accounts/{made}/reconnect"
    assert (await ada.post(path, {}))["account"]["id"] == made
    elsewhere = {"answers": {"url": "https://elsewhere.example/"}}
    assert await ada.refused("POST", path, elsewhere) == (422, "account.no_answer")


async def test_a_member_does_not_reach_into_the_network_of_the_machine(at: Town) -> None:
    """Whom a member names must be somewhere else: the machine's own network is not asked."""
    async with sandbox() as running:
        ada = await at.first()
        bob = await at.invited(ada, "bob")
        answers = {
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "base_url": running.base_url("deviantart"),
        }
        begun = await bob.call("POST", "/api/accounts", {"platform": "deviantart", "answers": answers})
        if begun.status_code == 202:
            async with httpx2.AsyncClient(trust_env=False) as browser:
                back = (await browser.get(begun.json()["url"] + "&as=painter")).headers["location"]
            told = await bob.refused("POST", "/api/accounts/finish", {"returnedTo": back})
        else:
            told = (begun.status_code, begun.json()["code"])
        assert told[0] in {422, 424}, told
        assert (await bob.get("/api/accounts"))["items"] == []
