"""The doctor sees content that is stuck, tables that disagree, and bytes that are missing or nobody's."""

from datetime import timedelta

from imprint.work.doctor import Finding, Level, examine
from imprint.work.upload import confirm
from tests.work.scene import JPEG, OWNER, PNG, Scene, cut


async def bad(at: Scene) -> list[Finding]:
    """Give what is not fine, but for the missing worker and the clock that tests have moved."""
    found = await examine(at.settings, at.database.url)
    assert all(finding.do for finding in found if finding.level is not Level.OK)
    return [each for each in found if each.level is not Level.OK and each.subject not in ("workers", "clock")]


async def test_a_good_house(at: Scene) -> None:
    """Nothing to tell but how much was listed."""
    await at.processed()
    await at.forget_jobs()
    assert await bad(at) == []
    found = [each.seen for each in await examine(at.settings, at.database.url) if each.subject == "bytes"]
    assert found == ["4 objects in the store local; all of it was listed"]


async def test_variants_that_nobody_makes_and_uploads_that_never_end(at: Scene) -> None:
    """After a while they are late or stuck; each says what to do."""
    await at.uploaded()
    await at.ask(PNG)
    await at.forget_jobs()
    assert await bad(at) == []
    await at.pass_time(timedelta(hours=3))
    found = await bad(at)
    assert {(each.subject, each.seen) for each in found} == {("variants", "3 late"), ("uploads", "1 stuck")}
    async with at.database.connection() as connection:
        await connection.execute("UPDATE content SET status = 'processing' WHERE status = 'uploaded'")
        await connection.execute(
            "UPDATE derivation SET status = 'processing', lease_until = imprint_now() - interval '1 hour'"
        )
    assert ("variants", "3 stuck") in {(each.subject, each.seen) for each in await bad(at)}


async def test_tables_that_disagree(at: Scene) -> None:
    """Each kind is named with examples and with the command that mends it."""
    content = await at.processed()
    await at.forget_jobs()
    async with at.database.connection() as connection:
        await connection.execute("ALTER TABLE content DISABLE TRIGGER ALL")
        for status, seen in (
            ("uploaded", "uploaded, and its variants are made"),
            ("processing", "processing, and nothing is left to be made"),
            ("created", "created, and its bytes are here"),
        ):
            await connection.execute("UPDATE content SET status = $1", status)
            (finding,) = await bad(at)
            assert finding.seen == f"1 {seen} (such as {content})"
            assert "imprint backfill --fix-status" in finding.do
        await connection.execute("UPDATE content SET status = 'processed'")
        await connection.execute("UPDATE object SET deleted_at = imprint_now() WHERE variant = 'full'")
        assert ["a variant is made, and its bytes were deleted" in each.seen for each in await bad(at)] == [True]


async def test_missing_changed_and_orphaned_bytes(at: Scene) -> None:
    """Missing bytes and another size are bad; what is nobody's is only mentioned, since it is removed by itself."""
    await at.processed(JPEG, "image/jpeg")
    await at.forget_jobs()
    one, other, *_ = at.files()
    one.unlink()
    other.write_bytes(b"short")
    await at.stores.blobs.put("ab/cd/abcd" + "0" * 28, cut(b"nobody's"))
    found = await examine(at.settings, at.database.url)
    seen = {each.seen.split(",")[0]: each.level for each in found if each.subject == "bytes"}
    assert seen == {
        "1 objects are missing in the store local": Level.BAD,
        "1 objects have another size in the store local": Level.BAD,
        "1 objects (8 bytes) belong to nothing; a worker will remove them": Level.OK,
    }


async def test_failed_content_is_worth_a_look(at: Scene) -> None:
    """With the reason, and how to try again."""
    content = await at.uploaded(JPEG[: len(JPEG) // 2], "image/jpeg")
    await at.derive(content)
    await at.forget_jobs()
    (finding,) = await bad(at)
    assert (finding.level, finding.seen) == (Level.WARN, f"failed: 1 image.truncated (such as {content})")
    assert "imprint content retry-failed" in finding.do


async def test_a_store_that_is_not_set_up(at: Scene) -> None:
    """The doctor says which one, and goes on."""
    asked = await at.ask(PNG)
    await at.send(asked.upload_url, PNG)
    await confirm(at.database, at.stores, asked.file_id, OWNER)
    async with at.database.connection() as connection:
        await connection.execute("UPDATE object SET store = 's3'")
    assert [each.subject for each in await bad(at)] == ["bytes"]
