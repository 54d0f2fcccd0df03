"""The calendar over HTTP: only what it shows, only one's own, by one index however much there is."""

from datetime import UTC, datetime, timedelta

from imprint.store.query import declared
from tests.api.visitor import Town
from tests.store.test_query import nodes, plan
from tests.work.posts import Author

SHOWN = {
    "id",
    "postId",
    "title",
    "kind",
    "accountId",
    "account",
    "platform",
    "actualPublishAt",
    "status",
    "late",
    "needsPerson",
    "movable",
}


def day(days: float) -> str:
    """Write a moment some days from now."""
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_a_span_of_time(at: Town) -> None:
    """The earliest first, page by page or at once, with what a calendar shows and nothing of anybody else."""
    ada = await at.first()
    author = Author(at.database, "operator")
    account = await author.account()
    posts = [str(await author.scheduled(account, timedelta(days=days))) for days in (3, 1, 2, 40)]
    gone = await author.scheduled(account, timedelta(days=1))
    await ada.post(f"/api/posts/{gone}/unschedule")
    await Author(at.database, "bob").scheduled(ahead=timedelta(days=1))
    seen = await ada.get(f"/api/calendar?from={day(0)}&until={day(31)}")
    assert ([each["postId"] for each in seen["items"]], seen["next"]) == ([posts[1], posts[2], posts[0]], None)
    assert all(each.keys() == SHOWN for each in seen["items"])
    first = seen["items"][0]
    assert (first["account"], first["status"], first["late"], first["needsPerson"], first["movable"]) == (
        "gallery",
        "pending",
        False,
        False,
        True,
    )
    page = await ada.get(f"/api/calendar?from={day(0)}&until={day(31)}&limit=2")
    rest = await ada.get(f"/api/calendar?from={day(0)}&until={day(31)}&limit=2&cursor={page['next']}")
    assert [each["id"] for each in page["items"] + rest["items"]] == [each["id"] for each in seen["items"]]


async def test_what_needs_a_person_is_marked(at: Town) -> None:
    """What failed, what nobody can tell, what waits for its account, and what is late."""
    ada = await at.first()
    author = Author(at.database, "operator")
    for state in ("failed", "unknown", "success", "pending"):
        await author.brought(state, title=state)
    await author.read("UPDATE publication SET look_at = NULL WHERE status = 'unknown'")
    held = await author.scheduled(title="held", ahead=timedelta(hours=3))
    account = (await author.show(held)).publications[0].account_id
    await ada.post(f"/api/accounts/{account}/disable")
    await author.scheduled(title="late", ahead=timedelta(minutes=-10))
    found = (await ada.get(f"/api/calendar?from={day(-1)}&until={day(1)}"))["items"]
    marked = {each["title"]: (each["needsPerson"], each["late"], each["movable"]) for each in found}
    assert marked == {
        "failed": (True, False, False),
        "unknown": (True, False, False),
        "success": (False, False, False),
        "pending": (False, False, True),
        "held": (True, False, True),
        "late": (False, True, True),
    }


async def test_what_is_no_span_is_named(at: Town) -> None:
    """A time that is none, a zone that is none, and more than a calendar shows."""
    ada = await at.first()
    for query, code, field in (
        ("from=x&until=2030-01-01", "request.bad_from", "from"),
        ("from=2030-01-01&until=", "request.bad_until", "until"),
        ("from=2030-01-01&until=2030-02-01&zone=Nowhere", "schedule.no_zone", "zone"),
        ("from=2030-01-01&until=2032-01-01", "calendar.too_long", "until"),
        ("from=2030-01-01", "request.invalid", "until"),
    ):
        answer = await ada.call("GET", f"/api/calendar?{query}")
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, code, field)


async def test_a_month_is_found_by_the_index_of_its_accounts(at: Town) -> None:
    """However many publications there are, a month is read by account and time, and never all of them."""
    async with at.database.connection() as connection:
        for table in ("post", "account", "publication"):
            await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        await connection.execute("""
            INSERT INTO account (platform, name, owner)
            SELECT 'folder', 'a' || n, 'p' || n % 50 FROM generate_series(1, 100) n;
            INSERT INTO post (title, owner) SELECT 'p' || n, 'p' || n % 50 FROM generate_series(1, 10000) n;
            INSERT INTO publication (post_id, account_id, due_at)
            SELECT p.id, a.id, imprint_now() + (p.n % 700 - 350) * interval '1 day'
            FROM (SELECT id, row_number() OVER () AS n FROM post) p
            JOIN (SELECT id, row_number() OVER () AS n FROM account) a ON a.n = 1 + p.n % 100;
            ANALYZE account, post, publication;
            """)
        for name in ("calendar_span", "publication_page"):
            found = list(nodes(await plan(connection, declared()[name])))
            assert "publication_on_account" in {node.get("Index Name") for node in found}, name
            assert not [
                node for node in found if node["Node Type"] == "Seq Scan" and node["Relation Name"] != "account"
            ]
