"""What the ways of each platform make of a publication: keys that end, rates, files that take time or vanish."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from imprint.sandbox.faults import Fault
from imprint.work.attach import attach
from imprint.work.dry_run import dry_run
from imprint.work.post import create, ready
from imprint.work.schedule import publish_now, retry
from tests.images.pictures import noise
from tests.work.posts import OWNER
from tests.work.stage import BLUESKY, DEVIANTART, FOLDER, MASTODON, WEBHOOK, Stage

STATUS = "*/statuses"


async def lost(play: Stage, does: Fault, **rule: Any) -> UUID:
    """Publish on Mastodon with an answer that never comes."""
    publication = await play.due(on=MASTODON)
    play.fault(does, path=STATUS, **rule)
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    return publication


@pytest.mark.parametrize("does", [Fault.RESET_BEFORE, Fault.RESET_AFTER])
async def test_within_its_hour_a_key_is_used_again(play: Stage, does: Fault) -> None:
    """Out or not, the same is sent again with the same key, and it is out once."""
    publication = await lost(play, does)
    await play.out(publication)
    assert await play.state(publication) == "success"
    assert await play.seen(publication) == [1]
    assert "resent" in await play.lines(publication)


@pytest.mark.parametrize(("does", "end", "seen"), [("reset_before", "unknown", 0), ("reset_after", "success", 1)])
async def test_after_its_hour_a_key_is_never_used_again(play: Stage, does: str, end: str, seen: int) -> None:
    """The platform has forgotten it: what is out is found by a look, what is not found a person decides."""
    publication = await lost(play, Fault(does))
    await play.pass_time(timedelta(minutes=61))
    await play.out(publication)
    assert await play.state(publication) == end
    assert await play.seen(publication) == [seen]
    assert "resent" not in await play.lines(publication)
    posted = [each for each in play.box.log.entries("request", MASTODON) if each.data["method"] == "POST"]
    assert sum(str(each.data["path"]).endswith("/statuses") for each in posted) == 1


async def test_pictures_have_a_rate_of_their_own(play: Stage) -> None:
    """Thirty files in half an hour is all that is taken; the rest waits for the next half hour."""
    account = await play.account(MASTODON)
    for _ in range(12):
        await play.out(await play.due(account, files=3))
    assert len(play.effects()) == 12
    assert play.uploads() == 36
    assert play.box.log.entries("too many") == []


async def test_a_file_that_is_still_at_work(play: Stage) -> None:
    """A file that is not ready is waited for within the attempt, without another upload, and sent as soon as it is."""
    play.box.sites[MASTODON].switch("slow_media", on=True)
    publication = await play.due(on=MASTODON)
    await play.publish(publication)
    assert await play.state(publication) == "success"
    assert await play.seen(publication) == [1]
    assert play.uploads() == 1


@pytest.mark.parametrize(("on", "forgets"), [(MASTODON, "forgets_media"), (BLUESKY, "forgets_blobs")])
async def test_a_file_that_the_platform_has_thrown_away_goes_again(play: Stage, on: str, forgets: str) -> None:
    """What was uploaded too long ago is uploaded once more within the same attempt."""
    play.box.sites[on].switch(forgets, on=True)
    publication = await play.due(on=on)
    await play.publish(publication)
    assert await play.state(publication) == "success"
    assert await play.seen(publication) == [1]
    assert play.uploads() == 2


@pytest.mark.parametrize("does", [Fault.RESET_AFTER, Fault.RESET_BEFORE, Fault.RATE_LIMIT, Fault.REFUSE])
async def test_a_thread_that_breaks_off_is_whole_in_the_end(play: Stage, does: Fault) -> None:
    """Its first post is out and the second goes wrong: unknown, then sent again, and no part of it is there twice."""
    text = " ".join(f"Sentence number {number} of the thread." for number in range(25))
    publication = await play.due(on=BLUESKY, overrides={BLUESKY: {"thread": True, "text": text}})
    play.fault(does, path="*putRecord", skip=1)
    await play.publish(publication)
    assert await play.state(publication) == "unknown"
    await play.out(publication)
    assert await play.state(publication) == "success"
    keys = [each.data["key"] for each in play.box.log.effects(BLUESKY)]
    assert len(keys) == len(set(keys)) == 3


async def test_one_of_five_fails_alone(play: Stage) -> None:
    """One post on five platforms, one of which refuses it: four are out at once, and the fifth can be retried alone."""
    accounts = {on: await play.account(on) for on in (BLUESKY, DEVIANTART, FOLDER, MASTODON, WEBHOOK)}
    post = await play.post()
    planned = {
        each.account_id: each.id
        for each in await publish_now(play.database, OWNER, post, accounts=[*accounts.values()])
    }
    publications = {on: planned[account] for on, account in accounts.items()}
    play.fault(Fault.REFUSE, path=STATUS)
    await play.all_out(list(publications.values()))
    states = {on: await play.state(each) for on, each in publications.items()}
    assert states == {**dict.fromkeys(accounts, "success"), MASTODON: "failed"}
    assert await play.read("SELECT status FROM post WHERE id = $1", post) == "failed"
    await retry(play.database, OWNER, post)
    assert {on for on, each in publications.items() if await play.state(each) == "pending"} == {MASTODON}
    await play.out(publications[MASTODON])
    assert await play.read("SELECT status FROM post WHERE id = $1", post) == "published"
    assert await play.seen(publications[MASTODON]) == [5]


async def test_a_picture_that_is_too_large_for_one_is_sent_whole_to_another(play: Stage) -> None:
    """Only the platform that does not take it gets a rendition, the largest that fits; the dry run says so before."""
    accounts = [await play.account(on) for on in (BLUESKY, MASTODON)]
    post = await create(play.database, OWNER, {"title": "Noise"})
    data = noise(1200, 1200).pngsave_buffer(compression=1)
    await attach(play.database, OWNER, post, await play.at.uploaded(data))
    await ready(play.database, OWNER, post)
    planned = await publish_now(play.database, OWNER, post, accounts=accounts)
    shown = await dry_run(play.database, play.at.stores, play.desk.vault, OWNER, post)
    assert {each.account.platform: bool(each.files[0].why) for each in shown} == {BLUESKY: True, MASTODON: False}
    await play.all_out([each.id for each in planned])
    sizes = {each.site: int(str(each.data["size"])) for each in play.box.log.entries("upload")}
    assert sizes[MASTODON] == len(data) > 2_000_000
    assert sizes[BLUESKY] <= 2_000_000
    assert len(play.effects()) == 2
