"""Content: what may be done with it in which state, and what is told of it."""

from datetime import timedelta
from uuid import uuid4

import pytest

from imprint.blobs.tally import Broken
from imprint.lifecycles.content import CONTENT, ContentStatus
from imprint.store.query import Connection
from imprint.work.content import by_status, bytes_of, counts, find, history, read, show
from imprint.work.content_moves import archive, delete, restore, retry, retry_failed, update_many
from imprint.work.purge import purge
from imprint.work.tend import tend
from imprint.work.upload import reap
from tests.store.test_query import nodes, plan, queries
from tests.work.scene import JPEG, OWNER, PNG, Scene
from tests.work.test_upload import refused

DAY = timedelta(days=1)
HALF = JPEG[: len(JPEG) // 2]


async def test_by_status_in_pages(at: Scene) -> None:
    """The newest first, each once, also across pages; of one state or of all; a state that is none is refused."""
    added = [await at.uploaded() for _ in range(5)]
    await at.derive(added[2])
    async with at.database.connection() as connection:
        seen: list[object] = []
        page = await by_status(connection, limit=2)
        while page:
            seen += [each.id for each in page]
            page = await by_status(connection, after=page[-1], limit=2)
        assert seen == added[::-1]
        assert [each.id for each in await by_status(connection, "processed")] == [added[2]]
        assert await counts(connection) == {"processed": 1, "uploaded": 4}
        await refused(by_status(connection, "active"), "content.no_state")


async def test_found_by_its_first_letters(at: Scene) -> None:
    """Enough of them, of one content only."""
    content = await at.uploaded()
    async with at.database.connection() as connection:
        for text in (str(content), content.hex, str(content)[:8], str(content)[:10].upper()):
            assert await find(connection, text) == content
        for text in ("", "zz", str(content)[:3], uuid4().hex, "x" * 99):
            await refused(find(connection, text), "content.missing")


async def test_show_tells_what_it_can_become(at: Scene) -> None:
    """The moves of the declaration, the original and the variants."""
    content = await at.processed()
    async with at.database.connection() as connection:
        data = (await show(connection, content)).as_data()
    assert {move["to"] for move in data["moves"]} == {arrow.target for arrow in CONTENT.open_to("processed")}
    assert data["objects"][0]["variant"] is None
    assert {each["variant"] for each in data["variants"]} == {"thumbnail", "preview", "full"}
    assert data["errorCode"] is None


async def test_history_is_the_audit_of_content_objects_and_variants(at: Scene) -> None:
    """Who, what, when and why; of content that never was there is none."""
    content = await at.processed()
    async with at.database.connection() as connection:
        lines = await history(connection, content)
        assert {line.lifecycle for line in lines} == {"content", "object", "derivation"}
        assert len(lines) == 10 + 3 * 5
        assert all(line.actor in (OWNER, "worker") and line.reason for line in lines)
        await refused(history(connection, uuid4()), "content.missing")


@pytest.mark.parametrize("status", list(ContentStatus))
async def test_downloads_only_when_uploaded_processed_or_archived(at: Scene, status: str) -> None:
    """Every state is tried."""
    content = await at.uploaded()
    async with at.database.connection() as connection:
        await connection.execute("ALTER TABLE content DISABLE TRIGGER ALL")
        await connection.execute(
            "UPDATE content SET status = $2, error_code = CASE $2 WHEN 'failed' THEN 'x' END WHERE id = $1",
            content,
            status,
        )
        if status in ("uploaded", "processed", "archived"):
            _, held = await bytes_of(connection, content)
            assert b"".join([chunk async for chunk in read(at.stores, held)]) == PNG
        else:
            await refused(bytes_of(connection, content), "content.not_downloadable")


async def test_a_download_is_verified(at: Scene) -> None:
    """Changed bytes are told at the end, and a variant that is not there is not given."""
    content = await at.processed()
    async with at.database.connection() as connection:
        _, held = await bytes_of(connection, content, "thumbnail")
        await refused(bytes_of(connection, content, "poster"), "content.no_variant")
    file = at.folder / "objects" / held.key
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(Broken):
        [chunk async for chunk in read(at.stores, held)]


async def test_deleted_softly_restored_and_purged(at: Scene) -> None:
    """Only `deleted_at` is set; within the grace period it comes back; then the bytes are gone, the rows are not."""
    content = await at.processed()
    deleted = await delete(at.database, at.settings, content, OWNER)
    assert (deleted.status, deleted.deleted_at is not None) == ("processed", True)
    await refused(delete(at.database, at.settings, content, OWNER), "content.missing")
    async with at.database.connection() as connection:
        assert await by_status(connection) == []
        await refused(bytes_of(connection, content), "content.missing")
    assert await purge(at.database, at.stores) == 0
    await restore(at.database, content, OWNER)
    async with at.database.connection() as connection:
        assert len(await by_status(connection)) == 1
    await delete(at.database, at.settings, content, OWNER)
    await at.pass_time(31 * DAY)
    assert await purge(at.database, at.stores) == 4
    assert at.files() == []
    await refused(restore(at.database, content, OWNER), "content.gone")
    async with at.database.connection() as connection:
        shown = await show(connection, content)
        assert shown.content.purged_at is not None
        assert await connection.fetchval("SELECT count(*) FROM object WHERE content_id = $1", content) == 4
    assert await purge(at.database, at.stores) == 0


async def test_archive(at: Scene) -> None:
    """From uploaded and processed; then it can be downloaded, and nothing else."""
    content, fresh = await at.processed(), (await at.ask(PNG)).file_id
    await archive(at.database, content, OWNER)
    assert (await at.states(content))[0] == "archived"
    await refused(archive(at.database, content, OWNER), "content.no_such_move")
    await refused(archive(at.database, fresh, OWNER), "content.no_such_move")
    await refused(archive(at.database, uuid4(), OWNER), "content.missing")


async def test_many_at_once_each_checked(at: Scene) -> None:
    """A report for each row: done, or why not; one that cannot does not stop the others."""
    processed, uploaded, fresh = await at.processed(), await at.uploaded(), (await at.ask(PNG)).file_id
    nobody = uuid4()
    outcomes = await update_many(at.database, at.settings, [fresh, processed, nobody, uploaded], "archived", OWNER)
    assert [(each.id, each.done, each.code) for each in outcomes] == [
        (fresh, False, "content.no_such_move"),
        (processed, True, ""),
        (nobody, False, "content.missing"),
        (uploaded, True, ""),
    ]
    assert "created cannot become archived" in outcomes[0].sentence
    for target in ("uploaded", "failed", "nonsense"):
        (outcome,) = await update_many(at.database, at.settings, [fresh], target, OWNER)
        assert outcome.code == "content.follows"
    again = await at.processed()
    outcomes = await update_many(at.database, at.settings, [again, fresh], "processing", OWNER)
    assert [each.done for each in outcomes] == [True, False]
    assert (await at.states(again))[0] == "processing"


async def test_retry_failed(at: Scene) -> None:
    """What has bytes is tried again; what never came must be uploaded again; what did not fail cannot be."""
    bad, good = await at.uploaded(HALF, "image/jpeg"), await at.processed()
    await at.derive(bad)
    empty = (await at.ask(PNG)).file_id
    await at.pass_time(DAY)
    await reap(at.database, at.stores)
    outcomes = {each.id: each for each in await retry_failed(at.database, OWNER)}
    assert outcomes.keys() == {bad, empty}
    assert (outcomes[bad].done, outcomes[empty].code) == (True, "content.no_bytes")
    assert await at.states(bad) == ("processing", "processing", ["processing"] * 3)
    await refused(retry(at.database, good, OWNER), "content.no_such_move")


async def test_the_chore_tends_to_everything(at: Scene) -> None:
    """Unfinished uploads, lost jobs, what is past its grace, and an old spool, in one call."""
    await at.ask(PNG)
    gone, lost = await at.processed(), await at.uploaded()
    await delete(at.database, at.settings, gone, OWNER)
    await at.forget_jobs()
    left = at.stores.spool / "derive-of-the-dead"
    left.mkdir()
    await at.pass_time(31 * DAY)
    tended = await tend(at.database, at.stores, at.settings)
    assert (tended.uploads_ended, tended.jobs_put_back, tended.objects_purged) == (1, 1, 4)
    assert await at.jobs() == [str(lost)]
    assert left.exists()  # it is fresh by the clock of this machine


# Each with the index it must go down; none may read a whole table.
PLANS = {
    "content_newest": "content_by_time",
    "content_in_state": "content_by_status",
    "content_found": "content_pkey",
    "content_failed": "content_by_status",
    "upload_use": "object_key",
    "upload_expired": "object_unfinished",
    "upload_unfinished": "object_promised",
    "derive_claim": "derivation_parent_id_variant_recipe_version_key",
    "derive_source": "content_pkey",
    "derive_lost": "derivation_open",
    "derive_tally": "derivation_parent_id_variant_recipe_version_key",
    "backfill_page": "content_pkey",
    "backfill_variants": "derivation_parent_id_variant_recipe_version_key",
    "orphan_known": "object_in_store",
    "content_purge_due": "object_to_purge",
}


async def test_queries_go_down_an_index(connection: Connection) -> None:
    """Among 20,000 contents, 80,000 objects and 60,000 variants none of them reads a whole table."""
    for table in ("content", "object", "derivation"):
        await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    await connection.execute("""
        INSERT INTO content (name, status, error_code, created_at)
        SELECT 'c', CASE n % 1000 WHEN 0 THEN 'failed' WHEN 1 THEN 'uploading' ELSE 'processed' END,
               CASE n % 1000 WHEN 0 THEN 'x' END, imprint_now() - n * interval '1 s' FROM generate_series(1, 20000) n;
        INSERT INTO object (content_id, variant, status, store, key, size, sha256, content_type)
        SELECT c.id, v, 'uploaded', 'local', substr(md5(c.id || coalesce(v, '')), 1, 2) || '/' || gen_random_uuid(), 1,
               repeat('0', 64), 'image/png'
        FROM content c, unnest(ARRAY[NULL, 'thumbnail', 'preview', 'full']) v;
        INSERT INTO derivation (parent_id, variant, recipe_version, status, object_id)
        SELECT content_id, variant, 1, 'processed', id FROM object WHERE variant IS NOT NULL;
        """)
    await connection.execute("VACUUM ANALYZE")
    for name, index in PLANS.items():
        found = list(nodes(await plan(connection, queries()[name])))
        assert index in {node.get("Index Name") for node in found}, f"{name}: {found}"
        read_whole = {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"}
        assert not {"content", "object", "derivation"} & read_whole, name
