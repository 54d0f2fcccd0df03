"""Variants: made once, recorded only when they exist, finished by whoever comes next, failed with a reason."""

import asyncio
from collections.abc import AsyncIterable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from imprint.blobs.local import LocalBlobs
from imprint.blobs.tally import NOTHING_PROMISED, Promise, Stored
from imprint.images.fit import Limits
from imprint.images.recipes import RECIPES
from imprint.images.refusal import MakerFailed
from imprint.problem import Unavailable
from imprint.store import incarnation
from imprint.work import plan as plans
from imprint.work.content_moves import delete, derive_again, retry
from imprint.work.derive import ATTEMPTS, requeue_lost
from imprint.work.orphans import collect
from imprint.work.purge import purge
from imprint.work.rendition import rendition
from imprint.work.upload import confirm
from tests.images.pictures import opened
from tests.images.test_hostile import FILES
from tests.waiting import until
from tests.work.scene import JPEG, OWNER, PNG, Scene, cut, scene
from tests.work.test_upload import refused

DONE = ("processed", "processed", ["processed"] * 3)
HOUR = timedelta(hours=1)


async def variants(at: Scene, content: UUID) -> dict[str, tuple[str, str, int, int]]:
    """Give key, hash, width and height of every variant that is recorded."""
    async with at.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT d.variant, o.key, o.sha256, o.width, o.height FROM derivation d JOIN object o ON o.id = d.object_id"
            " WHERE d.parent_id = $1 AND d.status = 'processed' AND d.deleted_at IS NULL",
            content,
        )
    return {row[0]: tuple(row[1:]) for row in rows}


async def test_a_thumbnail_step_by_step_as_the_seed_draws_it(at: Scene) -> None:
    """Created with its job, processing at a worker, its object created and uploaded, and only then processed."""
    content = await at.uploaded(JPEG, "image/jpeg")
    assert await at.states(content) == ("uploaded", "uploaded", ["created"] * 3)
    await at.derive(content)
    lines = [line for line in await at.story(content) if line.variant == "thumbnail"]
    assert [(line.lifecycle, line.move, line.target) for line in lines] == [
        ("derivation", "create", "created"),
        ("derivation", "process", "processing"),
        ("object", "create", "created"),
        ("object", "store", "uploaded"),
        ("derivation", "finish", "processed"),
    ]
    assert {line.actor for line in lines[1:]} == {"worker"}
    made = await variants(at, content)
    assert {name: size[2:] for name, size in made.items()} == {
        "thumbnail": (300, 225),
        "preview": (400, 300),
        "full": (400, 300),
    }
    for key, digest, width, height in made.values():
        file = at.folder / "objects" / key
        assert sha256(file.read_bytes()).hexdigest() == digest
        assert (opened(file).width, opened(file).height) == (width, height)
    assert await at.states(content) == DONE


async def test_a_second_delivery_does_nothing(at: Scene) -> None:
    """Not afterwards, and not at the same moment."""
    content = await at.uploaded()
    await asyncio.gather(*(at.derive(content) for _ in range(4)))
    assert await at.states(content) == DONE
    files = at.files()
    assert len(files) == 4
    await at.derive(content)
    assert at.files() == files
    assert [line.move for line in await at.story(content) if line.variant == "full"].count("process") == 1


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name][0] != "image.empty"])
async def test_hostile_files_end_in_the_right_state_with_the_right_code(at: Scene, name: str) -> None:
    """Refused at confirm when it is of another type, failed at once over its variants when it cannot be decoded."""
    code, make = FILES[name]
    data = make()
    kind = {"jpg": "image/jpeg", "tif": "image/tiff", "svg": "image/png", "heic": "image/avif"}.get(
        ending := name.rpartition(".")[2], f"image/{ending}"
    )
    if code in ("image.not_an_image", "image.type_not_allowed"):
        asked = await at.ask(data, kind)
        await at.send(asked.upload_url, data)
        await refused(confirm(at.database, at.stores, asked.file_id, OWNER), "upload.wrong_type")
        assert await at.states(asked.file_id) == ("failed", "failed", [])
        assert at.files() == []
        return
    content = await at.uploaded(data, kind)
    await at.derive(content)
    assert await at.states(content) == ("failed", "failed", ["failed"] * 3)
    assert await at.code(content) == code
    await at.derive(content)  # delivered again, it stays what it is
    assert [line.move for line in await at.story(content)].count("fail") == 5
    assert len(at.files()) == 1


async def test_a_failed_content_can_be_tried_again(at: Scene) -> None:
    """Failed, retried, failed again for the same reason: the history has it all."""
    data = JPEG[: len(JPEG) // 2]
    content = await at.uploaded(data, "image/jpeg")
    await at.derive(content)
    assert await at.code(content) == "image.truncated"
    await at.forget_jobs()
    await retry(at.database, content, OWNER)
    assert await at.states(content) == ("processing", "processing", ["processing"] * 3)
    assert await at.jobs() == [str(content)]
    await at.derive(content)
    assert await at.states(content) == ("failed", "failed", ["failed"] * 3)


async def test_a_damaged_or_missing_original_fails(at: Scene) -> None:
    """Its hash is checked before anything is made of it; put right by hand, a retry finishes it."""
    content = await at.uploaded()
    (file,) = at.files()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"x")
    await at.derive(content)
    assert await at.code(content) == "blob.wrong_hash"
    file.unlink()
    await retry(at.database, content, OWNER)
    await at.derive(content)
    assert await at.code(content) == "blob.missing"
    file.write_bytes(whole)
    await retry(at.database, content, OWNER)
    await at.derive(content)
    assert await at.states(content) == DONE


class Flaky(LocalBlobs):
    """A store that cannot be written for a while."""

    broken = False

    async def put(self, key: str, chunks: AsyncIterable[bytes], promise: Promise = NOTHING_PROMISED) -> Stored:
        """Refuse, while broken."""
        if self.broken:
            raise Unavailable("blob.unreachable", "Gone fishing.")
        return await super().put(key, chunks, promise)


async def test_temporary_trouble_is_retried_and_heals_by_itself(database_url: str, home: Path) -> None:
    """The queue comes again; after its last attempt the chore does; nothing is failed before a day has gone by."""
    blobs = Flaky(home / "blobs")
    async with scene(database_url, home, blobs) as at:
        content = await at.uploaded()
        blobs.broken = True
        with pytest.raises(Unavailable):
            await at.derive(content)
        assert await at.states(content) == ("processing", "processing", ["processing"] * 3)
        await at.derive(content, failures=ATTEMPTS - 1)  # the last attempt leaves no dead letter
        await at.forget_jobs()
        assert await requeue_lost(at.database) == 0
        await at.pass_time(HOUR)
        assert await requeue_lost(at.database) == 1
        assert await requeue_lost(at.database) == 0  # it is in the queue
        blobs.broken = False
        await at.derive(content)
        assert await at.states(content) == DONE


async def test_trouble_that_lasts_a_day_becomes_a_reason(database_url: str, home: Path) -> None:
    """Then a person is told; a retry works when the store is back."""
    blobs = Flaky(home / "blobs")
    async with scene(database_url, home, blobs) as at:
        content = await at.uploaded()
        blobs.broken = True
        with pytest.raises(Unavailable):
            await at.derive(content)
        await at.pass_time(25 * HOUR)
        await at.derive(content)
        assert await at.code(content) == "blob.unreachable"
        blobs.broken = False
        await retry(at.database, content, OWNER)
        await at.derive(content)
        assert await at.states(content) == DONE


async def test_a_child_that_dies_gets_one_more_chance(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it has failed."""

    async def dies(*_: object) -> None:
        raise MakerFailed("image.crashed", "The process that worked on the image died.")

    content = await at.uploaded()
    monkeypatch.setattr(at.deriver.maker, "make", dies)
    with pytest.raises(MakerFailed):
        await at.derive(content)
    await at.derive(content)
    assert await at.states(content) == ("failed", "failed", ["failed"] * 3)
    assert await at.code(content) == "image.crashed"


async def test_a_bug_is_put_back_and_at_last_failed(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left in limbo, and the dead letter keeps what happened."""

    async def wrong(*_: object) -> None:
        raise ZeroDivisionError

    content = await at.uploaded()
    monkeypatch.setattr(at.deriver.maker, "make", wrong)
    with pytest.raises(ZeroDivisionError):
        await at.derive(content)
    assert (await at.states(content))[0] == "processing"
    with pytest.raises(ZeroDivisionError):
        await at.derive(content, failures=ATTEMPTS - 1)
    assert await at.code(content) == "derive.bug"


async def test_a_file_that_kills_workers_is_quarantined(at: Scene) -> None:
    """Three leases that ended by themselves are enough."""
    content = await at.uploaded()
    async with at.database.connection() as connection:
        await connection.execute("UPDATE content SET status = 'processing' WHERE id = $1", content)
        await connection.execute(
            "UPDATE derivation SET status = 'processing', crashes = 2, lease_until = imprint_now() - interval '1 s'"
        )
    await at.derive(content)
    assert await at.states(content) == ("failed", "failed", ["failed"] * 3)
    assert await at.code(content) == "quarantined"


async def test_a_worker_that_is_told_to_stop_gives_its_work_back(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one need not wait for the lease to end."""
    begun = asyncio.Event()

    async def hangs(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    content = await at.uploaded()
    with monkeypatch.context() as patch:
        patch.setattr(at.deriver.maker, "make", hangs)
        work = asyncio.create_task(at.derive(content))
        await begun.wait()
        await at.derive(content)  # somebody has it: nothing to do
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    await at.derive(content)
    assert await at.states(content) == DONE
    assert list((at.stores.spool).iterdir()) == []


async def test_one_who_was_thought_dead_changes_nothing(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fence is old: what it made is taken away again, and there is one variant of each kind."""
    content = await at.uploaded()
    slow, go = asyncio.Event(), asyncio.Event()
    make = at.deriver.maker.make

    async def waits(*given: object) -> object:
        if slow.is_set():
            return await make(*given)  # type: ignore[arg-type] # as given
        slow.set()
        made = await make(*given)  # type: ignore[arg-type]
        await go.wait()
        return made

    monkeypatch.setattr(at.deriver.maker, "make", waits)
    sleeper = asyncio.create_task(at.derive(content))
    await slow.wait()
    async with at.database.connection() as connection:
        await connection.execute("UPDATE derivation SET lease_until = imprint_now() - interval '1 s'")
    await at.derive(content)
    assert await at.states(content) == DONE
    go.set()
    await sleeper
    assert len(at.files()) == 4
    assert await at.states(content) == DONE


async def test_deleted_by_force_meanwhile(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of it is not recorded, and its bytes are taken away again."""
    content = await at.uploaded()
    make = at.deriver.maker.make

    async def deletes(*given: object) -> object:
        await refused(delete(at.database, at.settings, content, OWNER), "content.processing")
        await delete(at.database, at.settings, content, OWNER, force=True)
        return await make(*given)  # type: ignore[arg-type] # as given

    monkeypatch.setattr(at.deriver.maker, "make", deletes)
    await at.derive(content)
    assert len(at.files()) == 1
    assert await variants(at, content) == {}


async def test_a_new_recipe_takes_the_place_of_the_old(at: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made beside it, recorded, and only then is the old one let go; its bytes go after the grace period."""
    content = await at.processed()
    newer = {name: replace(recipe, version=2) for name, recipe in RECIPES.items()}
    monkeypatch.setattr(plans, "RECIPES", newer)
    await derive_again(at.database, at.settings, content, OWNER, only=[])
    await at.derive(content)
    assert await at.states(content) == DONE
    assert len(at.files()) == 7
    await at.pass_time(timedelta(days=31))
    assert await purge(at.database, at.stores) == 3
    assert len(at.files()) == 4
    for key, _, _, _ in (await variants(at, content)).values():
        assert (at.folder / "objects" / key).exists()


async def test_made_again(at: Scene) -> None:
    """Processed, processing, processed, with new bytes under new keys."""
    content = await at.processed()
    before = await variants(at, content)
    await derive_again(at.database, at.settings, content, OWNER)
    assert await variants(at, content) == {}
    await refused(derive_again(at.database, at.settings, content, OWNER), "content.no_such_move")
    await at.derive(content)
    after = await variants(at, content)
    assert not {each[0] for each in before.values()} & {each[0] for each in after.values()}
    assert await at.states(content) == DONE


async def test_there_is_one_variant_of_a_kind(at: Scene) -> None:
    """PostgreSQL itself refuses a second one, and bytes of another content."""
    one, other = await at.processed(), await at.processed()
    async with at.database.connection() as connection:
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(
                "INSERT INTO derivation (parent_id, variant, recipe_version) VALUES ($1, 'full', 1)", one
            )
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await connection.execute(
                "UPDATE derivation SET object_id = (SELECT id FROM object WHERE content_id = $2 AND variant IS NULL)"
                " WHERE parent_id = $1 AND variant = 'full'",
                one,
                other,
            )


async def test_orphans_are_collected_after_a_while(at: Scene) -> None:
    """Bytes without a row go when they are old enough; those of rows, also of uploads on their way, stay."""
    await at.processed()
    waiting = await at.ask(PNG)
    await at.send(waiting.upload_url, PNG)
    await at.stores.blobs.put(key := "ab/cd/" + "abcd" + "0" * 28, cut(b"nobody's"))
    assert await collect(at.database, at.stores, at.settings) == 0
    await at.pass_time(timedelta(hours=25))
    assert await collect(at.database, at.stores, at.settings) == 1
    assert not (at.folder / "objects" / key).exists()
    assert len(at.files()) == 5
    assert await collect(at.database, at.stores, at.settings) == 0


async def test_nothing_is_collected_for_a_database_from_the_past(at: Scene) -> None:
    """A restored database does not know what came since: until a person has looked, every byte stays."""
    await at.stores.blobs.put("ab/cd/abcd" + "0" * 28, cut(b"newer than the backup"))
    await at.pass_time(timedelta(hours=25))
    async with at.database.connection() as connection:
        await incarnation.BEGIN.run(connection)
        await incarnation.HOLD.run(connection, "restored")
    assert await collect(at.database, at.stores, at.settings) == 0
    assert len(at.files()) == 1
    async with at.database.connection() as connection:
        await incarnation.accept(connection, at.settings.home)
    assert await collect(at.database, at.stores, at.settings) == 1


async def test_collecting_goes_on_where_it_was_stopped(at: Scene) -> None:
    """With no time at all it looks at nothing; then at all of it."""
    await at.stores.blobs.put("ab/cd/" + "abcd" + "0" * 28, cut(b"nobody's"))
    await at.pass_time(timedelta(hours=25))
    assert await collect(at.database, at.stores, at.settings, seconds=-1) == 0
    async with at.database.connection() as connection:
        await connection.execute("INSERT INTO sweep (name, cursor) VALUES ('orphans in local', 'ac')")
    assert await collect(at.database, at.stores, at.settings) == 0
    assert await collect(at.database, at.stores, at.settings) == 1


async def test_a_rendition_is_made_only_when_the_original_does_not_fit(at: Scene) -> None:
    """The original when it fits; else one that does, made once; content is not moved by it."""
    content = await at.processed(JPEG, "image/jpeg")
    roomy = Limits(frozenset({"image/jpeg"}), bytes=10_000_000)
    tight = Limits(frozenset({"image/jpeg"}), bytes=len(JPEG) // 3)
    original = await rendition(at.deriver, content, roomy)
    assert original.sha256 == sha256(JPEG).hexdigest()
    made = await rendition(at.deriver, content, tight)
    assert made.size <= len(JPEG) // 3
    assert await rendition(at.deriver, content, tight) == made
    assert len(at.files()) == 5
    assert await at.states(content) == DONE
    await refused(rendition(at.deriver, content, Limits(frozenset({"image/jpeg"}), bytes=10)), "image.cannot_fit")
    assert await at.states(content) == DONE
    other = await at.uploaded(JPEG, "image/jpeg")  # nobody has looked at it yet
    assert (await rendition(at.deriver, other, roomy)).sha256 == original.sha256
    await delete(at.database, at.settings, other, OWNER)
    await refused(rendition(at.deriver, other, roomy), "content.missing")


async def test_two_who_want_the_same_rendition(at: Scene) -> None:
    """One makes it, the other is told that somebody does, or finds it made."""
    content = await at.processed(JPEG, "image/jpeg")
    tight = Limits(frozenset({"image/jpeg"}), bytes=len(JPEG) // 3)
    answers = await asyncio.gather(*(rendition(at.deriver, content, tight) for _ in range(3)), return_exceptions=True)
    assert {getattr(answer, "code", "derive.busy") for answer in answers} == {"derive.busy"}
    assert len(at.files()) == 5

    async def there() -> bool:
        return (await rendition(at.deriver, content, tight)).size > 0

    assert await until(there)
