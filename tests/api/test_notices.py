"""Notices and targets over HTTP: read, muted, told at an address that goes in and never comes out."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from imprint.engine.queue import Job
from imprint.store.db import Database
from imprint.work import target as targets
from imprint.work.notify import Notifier
from imprint.work.vault import Vault
from tests.api.test_series import walked
from tests.api.visitor import Town, Visitor, town
from tests.work.readers import Receiver, receiving
from tests.work.serials import take_in

CANARY = "C4nary-of-the-vault"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Run somebody to tell."""
    with receiving() as running:
        yield running


@pytest.fixture
async def inside(database: Database, database_url: str, home: Path, receiver: Receiver) -> AsyncIterator[Town]:
    """Run the server with the operator's permission to tell the receiver, which is inside."""
    allowed = f"127.0.0.1:{receiver.port}"
    async with town(
        database, database_url, home, IMPRINT_ALLOWED_HOSTS=allowed, IMPRINT_NOTICE_WINDOW_SECONDS="0"
    ) as running:
        yield running


async def told(at: Town, who: Visitor, *chapters: str) -> str:
    """Let somebody follow a series, let news come, and give the series."""
    place = {"place": f"https://serials.example/{who.signed['name']}", "title": "Sea"}
    series: str = (await who.post("/api/series", place, 201))["id"]
    (source,) = (await who.get(f"/api/series/{series}/sources"))["items"]
    await take_in(at.database, UUID(series), UUID(source["id"]), chapters)
    return series


async def test_notices_are_read_and_muted(at: Town) -> None:
    """One by one, several, all; a page at a time; muted, the series is followed but tells no more."""
    ada = await at.first()
    series = await told(at, ada, "Chapter 1", "Chapter 2", "Chapter 3", "Chapter 4")
    notices = (await ada.get("/api/notices"))["items"]
    assert [each["label"] for each in notices] == ["Ch.4", "Ch.3", "Ch.2", "Ch.1"]
    assert await walked(ada, "/api/notices", 3) == notices
    assert [each["name"] for each in notices[0]["moves"]] == ["read", "mute"]
    assert await ada.get("/api/notices/counts") == {"notices": 4, "unread": 4}
    path = f"/api/notices/{notices[0]['id']}"
    assert (await ada.get(path)) == notices[0]
    seen = await ada.post(f"{path}/read")
    assert (seen["readAt"] is not None, [each["name"] for each in seen["moves"]]) == (True, ["mute"])
    ids = [each["id"] for each in notices[:2]]
    assert await ada.post("/api/notices/read", {"ids": ids}) == {"read": ids[1:]}
    assert len((await ada.get("/api/notices?unread=true"))["items"]) == 2
    await ada.post(f"{path}/mute")
    assert not (await ada.get(f"/api/series/{series}"))["notify"]
    assert len((await ada.post("/api/notices/read-all"))["read"]) == 2
    await ada.delete(f"/api/library/{series}")
    assert await ada.refused("POST", f"{path}/mute") == (409, "series.not_followed")
    for number in (0, 2**63):
        assert await ada.refused("POST", "/api/notices/read", {"ids": [number]}) == (422, "request.invalid")
    assert await ada.refused("POST", "/api/notices/read", {"ids": [ids[0], 2**62]}) == (404, "notice.missing")


async def test_notices_are_their_persons_own(at: Town) -> None:
    """Those of somebody else are not there, not even to be marked."""
    ada = await at.first()
    await told(at, ada, "Chapter 1")
    (notice,) = (await ada.get("/api/notices"))["items"]
    bob = await at.invited(ada, "bob")
    assert (await bob.get("/api/notices"))["items"] == []
    for method, path, data in (
        ("GET", f"/api/notices/{notice['id']}", None),
        ("POST", f"/api/notices/{notice['id']}/read", None),
        ("POST", f"/api/notices/{notice['id']}/mute", None),
        ("POST", "/api/notices/read", {"ids": [notice["id"]]}),
    ):
        assert await bob.refused(method, path, data) == (404, "notice.missing")
    assert await bob.post("/api/notices/read-all") == {"read": []}
    assert (await ada.get("/api/notices/counts"))["unread"] == 1


async def test_a_target_is_added_tried_and_looked_after(inside: Town, receiver: Receiver) -> None:
    """Its address is in no answer; what is wrong with it is a sentence; it is tried, muted, changed, removed."""
    ada = await inside.first()
    answer = await ada.call("POST", "/api/targets", {"url": f"{receiver.url}/{CANARY}", "label": "phone"})
    assert answer.status_code == 201, answer.text
    assert CANARY not in answer.text
    made = answer.json()
    assert (made["service"], made["digest"], made["muted"]) == ("JSON", "off", False)
    path = f"/api/targets/{made['id']}"
    assert await ada.post(f"{path}/test") == {"label": "phone", "sent": True}
    assert receiver.heard[0]["title"] == "Imprint"
    receiver.status = 500
    failed = await ada.call("POST", f"{path}/test")
    assert (failed.status_code, failed.json()["code"], CANARY in failed.text) == (424, "notice.not_sent", False)
    assert (await ada.patch(path, {"digest": "daily"}))["digest"] == "daily"
    muted = await ada.post(f"{path}/mute")
    assert (muted["muted"], muted["moves"][0]["name"]) == (True, "unmute")
    assert not (await ada.post(f"{path}/unmute"))["muted"]
    for url in (f"nowhere://{CANARY}", "x" * 5000, f"json://a\n{CANARY}"):
        bad = await ada.call("POST", "/api/targets", {"url": url})
        assert (bad.status_code, bad.json()["field"], CANARY in bad.text) == (422, "url", False), bad.text
    bob = await inside.invited(ada, "bob")
    for method, move in (("GET", ""), ("POST", "/test"), ("POST", "/mute"), ("POST", "/unmute"), ("DELETE", "")):
        assert await bob.refused(method, f"{path}{move}") == (404, "notice.no_target")
    assert (await bob.get("/api/targets"))["items"] == []
    await ada.delete(path)
    assert (await ada.get("/api/targets"))["items"] == []


async def test_a_member_is_not_told_inside_the_machines_network(inside: Town, receiver: Receiver) -> None:
    """Where the operator may be told, a member may not: neither to try it, nor by a worker, who tells the operator."""
    ada = await inside.first()
    bob = await inside.invited(ada, "bob")
    for who in (ada, bob):
        target = (await who.post("/api/targets", {"url": receiver.url}, 201))["id"]
        await told(inside, who, "Chapter 1")
    tried = await bob.call("POST", f"/api/targets/{target}/test")
    assert (tried.status_code, tried.json()["code"]) == (424, "notice.not_sent")
    assert "not public" in tried.json()["title"]
    assert "127.0.0.1" not in tried.text
    courier = targets.courier(inside.settings)
    notifier = Notifier(inside.database, Vault.of(inside.settings), courier, inside.settings)
    try:
        async with inside.database.connection() as connection:
            for row in await connection.fetch("SELECT id FROM series"):
                await notifier.notify(Job("notify", str(row["id"])))
            for row in await connection.fetch("SELECT id FROM delivery ORDER BY id"):
                await notifier.deliver(Job("deliver", str(row["id"])))
    finally:
        await courier.close()
    assert receiver.calls == 1
    assert "not public" in (await bob.get(f"/api/targets/{target}"))["lastError"]
    (heard,) = (await ada.get("/api/targets"))["items"]
    assert (heard["lastError"], heard["lastSentAt"] is not None) == (None, True)
