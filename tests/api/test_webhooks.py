"""Webhooks over HTTP: made, tried, changed and removed by whose they are, and their secret shown once."""

from tests.api.visitor import Town
from tests.work.readers import receiving


async def test_a_webhook_lives_its_life(at: Town) -> None:
    """Its address never comes out, its secret once; and it belongs to one person."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    with receiving() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/hook-of-ada"
        made = await ada.post("/api/webhooks", {"url": url, "events": ["failed"]}, 201)
        assert made["secret"].startswith("whsec_")
        path = f"/api/webhooks/{made['id']}"
        shown = await ada.get("/api/webhooks")
        assert [each["events"] for each in shown["items"]] == [["failed"]]
        assert "hook-of-ada" not in str(shown)
        assert made["secret"] not in str(shown)
        assert (await ada.post(f"{path}/test"))["sent"] is True
        assert receiver.heard[0]["type"] == "test"
        assert (await ada.patch(path, {"events": ["published", "chapter"]}))["events"] == ["published", "chapter"]
        assert (await ada.post(f"{path}/disable"))["disabled"] is True
        assert (await ada.post(f"{path}/enable"))["moves"][0]["name"] == "disable"
        turned = await ada.post(f"{path}/rotate")
        assert (turned["secret"] != made["secret"], turned["secret"][:6]) == (True, "whsec_")
        assert "rotate" in {each["name"] for each in turned["moves"]}
        assert (await ada.post(f"{path}/test"))["sent"] is True
        assert len(receiver.headers[-1]["webhook-signature"].split()) == 2
        assert turned["secret"] not in str(await ada.get("/api/webhooks"))
        receiver.status = 410
        assert await ada.refused("POST", f"{path}/test") == (424, "webhook.gone")
        assert (await ada.get(path))["disabled"] is True  # as the sentence says
        for method, where in (("GET", path), ("POST", f"{path}/test"), ("DELETE", path), ("POST", f"{path}/rotate")):
            assert await bob.refused(method, where) == (404, "webhook.missing")
        status, _ = await bob.refused("POST", "/api/webhooks", {"url": url})
        assert status in {409, 422}  # nobody but an administrator reaches into the machine
        assert (await ada.refused("POST", "/api/webhooks", {"url": "ftp://x"}))[0] == 422
        await ada.delete(path)
        assert await ada.get("/api/webhooks") == {"items": []}
