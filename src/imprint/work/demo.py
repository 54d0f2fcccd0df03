"""The demo's story: six paintings go out through a 429, two lost answers and a killed worker, each exactly once.

Everything is real: the database, the worker processes, the HTTP and kill -9. Only the platforms are simulated, and one
thing is shortened: what would be waited for is skipped by giving the second worker a clock that is ahead.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg

from imprint.engine.clock import Clock, timers
from imprint.problem import Busy, Problem
from imprint.store.query import query
from imprint.work import notice, rule, series, source
from imprint.work.poll import Polled, Poller
from imprint.work.props import DEVIANTART, FOLDER, WEBHOOK, YOU, Stage, folders
from imprint.work.story import story

PAINTER, SKETCHES, NEWSLETTER, SHELF = "painter", "sketches", "newsletter", "shelf"
ACCOUNTS = {PAINTER: DEVIANTART, SKETCHES: DEVIANTART, NEWSLETTER: WEBHOOK, SHELF: FOLDER}
LIGHTHOUSE, FOG, CAT, STORM, TIDE, SNOW = (
    "A lighthouse at dusk",
    "Fog over the harbour",
    "The keeper's cat",
    "Storm seen from inside",
    "Low tide",
    "First snow on the pier",
)
# How long the gallery takes over the request in whose middle the worker is killed.
THINKS_SECONDS = 2.0
# A lease lasts a minute, and a look comes a minute after the last moment of whoever sent.
LEASE_IS_OVER, LOOK_IS_DUE = timedelta(seconds=65), timedelta(seconds=150)
CHAPTERS = 12


@dataclass(frozen=True)
class Moved:
    """The status a post has now."""

    status: str


MOVE_POST = query("demo_move_post", Moved)


@dataclass(frozen=True)
class Told:
    """How the story went, as the sandbox counted it."""

    posts: int
    publications: int
    published: int
    duplicates: int
    lost: int
    refused: str
    counts: dict[str, int]
    notices: int

    @property
    def well(self) -> bool:
        """Say whether each went out exactly once."""
        return not self.duplicates and not self.lost and self.published == self.publications

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "posts": self.posts,
            "publications": self.publications,
            "published": self.published,
            "duplicates": self.duplicates,
            "lost": self.lost,
            "notices": self.notices,
            "refused": self.refused,
            "counts": self.counts,
        }


async def tell(stage: Stage) -> Told:
    """Tell the whole story, as it happens."""
    stage.say("You painted six pictures and wrote a post about each.")
    posts = {title: await stage.post(title) for title in (LIGHTHOUSE, FOG, CAT, STORM, TIDE, SNOW)}
    refused = await _jump_ahead(stage, posts[LIGHTHOUSE])
    stage.say(f"Somebody tries to mark one published by hand. PostgreSQL: “{refused}”.")
    for label, platform in ACCOUNTS.items():
        await stage.connect(platform, label)
    stage.say("You connected four accounts: two galleries, a newsletter and a folder. All of them are on this machine.")
    await stage.workers.start()
    await _plain(stage, posts)
    await _through_trouble(stage, posts)
    await _killed(stage, posts)
    notices = await _later(stage, posts)
    return await _counted(stage, refused, notices)


async def _jump_ahead(stage: Stage, post: UUID) -> str:
    try:
        async with stage.database.transaction("somebody", "impatience") as connection:
            await MOVE_POST.one(connection, post, "published")
    except asyncpg.CheckViolationError as refusal:
        return refusal.message
    raise RuntimeError("PostgreSQL allowed a move that is not declared")


async def _plain(stage: Stage, posts: dict[str, UUID]) -> None:
    stage.say("\nA good day. One post, three places, a second from now:")
    await stage.plan(posts[LIGHTHOUSE], PAINTER, NEWSLETTER, SHELF)
    await stage.until(posts[LIGHTHOUSE], "success")


async def _through_trouble(stage: Stage, posts: dict[str, UUID]) -> None:
    stage.say("\nA bad day. The gallery wants fewer calls, and the newsletter hangs up after it has taken the post:")
    await stage.box.fault("rate_limit", site=DEVIANTART, path="*/stash/publish", retry_after="1")
    await stage.box.fault("reset_after", site=WEBHOOK)
    await stage.plan(posts[FOG], PAINTER)
    await stage.plan(posts[CAT], NEWSLETTER)
    await stage.until(posts[FOG], "success")
    await stage.until(posts[CAT], "unknown")
    stage.say("\nThe gallery takes a post, too, and the answer gets lost:")
    await stage.box.fault("reset_after", site=DEVIANTART, path="*/stash/publish")
    await stage.plan(posts[STORM], PAINTER)
    await stage.until(posts[STORM], "unknown")


async def _killed(stage: Stage, posts: dict[str, UUID]) -> None:
    stage.say("\nAnd now kill -9, while the request is on the wire:")
    path = f"/~{SKETCHES}/api/v1/oauth2/stash/publish"
    await stage.box.fault("latency", site=DEVIANTART, path=path, seconds=THINKS_SECONDS)
    await stage.box.fault("reset_after", site=DEVIANTART, path=path)  # on a slow machine the kill may come late
    await stage.plan(posts[TIDE], SKETCHES)
    await stage.see(lambda: stage.box.asked(path))
    await stage.workers.kill()
    await stage.tell_news()
    stage.say("  The worker is dead. The gallery does not know that, and puts the picture up all the same.")

    async def up() -> bool:
        return any(each["title"] == TIDE for each in await stage.box.effects())

    await stage.see(up)
    await stage.plan(posts[SNOW], SHELF)
    stage.say("  Somebody schedules one more post. Nobody is there to publish it.")


async def _later(stage: Stage, posts: dict[str, UUID]) -> int:
    """Let time pass and another worker come; then a chapter comes out. Give how many notices there were."""
    stage.say(
        "\nThree of them may be out, and nobody knows. Imprint waits until whoever sent must be done. We skip that:"
    )
    stage.say("the next worker has a clock that is some minutes ahead.")
    async with stage.workers.open(LEASE_IS_OVER) as watched:
        await _noticed(stage, watched.url, posts[TIDE])
    now = stage.database
    async with stage.workers.open(LOOK_IS_DUE) as stage.database:
        await stage.workers.start(LOOK_IS_DUE)
        for title in (SNOW, CAT, STORM, TIDE):
            await stage.until(posts[title], "success")
        await _tell_story(stage, posts[TIDE])
        notices = await _chapter(stage)
    stage.database = now
    return notices


async def _noticed(stage: Stage, url: str, post: UUID) -> None:
    """Run a clock, as every worker does, until it has noticed that a worker is dead."""
    stop = asyncio.Event()
    clock = asyncio.create_task(Clock(url, timers(crashes_before_quarantine=3), []).run(stop))
    try:
        await stage.until(post, "unknown")
    finally:
        stop.set()
        await clock


async def _tell_story(stage: Stage, post: UUID) -> None:
    stage.say(f"\nWhat happened to “{TIDE}”, as `imprint explain` tells it:")
    (of,) = [each.id for each in await stage.all() if each.post_id == post]
    async with stage.database.connection() as connection:
        for step in await story(connection, [of]):
            stage.say(f"  {step.at:%H:%M:%S}  {step.sentence}")


async def _chapter(stage: Stage) -> int:
    """Let a new chapter come out at two sources: one chapter, one notice, one announcement."""
    stage.say("\nYou also follow a serial, at two sources, with a rule that announces each chapter in the newsletter.")
    begun = await stage.box.tell("/sandbox/series", title="The Lighthouse Keeper", chapters=CHAPTERS)
    feed, dex = f"{stage.box.url}/feeds/{begun['number']}.rss", f"mangadex:{begun['id']}"
    one = await series.add(stage.database, stage.settings, YOU, feed, title="The Lighthouse Keeper")

    async def read() -> bool:
        async with stage.database.connection() as connection:
            carried = await source.listed(connection, YOU, one.id)
        return all(each.last_worked_at and not each.polling for each in carried)

    # One after the other: they are on one host, which is asked one thing at a time.
    await stage.see(read)
    await source.add(stage.database, stage.settings, YOU, one.id, dex)
    await stage.see(read)
    body = "Read it at {url}"
    await rule.add(
        stage.database, YOU, one.id, [stage.accounts[NEWSLETTER]], title="{series}, chapter {number}", body=body
    )
    stage.say(f"Workers have read both; {CHAPTERS} chapters were there already, and are no news. Chapter 13 comes out:")
    await stage.box.tell(f"/sandbox/series/{begun['number']}", number=str(CHAPTERS + 1))
    await _polled(stage, one.id)

    async def announced() -> bool:
        return any(each.title.endswith(f"chapter {CHAPTERS + 1}") for each in await stage.all())

    await stage.see(announced)
    await stage.until(next(each.post_id for each in reversed(await stage.all())), "success")
    async with stage.database.connection() as connection:
        notices = len(await notice.listed(connection, YOU))
    stage.say(f"  Two sources, one chapter, {notices} notice for you, one announcement.")
    return notices


async def _polled(stage: Stage, one: UUID) -> None:
    poller = Poller.of(stage.database, stage.settings)
    try:
        async with stage.database.connection() as connection:
            carried = await source.listed(connection, YOU, one)
        for each in carried:
            done = await stage.see(partial(_asked, poller, each.id))
            stage.say(f"  {each.kind} brings {'a new chapter' if done.chapters else 'the same chapter once more'}")
    finally:
        await poller.fetcher.close()


async def _asked(poller: Poller, one: UUID) -> Polled | None:
    """Ask a source now; None when its host is not free at this moment, or has nothing new."""
    try:
        done = await poller.now(one)
    except Busy:
        return None
    if done.error:
        raise Problem(done.code or "demo.source", done.error)
    return done if done.releases else None


async def _counted(stage: Stage, refused: str, notices: int) -> Told:
    """Ask the platforms, not our own database, what is there."""
    wanted = await stage.all()
    seen = [*await stage.box.effects(), *folders(stage.settings.home, [SHELF])]
    there = Counter((each["site"], each["title"]) for each in seen)
    expected = {(each.platform, each.title) for each in wanted}
    stage.say("\nWhat the platforms counted for themselves:")
    for title in dict.fromkeys(each.title for each in wanted):
        on = ", ".join(
            f"{each.account} {_times(there[each.platform, title])}" for each in wanted if each.title == title
        )
        stage.say(f"  {title:<36} {on}")
    return Told(
        posts=len({each.post_id for each in wanted}),
        publications=len(wanted),
        published=sum(each.status == "success" for each in wanted),
        duplicates=sum(max(count - 1, 0) for count in there.values()),
        lost=sum(there[each] == 0 for each in expected),
        refused=refused,
        counts={f"{site}: {title}": count for (site, title), count in sorted(there.items())},
        notices=notices,
    )


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
