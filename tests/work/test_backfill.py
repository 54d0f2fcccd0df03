"""Backfill: every damaged byte is found, what can be made again is, and a second run has nothing to do."""

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from imprint.images.fit import Limits
from imprint.images.recipes import RECIPES
from imprint.problem import Busy, Unavailable
from imprint.work import backfill as module
from imprint.work import plan as plans
from imprint.work.backfill import Finding, Options, Report, backfill
from imprint.work.content_moves import archive, retry
from imprint.work.rendition import rendition
from tests.work.scene import JPEG, OWNER, PNG, Scene
from tests.work.test_derive import DONE, variants

FIX, DRY = Options(fix_status=True), Options(fix_status=True, dry_run=True)


async def run(at: Scene, options: Options = FIX) -> tuple[Report, list[Finding]]:
    """Run it and collect what it tells."""
    found: list[Finding] = []
    return await backfill(at.database, at.stores, at.settings, options, found.append), found


async def settled(at: Scene) -> None:
    """Do all the jobs there are, as a worker would."""
    for job in await at.jobs():
        await at.derive(UUID(job))
    await at.forget_jobs()


def flip(file: Path, random: Random) -> None:
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    file.write_bytes(data)


async def test_a_good_house_has_nothing_to_do(at: Scene) -> None:
    """Everything is read, nothing is found, nothing is written."""
    for _ in range(3):
        await at.processed()
    await at.forget_jobs()
    report, found = await run(at)
    assert (report.contents, report.objects, report.found, report.left, found) == (3, 12, 0, 0, [])
    assert report.bytes == sum(file.stat().st_size for file in at.files())
    assert await at.jobs() == []


async def test_a_thousand_bit_flips_are_all_found(at: Scene) -> None:
    """In 250 originals and 750 variants, one bit each: 1,000 findings, each naming what it is about."""
    contents = [await at.processed() for _ in range(250)]
    await at.forget_jobs()
    random = Random(7)  # noqa: S311 - no secret
    for file in at.files():
        flip(file, random)
    report, found = await run(at, replace(DRY, fix_status=False))
    assert len(found) == 1000
    assert (report.broken_originals, report.broken_variants, report.objects) == (250, 750, 1000)
    assert {(each.content, each.variant) for each in found} == {
        (content, variant) for content in contents for variant in (None, "thumbnail", "preview", "full")
    }
    assert {each.code for each in found} == {"blob.wrong_hash"}


async def test_damaged_variants_are_made_again(at: Scene) -> None:
    """One changed, one cut, one gone: each is found, made again from the original, and right afterwards."""
    content = await at.processed(JPEG, "image/jpeg")
    await at.forget_jobs()
    files = {name: at.folder / "objects" / key for name, (key, *_) in (await variants(at, content)).items()}
    flip(files["thumbnail"], Random(1))  # noqa: S311
    files["preview"].write_bytes(files["preview"].read_bytes()[:-1])
    files["full"].unlink()
    report, found = await run(at, DRY)
    expected = {"thumbnail": "blob.wrong_hash", "preview": "blob.wrong_size", "full": "blob.missing"}
    assert {each.variant: each.code for each in found} == expected
    assert (report.left, await at.states(content), await at.jobs()) == (3, DONE, [])
    report, found = await run(at)
    assert {each.variant: each.done for each in found} == dict.fromkeys(expected, "made again")
    assert (report.left, report.queued, await at.jobs()) == (0, 1, [str(content)])
    assert (await run(at))[0].found == 0  # it is in the queue: nothing more to do
    await settled(at)
    assert await at.states(content) == DONE
    assert (await run(at))[0].found == 0


async def test_a_damaged_original_can_only_be_told_of(at: Scene) -> None:
    """With --fix-status it is failed with the reason, and known the next time; put back, a retry finishes it."""
    content = await at.processed()
    await at.forget_jobs()
    async with at.database.connection() as connection:
        key = await connection.fetchval("SELECT key FROM object WHERE variant IS NULL")
    file = at.folder / "objects" / key
    whole = file.read_bytes()
    flip(file, Random(1))  # noqa: S311
    report, found = await run(at, Options())
    assert [(each.variant, each.code, each.done) for each in found] == [(None, "blob.wrong_hash", "")]
    assert (report.left, (await at.states(content))[0]) == (1, "processed")
    report, _ = await run(at)
    assert (report.broken_originals, report.states_mended, report.left) == (1, 1, 1)
    assert ((await at.states(content))[0], await at.code(content)) == ("failed", "blob.wrong_hash")
    assert (await run(at))[0].found == 0
    file.write_bytes(whole)
    report, found = await run(at)
    assert [(each.code, each.done) for each in found] == [("state.failed", "processed")]
    assert await at.states(content) == DONE
    assert (await run(at))[0].found == 0
    assert await at.jobs() == []
    flip(file, Random(1))  # noqa: S311
    await run(at)
    file.write_bytes(whole)
    await retry(at.database, content, OWNER)
    await settled(at)
    assert await at.states(content) == DONE


async def test_states_that_disagree_are_mended(at: Scene) -> None:
    """The seed's mismatch: variants are there and verified, and content still says uploaded."""
    content = await at.processed()
    await at.forget_jobs()
    for status in ("uploaded", "processing"):
        async with at.database.connection() as connection, connection.transaction():
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute("ALTER TABLE content DISABLE TRIGGER ALL")
            await connection.execute("UPDATE content SET status = $1", status)
            await connection.execute("ALTER TABLE content ENABLE ALWAYS TRIGGER lifecycle_stamp")
            await connection.execute("ALTER TABLE content ENABLE ALWAYS TRIGGER lifecycle_move")
        report, found = await run(at, Options())
        assert [each.code for each in found] == [f"state.{status}"]
        assert (report.wrong_states, report.states_mended, report.left) == (1, 0, 1)
        report, found = await run(at)
        assert (report.states_mended, report.left, found[0].done) == (1, 0, "processed")
        assert (await at.states(content))[0] == "processed"
        assert (await run(at))[0].found == 0


async def test_lost_jobs_and_new_recipes_are_queued(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variant that nobody will make is queued; so is one that a newer recipe asks for."""
    content = await at.uploaded()
    await at.forget_jobs()
    report, found = await run(at, DRY)
    assert (report.missing_variants, found[0].code, await at.jobs()) == (1, "derive.lost", [])
    assert (await run(at))[0].queued == 1
    assert (await run(at))[0].found == 0
    await settled(at)
    assert await at.states(content) == DONE
    newer = {name: replace(recipe, version=2) for name, recipe in RECIPES.items()}
    monkeypatch.setattr(plans, "RECIPES", newer)
    report, found = await run(at)
    assert (report.missing_variants, {each.code for each in found}) == (3, {"derive.missing"})
    await settled(at)
    assert await at.states(content) == DONE
    assert (await run(at))[0].found == 0


async def test_failed_content_is_left_alone(at: Scene) -> None:
    """A file that cannot be decoded is not queued for ever."""
    content = await at.uploaded(JPEG[: len(JPEG) // 2], "image/jpeg")
    await settled(at)
    assert (await run(at))[0].found == 0
    assert (await at.states(content))[0] == "failed"
    assert await at.jobs() == []


async def test_archived_content_is_verified_and_not_touched(at: Scene) -> None:
    """Damage is told; nothing is made again."""
    content = await at.processed()
    await archive(at.database, content, OWNER)
    await at.forget_jobs()
    for file in at.files():
        flip(file, Random(2))  # noqa: S311
    report, found = await run(at)
    assert (len(found), report.left) == (4, 4)
    assert (await at.states(content))[0] == "archived"
    assert await at.jobs() == []


async def test_a_damaged_rendition_is_let_go_and_made_when_asked_for(at: Scene) -> None:
    """It belongs to whoever asked, so the content is not moved."""
    content = await at.processed(JPEG, "image/jpeg")
    await at.forget_jobs()
    tight = Limits(frozenset({"image/jpeg"}), bytes=len(JPEG) // 3)
    made = await rendition(at.deriver, content, tight)
    flip(at.folder / "objects" / made.key, Random(3))  # noqa: S311
    report, found = await run(at)
    assert (report.broken_variants, found[0].done, report.left) == (1, "let go", 0)
    assert await at.states(content) == DONE
    assert (await run(at))[0].found == 0
    assert (await rendition(at.deriver, content, tight)).key != made.key


async def test_a_run_that_was_stopped_goes_on(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each content is looked at once over both runs; a dry run begins at the beginning."""
    monkeypatch.setattr(module, "PAGE", 2)
    for _ in range(5):
        await at.processed(PNG)
    await at.forget_jobs()
    seen: list[int] = []

    def stop(done: int, _: int) -> None:
        seen.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await backfill(at.database, at.stores, at.settings, FIX, progress=stop)
    assert (await run(at, DRY))[0].contents == 5
    report, _ = await run(at)
    assert (report.resumed, report.contents, report.objects) == (True, 5, 20)
    report, _ = await run(at)
    assert (report.resumed, report.contents) == (False, 5)


async def test_two_at_once_are_one(at: Scene) -> None:
    """The second is told so at once, and can run when the first is done."""
    await at.processed()
    for _ in range(50):  # until they really meet: one of them may be done before the other begins
        answers = await asyncio.gather(run(at), run(at), return_exceptions=True)
        if any(isinstance(answer, Busy) for answer in answers):
            break
    assert sorted(type(answer).__name__ for answer in answers) == ["Busy", "tuple"]
    assert any(isinstance(answer, Busy) and answer.code == "sweep.busy" for answer in answers)
    assert (await run(at))[0].contents == 1


async def test_a_store_that_is_away_has_lost_nothing(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run stops; nothing is called missing."""
    content = await at.processed()

    async def away() -> None:
        raise Unavailable("blob.unreachable", "Gone fishing.")

    monkeypatch.setattr(at.stores.blobs, "check", away)
    with pytest.raises(Unavailable):
        await run(at)
    assert await at.states(content) == DONE
