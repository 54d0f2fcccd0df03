"""Publications over HTTP: the log page by page, one with its attempts, tried again, and decided by a person."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from tests.api.visitor import Town, Visitor
from tests.work.posts import Author

URL = "https://gallery.example/art/1"


async def listed(who: Visitor, query: str = "") -> list[dict[str, Any]]:
    """Read every page of the log."""
    found: list[dict[str, Any]] = []
    page = await who.get(f"/api/publications?limit=2&{query}")
    while True:
        found += page["items"]
        if page["next"] is None:
            return found
        page = await who.get(f"/api/publications?limit=2&{query}&cursor={page['next']}")


async def doubtful(author: Author, **fields: Any) -> UUID:
    """Give a publication that nobody else can tell about."""
    publication = await author.publication(await author.brought("unknown", **fields))
    await author.read("UPDATE publication SET look_at = NULL, deadline = NULL WHERE id = $1", publication)
    return publication


async def test_the_log_is_read_page_by_page_and_filters_hold(at: Town) -> None:
    """Every publication is on one page, those due last first; nobody else's is on any."""
    ada = await at.first()
    author = Author(at.database, "operator")
    account = await author.account("gallery")
    posts = [await author.scheduled(account, timedelta(hours=hours), title=f"In {hours} h") for hours in (2, 3, 4)]
    failed = await author.brought("failed", title="Refused")
    await Author(at.database, "bob").scheduled(title="Bob's")
    everything = await listed(ada)
    assert [each["title"] for each in everything] == ["In 4 h", "In 3 h", "In 2 h", "Refused"]
    assert [each["id"] for each in await listed(ada, "status=failed")] == [everything[3]["id"]]
    assert [each["id"] for each in await listed(ada, "needsPerson=true")] == [everything[3]["id"]]
    assert len(await listed(ada, "needsPerson=false")) == 3
    assert len(await listed(ada, f"account={account}")) == 3
    assert len(await listed(ada, "platform=folder")) == 4
    assert await listed(ada, "platform=webhook") == []
    assert [each["postId"] for each in await listed(ada, f"post={failed}")] == [str(failed)]
    since = (datetime.now(UTC) + timedelta(hours=2.5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert [each["postId"] for each in await listed(ada, f"from={since}")] == [str(posts[2]), str(posts[1])]
    assert len(await listed(ada, f"until={since}")) == 2
    assert everything[0]["moves"] == []  # what waits is moved with its post
    for bad, field in (("from=yesterday", "from"), ("until=x", "until"), ("zone=nowhere", "zone")):
        answer = await ada.call("GET", f"/api/publications?{bad}")
        assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_one_publication_with_its_attempts(at: Town) -> None:
    """Show when each began, how late, and how it ended; what a platform said shows no password."""
    ada = await at.first()
    author = Author(at.database, "operator")
    publication = await author.publication(await author.brought("failed"))
    await author.read(
        "UPDATE attempt SET drift = '20 ms', ended_at = imprint_now(), outcome = 'refused', code = 'title', "
        "sentence = $2, http_status = 422 WHERE publication_id = $1",
        publication,
        "It said password=hunter2hunter2.",
    )
    shown = await ada.get(f"/api/publications/{publication}")
    (attempt,) = shown["attempts"]
    assert (attempt["outcome"], attempt["httpStatus"], attempt["driftSeconds"]) == ("refused", 422, 0.02)
    assert "hunter2" not in attempt["sentence"]
    assert shown["publication"]["errorCode"] == "refused"
    assert [each["name"] for each in shown["publication"]["moves"]] == ["retry"]
    told = await ada.get(f"/api/publications/{publication}/explain")
    assert [each["id"] for each in told["publications"]] == [str(publication)]
    assert await ada.refused("GET", f"/api/publications/{uuid4()}") == (404, "publication.missing")


async def test_one_is_tried_again_and_its_siblings_stay(at: Town) -> None:
    """Of a post that failed file by file, only the one that is named goes again."""
    ada = await at.first()
    author = Author(at.database, "operator")
    post = await author.scheduled(files=2, uploadMode="multiple", ahead=timedelta(0))
    first, second = [each.id for each in (await author.show(post)).publications]
    for each in (first, second):
        lease = await author.claim(each)
        assert lease is not None
        assert await author.fail(lease)
    again = await ada.post(f"/api/publications/{second}/retry")
    assert (again["id"], again["status"], again["errorCode"]) == (str(second), "pending", None)
    assert (await ada.get(f"/api/publications/{first}"))["publication"]["status"] == "failed"
    assert await ada.refused("POST", f"/api/publications/{second}/retry") == (409, "post.nothing_failed")


async def test_a_person_decides_about_an_unknown_one(at: Town) -> None:
    """It is out at an address, it is not and goes again, or it is not and is dropped; only the unknown is decided."""
    ada = await at.first()
    author = Author(at.database, "operator")
    out, again, dropped = [await doubtful(author, title=title) for title in ("out", "again", "dropped")]
    waiting = (await ada.get(f"/api/publications/{out}"))["publication"]
    assert (waiting["needsPerson"], [each["name"] for each in waiting["moves"]]) == (True, ["resolve"])
    path = "/api/publications/{}/resolve".format
    for bad in ("", "ftp://x", "javascript:alert(1)", "https://a b"):
        told = await ada.refused("POST", path(out), {"outcome": "published", "url": bad})
        assert told == (422, "resolve.bad_url")
    for given in ({}, {"outcome": "maybe"}, {"outcome": "published", "url": "x" * 5001}):
        assert await ada.refused("POST", path(out), given) == (422, "request.invalid")
    told = await ada.post(path(out), {"outcome": "published", "url": URL})
    assert (told["became"], told["publication"]["status"], told["publication"]["url"]) == ("out", "success", URL)
    told = await ada.post(path(again), {"outcome": "notPublished"})
    assert (told["became"], told["publication"]["status"]) == ("sent again", "pending")
    told = await ada.post(path(dropped), {"outcome": "notPublished", "drop": True})
    assert (told["became"], told["publication"]["status"]) == ("dropped", "failed")
    assert await ada.refused("POST", path(out), {"outcome": "notPublished"}) == (409, "publication.not_unknown")


async def test_nobody_decides_about_the_publication_of_somebody_else(at: Town) -> None:
    """It is not there, and stays as it is."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    publication = await doubtful(Author(at.database, "operator"), title="Ada's")
    path = f"/api/publications/{publication}"
    for method, end, given in (
        ("GET", "", None),
        ("GET", "/explain", None),
        ("POST", "/retry", None),
        ("POST", "/resolve", {"outcome": "published", "url": URL}),
        ("POST", "/resolve", {"outcome": "notPublished"}),
    ):
        status, code = await bob.refused(method, path + end, given)
        assert (status, code.endswith(".missing")) == (404, True)
    assert await listed(bob) == []
    assert (await ada.get(path))["publication"]["status"] == "unknown"


async def test_why_and_what_would_be_sent(at: Town) -> None:
    """A post is explained and rehearsed, alone and with others; nothing is sent."""
    ada = await at.first()
    author = Author(at.database, "operator")
    post = await author.scheduled(title="A lighthouse")
    told = await ada.get(f"/api/posts/{post}/explain")
    assert (told["post"]["title"], told["post"]["next"]) == ("A lighthouse", None)
    (publication,) = told["publications"]
    assert publication["next"]["sentence"].startswith("It waits for its time")
    assert publication["story"][0]["what"] == "create"
    review = await author.review()
    assert "declare it ready" in (await ada.get(f"/api/posts/{review}/explain"))["post"]["next"]
    rehearsed = await ada.get(f"/api/posts/{post}/dry-run")
    (item,) = rehearsed["items"]
    assert (item["status"], item["publicationId"]) == ("pending", publication["id"])
    assert rehearsed["ok"] == (not item["problems"])
    assert await ada.refused("GET", f"/api/posts/{post}/dry-run?account={uuid4()}") == (404, "account.missing")
    assert await ada.refused("GET", f"/api/posts/{review}/dry-run") == (422, "account.no_default")
    lost = str(uuid4())
    for move in ("explain", "dry-run", "show"):
        outcomes = (await ada.post(f"/api/posts/bulk/{move}", {"ids": [str(post), lost]}))["outcomes"]
        assert [(each["id"], each["ok"]) for each in outcomes] == [(str(post), True), (lost, False)]
        assert outcomes[0]["result"]
    assert (await ada.get(f"/api/publications/{publication['id']}"))["publication"]["status"] == "pending"


async def test_many_are_written_and_changed_at_once(at: Town) -> None:
    """Each by itself: the place of each in the list, and what is wrong with it."""
    ada = await at.first()
    given = {"posts": [{"title": "One"}, {"title": "Two", "matureLevel": "strict"}, {"title": "Three"}]}
    first, second, third = (await ada.post("/api/posts/bulk/create", given))["outcomes"]
    assert (first["id"], second["id"], second["code"], third["ok"]) == ("0", "1", "post.invalid", True)
    lost = str(uuid4())
    changed = {"ids": [first["result"], lost], "changes": {"tags": ["sea"]}}
    outcomes = (await ada.post("/api/posts/bulk/edit", changed))["outcomes"]
    assert [(each["ok"], each["code"]) for each in outcomes] == [(True, None), (False, "post.missing")]
    shown = await ada.get(f"/api/posts/{first['result']}")
    assert (shown["title"], shown["tags"]) == ("One", ["sea"])
