"""Rules over HTTP: made, turned off and on, removed; what could not become a post is refused when it is written."""

from imprint.store.db import Database
from tests.api.visitor import Town
from tests.work.posts import Author
from tests.work.serials import add_series


async def scene(database: Database) -> tuple[str, str]:
    """Give a series and an account of the first person."""
    account = await Author(database, "operator").account("site", "webhook")
    async with database.connection() as connection:
        return str(await add_series(connection, "Sea")), str(account)


async def test_a_rule_is_made_and_looked_after(at: Town) -> None:
    """Each answer says which moves are open; what is left out is as it usually is."""
    ada = await at.first()
    series, account = await scene(at.database)
    made = await ada.post("/api/rules", {"seriesId": series, "accounts": [account], "delaySeconds": 60}, 201)
    assert (made["title"], made["delaySeconds"], made["accounts"]) == ("{series} {number}", 60, ["site"])
    assert (made["accountIds"], [each["name"] for each in made["moves"]]) == ([account], ["disable", "remove"])
    path = f"/api/rules/{made['id']}"
    off = await ada.post(f"{path}/disable")
    assert (off["enabled"], off["moves"][0]["name"]) == (False, "enable")
    assert (await ada.post(f"{path}/enable"))["enabled"]
    assert [each["id"] for each in (await ada.get(f"/api/rules?series={series}"))["items"]] == [made["id"]]
    bob = await at.invited(ada, "bob")
    for method, move in (("GET", ""), ("POST", "/enable"), ("POST", "/disable"), ("DELETE", "")):
        assert await bob.refused(method, f"{path}{move}") == (404, "rule.missing")
    assert (await bob.get("/api/rules"))["items"] == []
    await ada.delete(path)
    assert await ada.refused("GET", path) == (404, "rule.missing")


async def test_what_could_not_become_a_post_is_refused(at: Town) -> None:
    """Double braces, unknown fields, a platform that wants a file, a zone that is none, things of somebody else."""
    ada = await at.first()
    series, account = await scene(at.database)
    gallery = str(await Author(at.database, "operator").account("gallery", "deviantart"))
    good = {"seriesId": series, "accounts": [account]}
    for given, field, code, words in (
        ({**good, "title": "{{series}} {number}"}, "title", "rule.bad_template", "one brace on each side"),
        ({**good, "body": "{chapter}"}, "body", "rule.unknown_field", "There is no field {chapter}; there are"),
        ({**good, "tags": ["{series"]}, "tags", "rule.bad_template", "do not pair"),
        ({**good, "accounts": [account, gallery]}, "accounts", "rule.needs_file", "takes no post without a file"),
        ({**good, "zone": "Nowhere/At_all"}, "zone", "schedule.no_zone", ""),
        ({**good, "delaySeconds": -1}, "delaySeconds", "request.invalid", ""),
    ):
        answer = await ada.call("POST", "/api/rules", given)
        assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
        assert answer.json()["field"] == field
        assert words in answer.json()["title"]
    assert (await ada.get("/api/rules"))["items"] == []
    bob = await at.invited(ada, "bob")
    assert await bob.refused("POST", "/api/rules", good) == (404, "series.missing")
    mine = await bob.post("/api/series", {"place": "https://serials.example/feed", "title": "B"}, 201)
    assert await bob.refused("POST", "/api/rules", {**good, "seriesId": mine["id"]}) == (404, "account.missing")
    program = await at.program(ada, "series:write")
    assert await program.refused("POST", "/api/rules", good) == (403, "scope.lacking")
