"""Posts over HTTP: from the first word to the schedule, page by page, once each, and nobody else's."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from tests.api.visitor import Town, Visitor
from tests.work.posts import Author

SOON = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0).isoformat()


async def draft(who: Visitor, **fields: Any) -> str:
    """Write an article that is ready."""
    given = {"title": "On light", "kind": "article", "body": "Words.", **fields}
    post: str = (await who.post("/api/posts", given, 201))["id"]
    await who.post(f"/api/posts/{post}/ready")
    return post


async def test_a_post_from_its_first_word_to_its_schedule_and_back(at: Town) -> None:
    """Write, change, declare ready, schedule, move, unschedule, copy and delete; each answer says what comes next."""
    ada = await at.first()
    author = Author(at.database, "operator")
    account = str(await author.account(default=True))
    made = await ada.post("/api/posts", {"title": "A lighthouse", "tags": ["sea"], "zone": "Europe/Berlin"}, 201)
    assert (made["status"], made["tags"], made["moves"][0]["name"]) == ("review", ["sea"], "ready")
    path = f"/api/posts/{made['id']}"
    changed = await ada.patch(path, {"title": "A lighthouse at dusk", "revision": made["revision"]})
    assert changed["title"] == "A lighthouse at dusk"
    assert await ada.refused("PATCH", path, {"title": "x", "revision": made["revision"]}) == (409, "post.changed")
    assert await ada.refused("POST", f"{path}/ready") == (409, "post.no_file")
    content = str(await author.content())
    (file,) = (await ada.post(f"{path}/files", {"contentId": content, "alt": "A tower."}, 201))["items"]
    assert (file["contentId"], file["confirmed"]) == (content, True)
    assert (await ada.post(f"{path}/ready"))["status"] == "draft"
    planned = await ada.post(f"{path}/schedule", {"at": "2099-05-01T18:00"}, 422)
    assert (planned["code"], planned["field"]) == ("schedule.too_far", "at")
    planned = await ada.post(f"{path}/schedule", {"at": SOON})
    (publication,) = planned["publications"]
    assert (planned["status"], publication["accountId"], publication["zone"]) == ("scheduled", account, "Europe/Berlin")
    later = (datetime.fromisoformat(SOON) + timedelta(days=1)).isoformat()
    moved = await ada.post(f"{path}/reschedule", {"at": later})
    assert moved["publications"][0]["id"] == publication["id"]
    since, until_ = SOON.partition("T")[0], (datetime.fromisoformat(SOON) + timedelta(days=3)).date().isoformat()
    seen = await ada.get(f"/api/calendar?from={since}&until={until_}")
    assert [each["postId"] for each in seen["items"]] == [made["id"]]
    assert (await ada.post(f"{path}/unschedule"))["status"] == "draft"
    copy = await ada.post(f"{path}/duplicate", code=201)
    assert (copy["status"], copy["title"]) == ("review", "A lighthouse at dusk")
    history = [(each["lifecycle"], each["move"]) for each in (await ada.get(f"{path}/history"))["items"]]
    assert history[:3] == [("post", "create"), ("post", "approve"), ("publication", "create")]
    page = await ada.get(f"/api/audit?row={made['id']}&limit=2")
    assert [each["move"] for each in page["items"]] == ["unschedule", "schedule"]
    older = await ada.get(f"/api/audit?row={made['id']}&before={page['next']}")
    assert ([each["move"] for each in older["items"]], older["next"]) == (["approve", "create"], None)
    await ada.delete(path)
    assert await ada.refused("GET", path) == (404, "post.missing")
    assert await ada.get("/api/posts/counts") == {"review": 1}


async def test_pages_follow_each_other_and_filters_hold(at: Town) -> None:
    """Every post is on one page, the newest first; by state, kind and words fewer are there."""
    ada = await at.first()
    for number in range(5):
        await ada.post("/api/posts", {"title": f"Picture {number}"}, 201)
    article = await draft(ada)
    titles: list[str] = []
    page = await ada.get("/api/posts?limit=2")
    while True:
        titles += [each["title"] for each in page["items"]]
        assert all(each["moves"] for each in page["items"])
        if page["next"] is None:
            break
        page = await ada.get(f"/api/posts?limit=2&cursor={page['next']}")
    assert titles == ["On light", *[f"Picture {number}" for number in range(4, -1, -1)]]
    for query in ("status=draft", "kind=article", "text=ON+LIGHT"):
        assert [each["id"] for each in (await ada.get(f"/api/posts?{query}"))["items"]] == [article]
    assert (await ada.get(f"/api/posts?account={uuid4()}"))["items"] == []
    for bad in ("x", "A" * 31, "%00", "=" * 32, "f" * 32):
        assert (await ada.refused("GET", f"/api/posts?cursor={bad}"))[0] == 422
    for bad in ("limit=0", "limit=201", "limit=x", "status=nowhere", "text=%00"):
        assert await ada.refused("GET", f"/api/posts?{bad}") == (422, "request.invalid")


async def test_many_posts_each_by_itself(at: Town) -> None:
    """What goes wrong with one is said of that one, and the others go on."""
    ada = await at.first()
    await Author(at.database, "operator").account(default=True)
    good, other = await draft(ada), await draft(ada)
    lost = str(uuid4())
    told = (await ada.post("/api/posts/bulk/schedule", {"ids": [good, lost, other], "at": SOON}))["outcomes"]
    assert [(each["id"], each["ok"], each["code"]) for each in told] == [
        (good, True, None),
        (lost, False, "post.missing"),
        (other, True, None),
    ]
    for move in ("reschedule", "unschedule", "duplicate", "reopen", "ready", "publish", "cancel", "delete"):
        given = {"ids": [good, other], **({"at": SOON} if move == "reschedule" else {})}
        told = (await ada.post(f"/api/posts/bulk/{move}", given))["outcomes"]
        assert [each["ok"] for each in told] == [True, True], (move, told)
    assert (await ada.post("/api/posts/bulk/retry", {"ids": [good]}))["outcomes"][0]["code"] == "post.missing"


async def test_the_files_of_a_post(at: Town) -> None:
    """Attach, put in order, describe, take off."""
    ada = await at.first()
    author = Author(at.database, "operator")
    post = (await ada.post("/api/posts", {"title": "Two"}, 201))["id"]
    path = f"/api/posts/{post}/files"
    for _ in range(2):
        items = (await ada.post(path, {"contentId": str(await author.content())}, 201))["items"]
    first, second = (each["id"] for each in items)
    items = (await ada.put(path, {"files": [second, first]}))["items"]
    assert [each["id"] for each in items] == [second, first]
    assert await ada.refused("PUT", path, {"files": [first]}) == (422, "post.wrong_order")
    assert (await ada.patch(f"{path}/{first}", {"alt": "A tower."}))["items"][1]["alt"] == "A tower."
    assert [each["id"] for each in (await ada.delete(f"{path}/{first}", 200))["items"]] == [second]
    assert await ada.refused("DELETE", f"{path}/{first}") == (404, "post.no_such_file")


async def test_what_is_wrong_is_named(at: Town) -> None:
    """The answer says which field, in a sentence, and repeats nothing of what was sent."""
    ada = await at.first()
    wrong: list[tuple[object, str]] = [
        ({"title": "x" * 501}, "title"),
        ({"title": "a\x00b"}, "title"),
        ({"tags": "sea"}, "tags"),
        ({"nonsense": 1}, "nonsense"),
        ({"is_mature": True}, "is_mature"),
        ({"zone": "../../etc/passwd"}, "zone"),
        ({"displayResolution": 10**30}, "displayResolution"),
        ({"overrides": {"nowhere": {}}}, "overrides"),
        ([1], "body"),
    ]
    for given, field in wrong:
        answer = await ada.call("POST", "/api/posts", given)
        assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
        assert answer.json()["field"] == field
        assert "x" * 501 not in answer.text
    answer = await ada.call("POST", "/api/posts", {"matureLevel": "strict"})
    assert (answer.status_code, answer.json()["code"]) == (422, "post.invalid")


async def test_the_same_request_is_done_once(at: Town) -> None:
    """With a key of its own a request gets the answer it got, alone or in a crowd; another request may not use it."""
    ada = await at.first()
    key = {"Idempotency-Key": "a-key"}
    first = await ada.call("POST", "/api/posts", {"title": "Once"}, **key)
    again = await ada.call("POST", "/api/posts", {"title": "Once"}, **key)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (None, "true")
    assert await ada.refused("POST", "/api/posts", {"title": "Twice"}, **key) == (422, "idempotency.other_request")
    other = await at.invited(ada, "grace")
    assert (await other.call("POST", "/api/posts", {"title": "Mine"}, **key)).status_code == 201
    crowd = await asyncio.gather(
        *(ada.call("POST", "/api/posts", {"title": "Crowd"}, **{"Idempotency-Key": "crowd"}) for _ in range(20))
    )
    assert {each.status_code for each in crowd} <= {201, 409}
    assert len({each.json()["id"] for each in crowd if each.status_code == 201}) == 1
    assert len((await ada.get("/api/posts?text=Crowd"))["items"]) == 1
    # What came to nothing may be tried again with the same key.
    assert await ada.refused("POST", "/api/posts", {"nonsense": 1}, **{"Idempotency-Key": "b"}) == (
        422,
        "request.invalid",
    )
    assert (await ada.call("POST", "/api/posts", {"title": "Now"}, **{"Idempotency-Key": "b"})).status_code == 201
    for bad in ("", "x" * 201):
        assert await ada.refused("POST", "/api/posts", {}, **{"Idempotency-Key": bad}) == (400, "idempotency.bad_key")
