"""What cannot go as it is, is refused over HTTP when it is planned; of many each by itself."""

from imprint.sandbox.server import sandbox
from tests.api.test_posts import SOON, draft
from tests.api.visitor import Town


async def test_what_does_not_fit_is_refused_at_once(at: Town) -> None:
    """Publish, schedule, batch and bulk say the same, and nothing of it is planned."""
    ada = await at.first()
    async with sandbox() as running:
        site = running.sites["bluesky"].answers(running.base_url("bluesky"), "painter")
        account = (await ada.post("/api/accounts", {"platform": "bluesky", "answers": site}, 201))["account"]["id"]
    good = await draft(ada)
    bad = await draft(ada, overrides={"bluesky": {"text": "x" * 301}})
    path = f"/api/posts/{bad}"
    for act, given in (("publish", {"accounts": [account]}), ("schedule", {"at": SOON})):
        assert await ada.refused("POST", f"{path}/{act}", given) == (422, "fit.long_text")
    many = {"posts": [good, bad], "everyMinutes": 5, "accounts": [account]}
    assert await ada.refused("POST", "/api/batches", many) == (422, "fit.long_text")
    assert (await ada.get(path))["status"] == "draft"
    for act, given in (("schedule", {"at": SOON}), ("publish", {"accounts": [account]})):
        told = await ada.post(f"/api/posts/bulk/{act}", {**given, "ids": [good, bad]})
        assert [each.get("code") for each in told["outcomes"]] == [None, "fit.long_text"]
    assert "301 graphemes" in told["outcomes"][1]["error"]


async def test_a_member_cannot_name_an_address_of_the_machine(at: Town) -> None:
    """Neither when it is connected nor when it is connected anew."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    secret = "whsec_" + "QUFB" * 8
    inside = {"url": "http://127.0.0.1:1/x", "secret": secret}
    assert await bob.refused("POST", "/api/accounts", {"platform": "webhook", "answers": inside}) == (
        422,
        "wire.address_not_allowed",
    )
    outside = {"url": "https://192.0.2.1/x", "secret": secret}
    refused = await bob.refused("POST", "/api/accounts", {"platform": "webhook", "answers": outside})
    assert refused == (422, "wire.address_not_allowed")  # for documents only: not public either
    outside["url"] = "https://9.9.9.9/x"
    made = await bob.post("/api/accounts", {"platform": "webhook", "answers": outside}, 201)
    again = f"/api/accounts/{made['account']['id']}/reconnect"
    assert await bob.refused("POST", again, {"answers": inside}) == (422, "wire.address_not_allowed")
    for path, given, field in (
        (again, {"answers": inside}, "answers"),
        ("/api/webhooks", {"url": inside["url"]}, "url"),
    ):
        assert (await bob.call("POST", path, given)).json()["field"] == field
        assert (await bob.call("POST", path, given, **{"Idempotency-Key": "once"})).json()["field"] == field
    assert (await ada.post("/api/accounts", {"platform": "webhook", "answers": inside}, 201))["account"]
