"""kill -9 at each step of each platform that people use: the sandbox's own log says how often it is out."""

import os
import random
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from imprint.engine.lease import PUBLICATIONS
from imprint.platforms.registry import PLATFORMS
from imprint.sandbox.faults import Fault
from tests.work.mortal import Mortal
from tests.work.stage import BLUESKY, MASTODON, WORDPRESS, Stage

# How many publications of Bluesky are killed at random, again and again; many more when somebody asks for it.
STORM = int(os.environ.get("IMPRINT_TEST_STORM", "10"))
THREAD = {"thread": True, "text": " ".join(f"Sentence number {number} of the thread." for number in range(25))}
# The request that publishes, and how many of the same path come before it and only read.
PUBLISHES = {BLUESKY: ("*putRecord", 0), MASTODON: ("*/statuses", 0), WORDPRESS: ("*/wp/v2/posts", 2)}

# Dead between the intent and the first byte: nothing is out, but only a platform that knows our key can tell.
BEFORE_IT_LEFT = {
    "after publish_intend",
    "before create the post",
    "before publish the status",
    "before publish the post",
}


@pytest.mark.parametrize("on", [BLUESKY, MASTODON, WORDPRESS])
async def test_killed_at_each_step_of_each_platform(play: Stage, worker: Mortal, on: str) -> None:
    """It is out once without a person; where only a look can tell and nothing is to be seen, a person is asked."""
    steps = await worker.do("publish", await play.due(on=on), 0)
    killed = {}
    for number, step in enumerate(steps, 1):
        publication = await play.due(on=on)
        await worker.do("publish", publication, number)
        killed[publication] = step
    assert len(BEFORE_IT_LEFT & set(steps)) == 2
    await play.all_out(list(killed))
    out = await play.seen(*killed)
    for (publication, step), times in zip(killed.items(), out, strict=True):
        asked = not PLATFORMS[on].once.token and step in BEFORE_IT_LEFT
        assert await play.state(publication) == ("unknown" if asked else "success"), step
        assert times == (0 if asked else 1), step
    keys = [each.data["key"] for each in play.box.log.effects(on)]
    assert len(keys) == len(set(keys))
    assert not await play.read("SELECT count(*) FROM publication_log WHERE kind = 'duplicate'")


@pytest.mark.parametrize("on", [BLUESKY, MASTODON, WORDPRESS])
async def test_killed_at_each_step_of_a_look_at_each_platform(play: Stage, worker: Mortal, on: str) -> None:
    """What was lost is out; whoever looks for it dies, the next one finds it, and nothing is sent again."""

    async def lost() -> UUID:
        publication = await play.due(on=on)
        path, reads = PUBLISHES[on]
        play.fault(Fault.RESET_AFTER, path=path, skip=reads)
        await play.publish(publication)
        await play.read("DELETE FROM circuit")  # else so many lost answers would make everybody wait
        # All attempts are used up: with a key as well there is nothing left but to look.
        await play.read("UPDATE publication SET attempts = 7 WHERE id = $1", publication)
        assert await play.state(publication) == "unknown"
        return publication

    first = await lost()
    await play.pass_time(timedelta(minutes=61))
    steps = await worker.do("reconcile", first, 0)
    # What lies between its own requests is the same for all, and is killed elsewhere.
    own = [step for step in steps if " look" in step or step.startswith("left")]
    assert len(own) >= 3
    unknown = [await lost() for _ in own]
    await play.pass_time(timedelta(minutes=61))
    for step, publication in zip(own, unknown, strict=True):
        await worker.do("reconcile", publication, step)
    await play.all_out([first, *unknown])
    assert set(await play.seen(first, *unknown)) == {1}
    assert {await play.state(each) for each in [first, *unknown]} == {"success"}
    assert not await play.read("SELECT count(*) FROM publication_log WHERE kind = 'resent'")


def threads(play: Stage) -> dict[str, list[dict[str, Any]]]:
    """Give the records that are out, by the account they are of, in the order in which they came."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in play.box.log.effects(BLUESKY):
        found.setdefault(str(each.data["account"]), []).append(dict(each.data))
    return found


def whole(records: list[dict[str, Any]], parts: int) -> bool:
    """Say whether records are one thread: as many as there should be, each once, each the answer to the one before."""
    uris = [each["remote_id"] for each in records]
    replies = [each["record"].get("reply") for each in records]
    chain = [None, *({"root": uris[0], "parent": uri} for uri in uris[:-1])]
    told = [reply and {name: reply[name]["uri"] for name in ("root", "parent")} for reply in replies]
    return len(set(uris)) == len(uris) == parts and told == chain


async def test_killed_at_each_step_of_a_thread(play: Stage, worker: Mortal) -> None:
    """However far it had come, one whole thread is out in the end, without a person."""
    steps = await worker.do("publish", await play.due(on=BLUESKY, overrides={BLUESKY: THREAD}), 0)
    own = steps[steps.index("before create the post") : steps.index("after create the post #3") + 1]
    assert len(own) == 3 * 3
    killed = []
    for step in own:
        killed.append(await play.due(on=BLUESKY, overrides={BLUESKY: THREAD}))
        await worker.do("publish", killed[-1], step)
    await play.all_out(killed)
    assert {await play.state(each) for each in killed} == {"success"}
    out = threads(play)
    assert len(out) == len(killed) + 1
    assert all(whole(records, 3) for records in out.values())


async def test_bluesky_ends_every_storm_of_kills_in_one_post(play: Stage, worker: Mortal) -> None:
    """Workers die at random steps, several over each publication: one post, or one whole thread, and no person."""
    dice = random.Random(int(os.environ.get("IMPRINT_TEST_SEED", "9")))  # noqa: S311 - the same deaths again
    parts, deaths = {}, Counter[UUID]()
    for number in range(STORM):
        label = f"storm-{number}"
        override = {BLUESKY: THREAD} if number % 2 else {}
        account = await play.account(BLUESKY, label)
        publication = await play.due(account, files=1 + number % 2, overrides=override, description="Fog.")
        parts[publication] = (label, 3 if number % 2 else 1)
        for _ in range(dice.randint(3, 9)):
            status = await play.state(publication)
            if status == "success":
                break
            await play.wait_for("SELECT wake_at FROM publication WHERE id = $1", publication)
            if status == "running":
                async with play.database.transaction("clock", "its time is over") as connection:
                    await PUBLICATIONS.expire.all(connection, 500, 100)  # nobody is set aside here
                continue
            does = "publish" if status == "pending" else "reconcile"
            deaths[publication] += await worker.may_die(does, publication, dice.randint(1, 26))
    await play.all_out(list(parts))
    assert {await play.state(each) for each in parts} == {"success"}
    out = threads(play)
    assert all(whole(out[label], count) for label, count in parts.values())
    assert len(out) == STORM
    assert sum(deaths.values()) >= STORM
