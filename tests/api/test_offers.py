"""Offers: what an answer lists as a move can be asked for under that name, and what it does not list is refused."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.work.scope import OF_ROLE, Role
from tests.api.estate import settle
from tests.api.visitor import Town, Visitor
from tests.work.posts import Author

LATER = (datetime.now(UTC) + timedelta(hours=5)).isoformat()
BODIES: dict[str, Any] = {"schedule": {"at": LATER}, "reschedule": {"at": LATER}, "edit": {"title": "Another"}}
MOVES = (
    "ready", "reopen", "schedule", "publish", "reschedule", "unschedule", "cancel", "retry", "edit", "duplicate",
    "delete",
)  # fmt: skip
NO_JSON = {"/api/events", "/api/posts/export", "/api/content/{content}/download"}
STATES = ("review", "draft", "pending", "uploading", "publishing", "success", "failed", "unknown")


async def brought(author: Author, state: str) -> UUID:
    """Bring a new post into a state."""
    if state == "review":
        return await author.review()
    return await (author.draft() if state == "draft" else author.brought(state))


async def works(ada: Visitor, path: str, move: str) -> bool:
    """Ask for a move, and say whether it is one that a thing in this state can make."""
    method, where = {"edit": ("PATCH", path), "delete": ("DELETE", path)}.get(move, ("POST", f"{path}/{move}"))
    answer = await ada.call(method, where, BODIES.get(move))
    assert answer.is_success or answer.status_code == 409, (move, answer.text)
    return answer.is_success


async def test_the_moves_of_a_post_are_those_that_work(at: Town) -> None:
    """Every state times every move: it is listed, or it is refused."""
    ada = await at.first()
    author = Author(at.database, "operator")
    await author.account(default=True)
    for state in STATES:
        for move in MOVES:
            path = f"/api/posts/{await brought(author, state)}"
            listed = {each["name"] for each in (await ada.get(path))["moves"]}
            assert listed <= set(MOVES)
            assert (move in listed) == await works(ada, path, move), (state, move)


async def test_the_moves_of_an_account_are_those_that_work(at: Town) -> None:
    """Nobody can ask for a sign-in to end; one that is deleted or disabled says so."""
    ada = await at.first()
    account = await Author(at.database, "operator").account(default=True)
    path = f"/api/accounts/{account}"
    for move, other in (("disable", "enable"), ("enable", "disable")):
        listed = {each["name"] for each in (await ada.get(path))["moves"]}
        assert (move in listed, other in listed, "expire" in listed) == (True, False, False)
        assert not await works(ada, path, other)
        assert await works(ada, path, move)


async def test_content_that_is_deleted_is_only_taken_back(at: Town) -> None:
    """What is listed is what the routes are called."""
    ada = await at.first()
    path = f"/api/content/{await Author(at.database, 'operator').content()}"
    assert [each["name"] for each in (await ada.get(path))["moves"]] == ["derive", "archive", "delete"]
    assert [each["name"] for each in (await ada.delete(path, 200))["moves"]] == ["restore"]
    assert await ada.refused("POST", f"{path}/archive") == (404, "content.missing")
    assert await works(ada, path, "restore")


def offered(told: Any) -> Iterator[list[Any]]:
    """Walk through an answer: every list of moves in it."""
    if isinstance(told, dict):
        for name, value in told.items():
            yield from [value] if name == "moves" else offered(value)
    if isinstance(told, list):
        for each in told:
            yield from offered(each)


async def test_who_may_only_look_is_offered_nothing(at: Town) -> None:
    """Every route that shows things: moves for whose they are, none for a reader and for a key that only reads."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    calls = list((await settle(at, bob)).calls(await bob.get("/api/openapi.json")))
    eve = await at.invited(bob, "eve", Role.READER)
    lookers = (eve, await at.program(bob, *(each for each in OF_ROLE[Role.READER])))
    seen = set()
    for call in calls:
        if call.method == "GET" and call.scope in OF_ROLE[Role.READER] and call.route not in NO_JSON:
            own, *others = [list(offered((await who.call("GET", call.path)).json())) for who in (bob, *lookers)]
            assert not any(moves for answer in others for moves in answer), call.route
            seen |= {call.route.split("/")[2] for moves in own if moves}
    assert seen == {
        "accounts", "batches", "content", "dead-letters", "library", "notices", "posts", "publications", "rules",
        "series", "sources", "targets", "webhooks",
    }  # fmt: skip
    program = await at.program(ada, "people:read", "system:read")
    for path in ("/api/people", "/api/people/operator", "/api/system/dead-letters"):
        assert any(offered(await ada.get(path))), path
        assert not any(offered(await program.get(path))), path
