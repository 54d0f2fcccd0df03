"""A person against a real worker, a thousand times: never both cancelled and published, never early, never changed."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from imprint.problem import Problem
from imprint.work.post import edit
from imprint.work.schedule import cancel, delete, reschedule
from tests.work.posts import AT_ONCE, OWNER
from tests.work.stage import Stage

RACES, AT_A_TIME = 250, 10
Act = Callable[[UUID], Awaitable[object]]


async def raced(play: Stage, act: Act) -> list[dict[str, Any]]:
    """Let a person act at a chance moment while a worker publishes, again and again; give how each race ended."""
    publications = await play.crowd(AT_A_TIME, RACES // AT_A_TIME)
    told: dict[UUID, str] = {}
    async with play.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT id, post_id, account_id FROM publication WHERE id = ANY ($1)", publications
        )
    lanes: dict[UUID, list[tuple[UUID, UUID]]] = {}
    for row in rows:
        lanes.setdefault(row["account_id"], []).append((row["id"], row["post_id"]))

    async def person(publication: UUID, post: UUID) -> None:
        await asyncio.sleep(random.uniform(0, 0.1))  # noqa: S311 - no secret; about as long as a publish among ten
        try:
            await act(post)
            told[publication] = "done"
        except Problem as problem:
            told[publication] = problem.code

    async def lane(races: list[tuple[UUID, UUID]]) -> None:
        for publication, post in races:
            await asyncio.gather(person(publication, post), play.publish(publication))

    await asyncio.gather(*map(lane, lanes.values()))
    seen = Counter(title for _, title in play.effects())
    async with play.database.connection() as connection:
        ends = await connection.fetch(
            "SELECT u.id, u.status, u.scheduled_at, p.title, p.deleted_at IS NOT NULL AS deleted FROM publication u "
            "JOIN post p ON p.id = u.post_id WHERE u.id = ANY ($1)",
            publications,
        )
    assert not await play.read("SELECT count(*) FROM attempt WHERE ended_at IS NULL")
    found = [{**end, "said": told[end["id"]], "seen": seen[end["title"]]} for end in ends]
    # Both sides must have won some, or nothing was raced.
    assert {"done"} < {str(each["said"]) for each in found}, Counter(each["said"] for each in found)
    return found


@pytest.mark.usefixtures("_unhurried")
async def test_cancel_against_the_worker(play: Stage) -> None:
    """What was cancelled is not out, what could not be cancelled is."""
    for race in await raced(play, lambda post: cancel(play.database, OWNER, post)):
        won = race["said"] == "done"
        assert (race["status"], race["seen"]) == (("cancelled", 0) if won else ("success", 1)), race


@pytest.mark.usefixtures("_unhurried")
async def test_delete_against_the_worker(play: Stage) -> None:
    """What was deleted before it left is not out; what had left is deleted only when it is known to be out."""
    for race in await raced(play, lambda post: delete(play.database, OWNER, post)):
        assert race["deleted"] == (race["said"] == "done")
        assert race["seen"] == (1 if race["status"] == "success" else 0)
        assert race["status"] == "success" or (race["status"] == "cancelled" and race["deleted"]), race


@pytest.mark.usefixtures("_unhurried")
async def test_reschedule_against_the_worker(play: Stage) -> None:
    """What was moved waits for its new time; what could not be moved is out."""
    at = await play.read("SELECT imprint_now() + interval '5 hours'")
    races = await raced(play, lambda post: reschedule(play.database, AT_ONCE, OWNER, post, at))
    for race in races:
        won = race["said"] == "done"
        assert (race["status"], race["seen"]) == (("pending", 0) if won else ("success", 1)), race
        assert (race["scheduled_at"] == at) == won
    for race in races[:50]:
        await play.publish(race["id"])  # an old job, handed out for the old time
    assert len(play.effects()) == sum(race["seen"] == 1 for race in races)


@pytest.mark.usefixtures("_unhurried")
async def test_edit_against_the_worker(play: Stage) -> None:
    """All go out once; an edit that was accepted is in what went out, one that was refused is not."""
    races = await raced(play, lambda post: edit(play.database, OWNER, post, {"title": f"Edited {post}"}))
    for race in races:
        assert (race["status"], race["seen"]) == ("success", 1), race
        assert str(race["title"]).startswith("Edited") == (race["said"] == "done")
    assert len(play.effects()) == RACES
