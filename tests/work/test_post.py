"""Posts: what can be written, what a post needs to be ready, and what can no longer be changed."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.platforms.work import Bytes
from imprint.problem import Problem
from imprint.work.attach import arrange, attach, describe, detach
from imprint.work.post import counts, create, duplicate, edit, find, listed, ready, reopen, show
from imprint.work.post_fields import checked
from imprint.work.schedule import Target, cancel, schedule
from imprint.work.snapshot import OF, Snapshot, canonical, frozen, look
from tests.work.posts import AT_ONCE, OWNER, Author

MADE_AT = datetime(2030, 1, 1, tzinfo=UTC)

FULL: dict[str, Any] = {
    "kind": "artwork",
    "title": "A lighthouse",
    "description": "At dusk",
    "body": "",
    "tags": ["sea", "light"],
    "categoryPath": "digitalart/paintings",
    "isMature": True,
    "matureLevel": "moderate",
    "matureClassification": ["nudity"],
    "galleryIds": ["g1"],
    "allowComments": False,
    "allowFreeDownload": True,
    "isAiGenerated": True,
    "noAi": True,
    "displayResolution": 8,
    "uploadMode": "multiple",
    "overrides": {"deviantart": {"title": "Leuchtturm", "feature": True}},
    "latePolicy": "ask",
    "lateHours": 3,
    "zone": "Europe/Berlin",
}


async def refused(code: str, awaited: Any) -> Problem:
    """Expect a problem with this code."""
    with pytest.raises(Problem) as problem:
        await awaited
    assert problem.value.code == code
    assert problem.value.sentence.endswith(".")
    return problem.value


# Write and change


async def test_a_new_post_is_in_review_and_keeps_every_field(author: Author) -> None:
    """What is given comes back under the same names."""
    post = await create(author.database, OWNER, FULL)
    shown = await author.show(post)
    assert shown.post.status == "review"
    assert {name: shown.post.fields()[name] for name in FULL} == FULL
    data = shown.as_data()
    assert data["files"] == []
    assert [move["name"] for move in data["moves"]] == ["approve"]
    assert await author.reasons(post) == [("create", OWNER, "a new post")]


@pytest.mark.parametrize(
    ("given_fields", "said"),
    [
        ({"titel": "x"}, "titel: is not a field of a post."),
        ({"title": "x" * 501}, "title: "),
        ({"title": "a\x00b"}, "title: it contains a NUL character or an unpaired surrogate, which cannot be stored."),
        ({"title": "\ud800"}, "title: "),
        ({"kind": "film"}, "kind: "),
        ({"tags": ["a", " "]}, "tags.1: "),
        ({"tags": ["x"] * 101}, "tags: "),
        ({"displayResolution": 9}, "displayResolution: "),
        ({"isMature": True, "matureLevel": "very"}, "matureLevel: "),
        ({"matureLevel": "strict"}, "only of a post that is mature"),
        ({"isMature": True, "matureClassification": ["boring"]}, "matureClassification.0: "),
        ({"uploadMode": "many"}, "uploadMode: "),
        ({"overrides": {"myspace": {}}}, "overrides: there is no platform 'myspace'."),
        ({"overrides": {"deviantart": {"title": 5}}}, "overrides: deviantart.title: "),
        ({"overrides": {"folder": {"x": "y" * 100_001}}}, "overrides: all together"),
        ({"latePolicy": "maybe"}, "latePolicy: "),
        ({"lateHours": -1}, "lateHours: "),
        ({"zone": "Mars/Olympus"}, "zone: there is no time zone"),
    ],
)
def test_what_cannot_be_a_post_is_refused_in_a_sentence(given_fields: dict[str, object], said: str) -> None:
    """The sentence names the field and never the value."""
    with pytest.raises(Problem) as problem:
        checked(given_fields)
    assert problem.value.code == "post.invalid"
    assert said in problem.value.sentence
    assert len(problem.value.sentence) < 300


async def test_the_database_refuses_the_same(author: Author) -> None:
    """By raw SQL, whatever the code does."""
    post = await author.review()
    for change in (
        "title = repeat('x', 501)",
        "kind = 'film'",
        "tags = ARRAY['']",
        "tags = ARRAY[NULL]::text[]",
        "display_resolution = 9",
        "mature_level = 'strict'",
        "is_mature = true, mature_classification = ARRAY['boring']",
        "upload_mode = 'many'",
        "overrides = '[]'",
        "late_policy = 'maybe'",
        "zone = ''",
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await author.read(f"UPDATE post SET {change} WHERE id = $1", post)


async def test_an_edit_changes_what_is_given_and_nothing_else(author: Author) -> None:
    """The revision grows with what would be sent, not with what only we need to know."""
    post = await create(author.database, OWNER, FULL)
    before = (await author.show(post)).post
    after = (await edit(author.database, OWNER, post, {"title": "  A tower ", "tags": ["a", "a", "b"]})).post
    assert after.fields() == {**before.fields(), "title": "A tower", "tags": ["a", "b"]}
    assert after.revision == before.revision + 1
    assert after.edited_at > before.edited_at
    again = (await edit(author.database, OWNER, post, {"lateHours": 5})).post
    assert (again.revision, again.late_hours) == (after.revision, 5)


async def test_an_edit_can_insist_on_what_it_was_based_on(author: Author) -> None:
    """Two who edit at once do not write over each other."""
    post = await author.review()
    based_on = (await author.show(post)).post.revision
    await edit(author.database, OWNER, post, {"title": "One"}, revision=based_on)
    await refused("post.changed", edit(author.database, OWNER, post, {"title": "Two"}, revision=based_on))


async def test_somebody_elses_post_is_no_post(author: Author) -> None:
    """Nothing can be learnt of it."""
    post = await author.draft()
    for awaited in (
        edit(author.database, "eve", post, {"title": "x"}),
        ready(author.database, "eve", post),
        reopen(author.database, "eve", post),
        duplicate(author.database, "eve", post),
        cancel(author.database, "eve", post),
    ):
        await refused("post.missing", awaited)
    async with author.database.connection() as connection:
        await refused("post.missing", show(connection, "eve", post))
        await refused("post.missing", find(connection, "eve", str(post)))


# Files


async def test_files_are_attached_ordered_described_and_taken_off(author: Author) -> None:
    """They keep places without gaps."""
    post = await author.review(files=3)
    one, two, three = (file.id for file in (await author.show(post)).files)
    assert [file.id for file in await arrange(author.database, OWNER, post, [three, one, two])] == [three, one, two]
    described = await describe(author.database, OWNER, post, one, "A tower by the sea")
    assert [file.alt for file in described] == ["", "A tower by the sea", ""]
    left = await detach(author.database, OWNER, post, three)
    assert [(file.id, file.position) for file in left] == [(one, 0), (two, 1)]
    assert (await author.show(post)).post.revision > 4


async def test_what_is_wrong_with_files_is_said(author: Author) -> None:
    """Each with its own code."""
    post, content = await author.review(), await author.content()
    await attach(author.database, OWNER, post, content)
    await refused("post.file_twice", attach(author.database, OWNER, post, content))
    await refused("content.missing", attach(author.database, OWNER, post, uuid4()))
    others = await Author(author.database, "eve").content()
    await refused("content.missing", attach(author.database, OWNER, post, others))
    await refused("post.no_such_file", detach(author.database, OWNER, post, uuid4()))
    await refused("post.no_such_file", describe(author.database, OWNER, post, uuid4(), ""))
    await refused("post.wrong_order", arrange(author.database, OWNER, post, []))
    await refused("post.invalid", attach(author.database, OWNER, post, content, "x" * 5001))


async def test_a_file_can_be_taken_off_and_put_back(author: Author) -> None:
    """It is a new row, so that what was planned of the old one stays what it was."""
    post, content = await author.review(files=0), await author.content()
    (first,) = await attach(author.database, OWNER, post, content)
    assert await detach(author.database, OWNER, post, first.id) == []
    (second,) = await attach(author.database, OWNER, post, content)
    assert second.id != first.id
    with pytest.raises(asyncpg.CheckViolationError):
        await author.read("DELETE FROM post_file WHERE id = $1", second.id)


# Ready


@pytest.mark.parametrize(
    ("fields", "files", "code"),
    [
        ({"title": "  "}, 1, "post.no_title"),
        ({}, 0, "post.no_file"),
        ({"kind": "article"}, 0, "post.no_body"),
        ({"kind": "article", "body": " \n"}, 1, "post.no_body"),
    ],
)
async def test_what_a_post_lacks_is_said(author: Author, fields: dict[str, Any], files: int, code: str) -> None:
    """It stays in review."""
    post = await author.review(files, **fields)
    await refused(code, ready(author.database, OWNER, post))
    assert await author.status(post) == "review"


async def test_a_file_that_was_not_confirmed_is_no_file(author: Author) -> None:
    """Nor is one that was deleted."""
    post = await author.review(files=0)
    await attach(author.database, OWNER, post, await author.content(confirmed=False))
    assert "a.png" in (await refused("post.unconfirmed_file", ready(author.database, OWNER, post))).sentence
    other = await author.review(files=1)
    await author.read("UPDATE content SET deleted_at = imprint_now()")
    await refused("post.unconfirmed_file", ready(author.database, OWNER, other))


async def test_ready_and_back(author: Author) -> None:
    """An article needs no file; ready twice is refused."""
    post = await author.review(0, kind="article", body="Once upon a time")
    await ready(author.database, OWNER, post)
    assert await author.status(post) == "draft"
    await refused("post.not_in_review", ready(author.database, OWNER, post))
    await reopen(author.database, OWNER, post)
    assert await author.status(post) == "review"
    await refused("post.not_reopenable", reopen(author.database, OWNER, post))


async def test_what_is_ready_stays_ready(author: Author) -> None:
    """A draft or scheduled post does not lose its title or its last file; nothing of the edit is kept."""
    for post in (await author.draft(), await author.scheduled()):
        (file,) = (await author.show(post)).files
        await refused("post.no_title", edit(author.database, OWNER, post, {"title": " ", "description": "x"}))
        await refused("post.no_file", detach(author.database, OWNER, post, file.id))
        unconfirmed = await author.content(confirmed=False)
        await refused("post.unconfirmed_file", attach(author.database, OWNER, post, unconfirmed))
        assert (await author.show(post)).post.description == ""
        assert len((await author.show(post)).files) == 1


async def test_a_post_that_failed_goes_back_to_its_author(author: Author) -> None:
    """Unless nobody can tell whether it is out."""
    post = await author.brought("failed")
    await reopen(author.database, OWNER, post)
    assert await author.status(post) == "draft"
    unknown = await author.brought("unknown")
    await refused("post.unknown", reopen(author.database, OWNER, unknown))


# Frozen


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("success", "post.published"),
        ("uploading", "post.on_its_way"),
        ("publishing", "post.on_its_way"),
        ("unknown", "post.unknown"),
    ],
)
async def test_what_is_out_or_on_its_way_is_frozen(author: Author, state: str, code: str) -> None:
    """Words, files, order and descriptions; and raw SQL is refused as well."""
    post = await author.brought(state)
    (file,) = (await author.show(post)).files
    content = await author.content()
    for awaited in (
        edit(author.database, OWNER, post, {"title": "Another"}),
        attach(author.database, OWNER, post, content),
        detach(author.database, OWNER, post, file.id),
        describe(author.database, OWNER, post, file.id, "x"),
    ):
        await refused(code, awaited)
    with pytest.raises(asyncpg.CheckViolationError, match="cannot be changed"):
        await author.read("UPDATE post SET title = 'x' WHERE id = $1", post)
    with pytest.raises(asyncpg.CheckViolationError, match="cannot be changed"):
        await author.read("UPDATE post_file SET alt = 'x' WHERE post_id = $1", post)


@pytest.mark.parametrize("state", ["pending", "failed"])
async def test_what_waits_or_failed_can_be_changed(author: Author, state: str) -> None:
    """Nothing of it has left."""
    post = await author.brought(state)
    await edit(author.database, OWNER, post, {"title": "Another", "tags": ["new"]})
    await attach(author.database, OWNER, post, await author.content())
    assert (await author.show(post)).post.title == "Another"


async def test_the_way_of_uploading_is_settled_with_the_schedule(author: Author) -> None:
    """Each file of `multiple` has a publication: none is added or lost unseen."""
    post = await author.scheduled(uploadMode="multiple", files=2)
    await refused("post.planned", edit(author.database, OWNER, post, {"uploadMode": "single"}))
    await refused("post.planned", attach(author.database, OWNER, post, await author.content()))
    (first, _) = (await author.show(post)).files
    await refused("post.planned", detach(author.database, OWNER, post, first.id))


# Copy, list, find


async def test_a_copy_has_the_same_words_and_files(author: Author) -> None:
    """It is in review, and its original may be out."""
    post = await author.brought("success", description="Dusk")
    copy = await duplicate(author.database, OWNER, post)
    one, two = await author.show(post), await author.show(copy)
    assert two.post.status == "review"
    assert two.post.fields() == one.post.fields()
    assert [file.content_id for file in two.files] == [file.content_id for file in one.files]
    assert two.publications == []
    await ready(author.database, OWNER, copy)


async def test_lists_are_paged_and_counted(author: Author) -> None:
    """The newest first, each once."""
    posts = [await author.review() for _ in range(5)]
    await ready(author.database, OWNER, posts[0])
    async with author.database.connection() as connection:
        page = await listed(connection, OWNER, limit=3)
        rest = await listed(connection, OWNER, after=page[-1], limit=3)
        assert [each.id for each in [*page, *rest]] == posts[::-1]
        assert [each.id for each in await listed(connection, OWNER, status="draft")] == [posts[0]]
        assert await listed(connection, "eve") == []
        assert await counts(connection, OWNER) == {"draft": 1, "review": 4}
        await refused("post.no_such_state", listed(connection, OWNER, status="done"))


async def test_a_post_is_found_by_its_first_letters(author: Author) -> None:
    """Four at least, and only when they are enough."""
    post = await author.review()
    async with author.database.connection() as connection:
        assert await find(connection, OWNER, str(post)) == post
        assert await find(connection, OWNER, f" {str(post)[:8].upper()} ") == post
        await refused("post.missing", find(connection, OWNER, str(post)[:3]))
        await refused("post.missing", find(connection, OWNER, "nonsense"))
        twin = UUID(int=post.int ^ 1)
        await connection.execute("INSERT INTO post (id, owner) VALUES ($1, $2)", twin, OWNER)
        await refused("post.ambiguous", find(connection, OWNER, str(post)[:8]))


# Snapshot

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(data=st.dictionaries(st.text(), JSON, max_size=5), order=st.randoms())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_the_same_content_has_the_same_hash(data: dict[str, Any], order: Any) -> None:
    """Whatever the order of names; and what is read back is what was written."""
    names = list(data)
    order.shuffle(names)
    shuffled = {name: data[name] for name in names}
    assert canonical(shuffled) == canonical(data)
    assert json.loads(canonical(data)) == data


def bytes_of(content: UUID) -> Bytes:
    """Give no bytes."""
    raise NotImplementedError(content)


async def test_a_snapshot_is_what_the_platform_gets(author: Author) -> None:
    """The account's and the platform's own words where they have some, the files it takes, options apart; and a key."""
    account = await author.account("da", "deviantart")
    own = {"deviantart": {"title": "Leuchtturm", "feature": True, "tags": ["c"]}, str(account): {"tags": ["b"]}}
    others = {"folder": {"title": "no"}, str(uuid4()): {"title": "no"}}
    post = await author.draft(2, description="Dusk", tags=["a"], overrides={**own, **others})
    await schedule(
        author.database, AT_ONCE, OWNER, post, datetime.now(UTC) + timedelta(hours=1), targets=[Target(account)]
    )
    publication = await author.publication(post)
    async with author.database.connection() as connection:
        snapshot = await look(connection, publication, MADE_AT, 1)
    data = json.loads(snapshot.text)
    first = (await author.show(post)).files[0]
    assert (data["title"], data["description"], data["tags"]) == ("Leuchtturm", "Dusk", ["b"])
    assert data["options"] == {"feature": True}
    assert [file["contentId"] for file in data["files"]] == [str(first.content_id)]  # DeviantArt takes one
    assert (data["key"], data["platform"], data["madeAt"]) == (str(publication), "deviantart", MADE_AT.isoformat())
    work = snapshot.work(lambda _: None)  # type: ignore[arg-type,return-value] # nobody reads the bytes here
    assert (work.key, work.title, work.files[0].sha256) == (str(publication), "Leuchtturm", first.sha256)
    assert snapshot.sha256 == sha256(snapshot.text.encode()).hexdigest()
    with pytest.raises(Problem, match="not what was written down"):
        Snapshot(snapshot.text.replace("Dusk", "Dawn"), snapshot.sha256).work(bytes_of)


async def test_an_article_sends_its_body_and_a_single_file_itself(author: Author) -> None:
    """And with several publications each sends its own file."""
    post = await author.scheduled(uploadMode="multiple", files=2, kind="article", body="Once upon a time")
    shown = await author.show(post)
    async with author.database.connection() as connection:
        sent = [json.loads((await look(connection, each.id, MADE_AT, None)).text) for each in shown.publications]
    assert {each["description"] for each in sent} == {"Once upon a time"}
    assert sorted(file["fileId"] for each in sent for file in each["files"]) == sorted(str(f.id) for f in shown.files)
    assert all(len(each["files"]) == 1 for each in sent)


async def test_the_database_keeps_a_snapshot_as_it_was(author: Author) -> None:
    """The hash must fit, and after the intent nobody writes another."""
    publication = await author.publication(await author.brought("publishing"))
    text, digest = "{}", sha256(b"{}").hexdigest()
    write = "UPDATE publication SET snapshot = $2, snapshot_sha256 = $3 WHERE id = $1 RETURNING id"
    with pytest.raises(asyncpg.CheckViolationError, match="publication_snapshot_is_whole"):
        await author.read(write, publication, text, "0" * 64)
    assert await author.read(write, publication, text, digest)
    other = '{"a":1}'
    with pytest.raises(asyncpg.CheckViolationError, match="cannot be written anew"):
        await author.read(write, publication, other, sha256(other.encode()).hexdigest())


@pytest.mark.parametrize("edit_first", [True, False])
async def test_an_edit_is_in_the_snapshot_or_finds_the_intent(author: Author, *, edit_first: bool) -> None:
    """Whoever has the post's row first is first; the other one waits and sees what became of it."""
    post = await author.brought("uploading")
    await author.read("UPDATE publication SET status = 'pending', phase = NULL, lease_until = NULL")
    publication = await author.publication(post)

    async def intend() -> str:
        async with author.database.transaction("worker", "about to send") as connection:
            if edit_first:
                await asyncio.sleep(0.1)
            lease = await connection.fetchval(
                "UPDATE publication SET status = 'running', phase = 'uploading', fence = fence + 1, "
                "lease_until = imprint_now() + interval '1 min' WHERE id = $1 RETURNING fence",
                publication,
            )
            snapshot, _ = await frozen(connection, await OF.one(connection, publication), MADE_AT, None)
            if not edit_first:
                await asyncio.sleep(0.1)
            await connection.execute(
                "UPDATE publication SET phase = 'publishing', intent_at = imprint_now(), snapshot = $3, "
                "snapshot_sha256 = $4 WHERE id = $1 AND fence = $2",
                publication,
                lease,
                snapshot.text,
                snapshot.sha256,
            )
            return str(json.loads(snapshot.text)["title"])

    async def change() -> str:
        if not edit_first:
            await asyncio.sleep(0.05)
        try:
            await edit(author.database, OWNER, post, {"title": "Edited"})
        except Problem as problem:
            return problem.code
        return "edited"

    sent, changed = await asyncio.gather(intend(), change())
    assert (sent, changed) in {("Edited", "edited"), ("A lighthouse at dusk", "post.on_its_way")}
    assert (changed == "edited") == edit_first
