"""What cannot go as it is, is refused when it is planned: with the sentence of the dry run, one by one and in bulk."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from imprint.problem import Problem
from imprint.work import batch
from imprint.work.bulk import each
from imprint.work.dry_run import dry_run
from imprint.work.fitting import Fitting
from imprint.work.schedule import Target, bounds, publish_now, schedule
from tests.work.posts import OWNER
from tests.work.stage import BLUESKY, FOLDER, MASTODON, WORDPRESS, Stage

LATER = timedelta(hours=3)


async def planned(play: Stage, post: UUID) -> int:
    """Count the publications of a post."""
    count: int = await play.read("SELECT count(*) FROM publication WHERE post_id = $1", post)
    return count


@pytest.mark.parametrize(
    ("on", "fields", "code"),
    [
        (BLUESKY, {"overrides": {BLUESKY: {"text": "x" * 301}}}, "fit.long_text"),
        (BLUESKY, {"overrides": {BLUESKY: {"thread": True, "text": "word " * 3000}}}, "fit.long_thread"),
        (MASTODON, {"overrides": {MASTODON: {"visibility": "everybody"}}}, "fit.options"),
        (MASTODON, {"overrides": {MASTODON: {"text": "x" * 490, "contentWarning": "y" * 11}}}, "fit.long_text"),
        (WORDPRESS, {"overrides": {WORDPRESS: {"slug": "Not A Slug"}}}, "fit.options"),
    ],
)
async def test_it_is_refused_as_the_dry_run_says(play: Stage, on: str, fields: dict[str, Any], code: str) -> None:
    """Now or later, nothing is planned, and the words are the same."""
    account = await play.account(on)
    post = await play.post(**fields)
    (shown,) = await dry_run(play.database, play.at.stores, play.desk.vault, OWNER, post, only=[account])
    fitting, at = Fitting(play.desk.vault), datetime.now(UTC) + LATER
    limits = bounds(play.at.settings)
    for act in (
        publish_now(play.database, OWNER, post, accounts=[account], fitting=fitting),
        schedule(play.database, limits, OWNER, post, at, targets=[Target(account)], fitting=fitting),
        batch.create(play.database, limits, OWNER, [post], every=timedelta(0), accounts=[account], fitting=fitting),
    ):
        with pytest.raises(Problem) as refused:
            await act
        assert refused.value.code == code
        assert refused.value.sentence.endswith(" ".join(each.sentence for each in shown.problems[:1]))
    assert await planned(play, post) == 0
    assert await play.read("SELECT status FROM post WHERE id = $1", post) == "draft"


async def test_what_waits_is_not_brought_forward_when_it_cannot_go(play: Stage) -> None:
    """It was planned when it fitted; then it was edited."""
    accounts = [await play.account(on) for on in (BLUESKY, FOLDER)]
    post = await play.post()
    fitting, at = Fitting(play.desk.vault), datetime.now(UTC) + LATER
    targets = [Target(each_) for each_ in accounts]
    await schedule(play.database, bounds(play.at.settings), OWNER, post, at, targets=targets, fitting=fitting)
    await play.read(
        "UPDATE post SET overrides = jsonb_build_object('bluesky', jsonb_build_object('text', repeat('x', 301))) "
        "WHERE id = $1",
        post,
    )
    with pytest.raises(Problem, match="301 graphemes"):
        await publish_now(play.database, OWNER, post, fitting=fitting)
    assert len(await publish_now(play.database, OWNER, post, accounts=accounts[1:], fitting=fitting)) == 1


async def test_of_many_only_those_are_refused_that_do_not_fit(play: Stage) -> None:
    """Each by itself."""
    account, fitting = await play.account(BLUESKY), Fitting(play.desk.vault)
    good, bad = await play.post(), await play.post(overrides={BLUESKY: {"langs": ["x"]}})
    outcomes = await each(
        [good, bad], lambda post: publish_now(play.database, OWNER, post, accounts=[account], fitting=fitting)
    )
    assert [outcome.problem.code if outcome.problem else None for outcome in outcomes] == [None, "fit.options"]
    assert (await planned(play, good), await planned(play, bad)) == (1, 0)


async def test_a_file_that_a_rendition_mends_is_no_hindrance(play: Stage) -> None:
    """Nor is an account that has to be connected anew: its schedule is kept."""
    account, fitting = await play.account(BLUESKY), Fitting(play.desk.vault)
    post = await play.post()
    await play.read("UPDATE object SET size = 3000000, width = 9000, height = 9000")
    assert await publish_now(play.database, OWNER, post, accounts=[account], fitting=fitting)
    await play.read("DELETE FROM credential")
    unknown = await play.post(overrides={BLUESKY: {"text": "x" * 301}})
    assert await publish_now(play.database, OWNER, unknown, accounts=[account], fitting=Fitting(play.desk.vault))
