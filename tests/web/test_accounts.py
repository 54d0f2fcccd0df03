"""The page of accounts: how each of them is, in words; and nothing of anybody else."""

from datetime import timedelta

from imprint.engine import circuit, pace
from tests.api.visitor import Town, Visitor

BROWSER = {"Accept": "text/html"}
SECRET = "whsec_Y2FuYXJ5LW9mLXRoZS12YXVsdC1jYW5hcnktb2Y="  # noqa: S105 - a canary
FEED = {"place": "https://serials.example/feed", "title": "Only Ada follows this"}


async def _connected(who: Visitor, label: str) -> str:
    answers = {"url": "https://hooks.example/imprint", "secret": SECRET}
    given = {"platform": "webhook", "label": label, "answers": answers}
    made: str = (await who.post("/api/accounts", given, 201))["account"]["id"]
    return made


async def _seen(who: Visitor, path: str) -> str:
    answer = await who.http.get(path, headers=BROWSER)
    assert answer.status_code == 200, path
    return answer.text


async def test_pace_and_circuit_are_told_in_words(at: Town) -> None:
    """An account that is well, slow, asked to pause, left alone, and to be tried each says so; secrets are not told."""
    ada = await at.first()
    key = f"account:{await _connected(ada, 'My site')}"
    assert "Called at full pace." in await _seen(ada, "/accounts")
    async with at.database.connection() as connection:
        await pace.slow(connection, key, pace.PUBLISHING)
    assert "one every 1.0 seconds" in await _seen(ada, "/accounts")
    async with at.database.connection() as connection:
        await pace.slow(connection, key, pace.PUBLISHING, timedelta(minutes=5))
        await circuit.failed(connection, key, circuit.PUBLISHING, "error", f"It answers 503 to {SECRET}.")
    shown = await _seen(ada, "/accounts")
    assert "The platform asked for a pause" in shown
    assert "1 call in a row did not work." in shown
    async with at.database.connection() as connection:
        while (
            await circuit.failed(connection, key, circuit.PUBLISHING, "error", "It answers 503.")
        ).open_until is None:
            pass
    shown = await _seen(ada, "/accounts/rows")
    assert "Left alone, since calls kept failing." in shown
    assert "The last error: It answers 503." in shown
    assert SECRET not in shown
    async with at.database.connection() as connection:
        await circuit.probe(connection, key)
    assert "The next publication shows whether it is well again." in await _seen(ada, "/accounts")


async def test_a_second_person_sees_nothing_of_the_first(at: Town) -> None:
    """Neither in the lists nor under the addresses of the things themselves; a folder is not offered to them."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    account = await _connected(ada, "Only Ada publishes here")
    post = (await ada.post("/api/posts", {"title": "Only Ada", "kind": "article", "body": "Words."}, 201))["id"]
    await ada.post(f"/api/posts/{post}/ready")
    batch = (await ada.post("/api/batches", {"posts": [post], "everyMinutes": 30}, 201))["id"]
    series = (await ada.post("/api/series", FEED, 201))["id"]
    lists = ("/accounts", "/accounts/rows", "/batches", "/batches/rows", "/series", "/series/rows", "/accounts/new")
    things = (
        f"/accounts/{account}/reconnect",
        *(f"/batches/{batch}{part}" for part in ("", "/state")),
        *(f"/series/{series}{part}" for part in ("", "/about", "/chapters", "/sources", "/rules")),
    )
    for path in (*lists, *things):
        assert (await ada.http.get(path, headers=BROWSER)).status_code == 200, path
        theirs = await bob.http.get(path, headers=BROWSER)
        assert theirs.status_code == (200 if path in lists else 404), path
        assert "Only Ada" not in theirs.text, path
        assert path in things or not any(each in theirs.text for each in (account, batch, series, post)), path
    assert "/accounts/new/folder" in await _seen(ada, "/accounts/new")
    assert "/accounts/new/folder" not in await _seen(bob, "/accounts/new")
    assert (await bob.http.get("/accounts/new/folder", headers=BROWSER)).status_code == 422
