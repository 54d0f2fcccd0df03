"""Batches over HTTP: planned in order, paused, put into another order, stopped and deleted; nobody else's."""

from uuid import uuid4

from tests.api.visitor import Town
from tests.work.posts import Author


async def test_a_batch_from_its_plan_to_its_end(at: Town) -> None:
    """Each answer says how it stands, when each of its publications goes and which moves are open."""
    ada = await at.first()
    author = Author(at.database, "operator")
    account = str(await author.account(default=True))
    posts = [str(await author.draft(title=f"Part {number}")) for number in range(1, 4)]
    made = await ada.post("/api/batches", {"posts": posts, "everyMinutes": 30}, 201)
    assert (made["state"], made["everyMinutes"], made["publications"], made["waiting"]) == ("waits", 30, 3, 3)
    assert [(each["place"], each["postId"], each["accountId"]) for each in made["members"]] == [
        (place, post, account) for place, post in enumerate(posts, 1)
    ]
    assert [each["name"] for each in made["moves"]] == ["pause", "arrange", "stop", "delete"]
    path = f"/api/batches/{made['id']}"
    paused = await ada.post(f"{path}/pause")
    assert (paused["state"], paused["moves"][0]["name"]) == ("paused", "resume")
    arranged = await ada.post(f"{path}/arrange", {"order": [3, 1, 2]})
    assert [each["postId"] for each in arranged["members"]] == [posts[2], posts[0], posts[1]]
    assert await ada.refused("POST", f"{path}/arrange", {"order": [3, 3]}) == (422, "batch.bad_order")
    assert (await ada.post(f"{path}/resume"))["paused"] is False
    (in_list,) = (await ada.get("/api/batches"))["items"]
    assert (in_list["id"], in_list["state"]) == (made["id"], "waits")
    assert len((await ada.post(f"{path}/stop"))["cancelled"]) == 3
    over = await ada.get(path)
    assert (over["state"], over["cancelled"], [each["name"] for each in over["moves"]]) == ("over", 3, ["delete"])
    assert await ada.refused("POST", f"{path}/stop") == (409, "batch.over")
    assert (await ada.delete(path, 200))["cancelled"] == []
    assert await ada.refused("GET", path) == (404, "batch.missing")


async def test_pages_of_batches_follow_each_other(at: Town) -> None:
    """Every batch is on one page, the newest first."""
    ada = await at.first()
    author = Author(at.database, "operator")
    await author.account(default=True)
    made = [
        (await ada.post("/api/batches", {"posts": [str(await author.draft())], "everyMinutes": 0}, 201))["id"]
        for _ in range(5)
    ]
    found: list[str] = []
    page = await ada.get("/api/batches?limit=2")
    while True:
        found += [each["id"] for each in page["items"]]
        if page["next"] is None:
            break
        page = await ada.get(f"/api/batches?limit=2&cursor={page['next']}")
    assert found == made[::-1]


async def test_what_is_no_batch_is_refused(at: Town) -> None:
    """The field at fault is named, and nothing is planned."""
    ada = await at.first()
    author = Author(at.database, "operator")
    await author.account(default=True)
    post = str(await author.draft())
    for given, code, field in (
        ({"posts": [], "everyMinutes": 1}, "request.invalid", "posts"),
        ({"posts": [post], "everyMinutes": 1441}, "request.invalid", "everyMinutes"),
        ({"posts": [post, post], "everyMinutes": 1}, "batch.post_twice", "posts"),
        ({"posts": [post], "everyMinutes": 1, "at": "soon"}, "schedule.bad_time", "at"),
        ({"posts": [post], "everyMinutes": 1, "zone": "Nowhere/Else"}, "schedule.no_zone", "zone"),
    ):
        answer = await ada.call("POST", "/api/batches", given)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field)
    lost = {"posts": [post, str(uuid4())], "everyMinutes": 1}
    assert await ada.refused("POST", "/api/batches", lost) == (404, "post.missing")
    assert (await ada.get(f"/api/posts/{post}"))["status"] == "draft"


async def test_nobody_touches_the_batch_of_somebody_else(at: Town) -> None:
    """It is not there, and stays as it is."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    author = Author(at.database, "operator")
    await author.account(default=True)
    posts = [str(await author.draft()) for _ in range(2)]
    made = await ada.post("/api/batches", {"posts": posts, "everyMinutes": 5}, 201)
    path = f"/api/batches/{made['id']}"
    for method, end in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/stop")):
        assert await bob.refused(method, path + end) == (404, "batch.missing")
    assert await bob.refused("POST", f"{path}/arrange", {"order": [1, 2]}) == (404, "batch.missing")
    assert (await bob.refused("POST", "/api/batches", {"posts": posts, "everyMinutes": 5}))[0] in {404, 422}
    assert (await bob.get("/api/batches"))["items"] == []
    assert (await ada.get(path))["waiting"] == 2
