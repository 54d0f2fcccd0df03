"""Measures: a post is counted as each platform counts, also before it is ready and where it does not fit."""

from uuid import UUID

from imprint.work.measure import Room, rooms
from imprint.work.post import edit
from tests.work.posts import OWNER
from tests.work.stage import BLUESKY, DEVIANTART, FOLDER, MASTODON, Stage


async def measured(play: Stage, post: UUID, *on: UUID) -> list[Room]:
    """Measure a post for accounts."""
    async with play.database.connection() as connection:
        return await rooms(connection, play.desk.vault, OWNER, post, on)


def used(room: Room, what: str) -> list[tuple[int, str, bool]]:
    """Give how much of something there is, in which unit, and whether it fits."""
    return [(each.used, each.unit, each.fits) for each in room.measures if each.what == what]


async def test_each_platform_counts_in_its_own_way(play: Stage) -> None:
    """A link has one length on Mastodon, a family is one character, DeviantArt looks at the title alone."""
    accounts = [await play.account(on) for on in (MASTODON, BLUESKY, DEVIANTART, FOLDER)]
    link = "https://example.org/" + "x" * 100
    texts = {MASTODON: {"text": f"See {link}", "contentWarning": "abc"}, BLUESKY: {"text": "👨‍👩‍👧‍👦"}}
    post = await play.post(title="T" * 60, overrides=texts)
    mastodon, bluesky, deviantart, folder = await measured(play, post, *accounts)
    assert used(mastodon, "text") == [(4 + 23 + 3, "graphemes", True)]
    assert used(bluesky, "text") == [(1, "graphemes", True), (25, "bytes", True)]
    assert used(deviantart, "title") == [(60, "characters", False)]
    assert not folder.measures


async def test_what_is_made_of_a_long_description_is_shortened_and_says_so(play: Stage) -> None:
    """Everything is counted, and that it is shortened by itself is no mistake of a person."""
    account = await play.account(BLUESKY)
    post = await play.post()
    await edit(play.database, OWNER, post, {"description": "word " * 100})
    (room,) = await measured(play, post, account)
    (graphemes, *_) = [each for each in room.measures if each.what == "text"]
    assert graphemes.used > graphemes.most
    assert graphemes.shortened
