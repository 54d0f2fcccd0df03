"""Uploads: only what was verified is called uploaded, and what went wrong can be tried again."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from imprint.blobs.memory import MemoryBlobs
from imprint.blobs.signing import LocalUploads
from imprint.problem import Problem
from imprint.work.add import add
from imprint.work.upload import Wanted, ask, ask_again, confirm, label, reap, receive
from tests.work.scene import JPEG, OWNER, PNG, Scene, cut, scene

HOUR = timedelta(hours=1)


async def refused(work: object, code: str) -> Problem:
    """Expect a problem with this code."""
    with pytest.raises(Problem) as caught:
        await work  # type: ignore[misc] # a coroutine
    assert caught.value.code == code, caught.value.sentence
    return caught.value


async def test_an_original_step_by_step_as_the_seed_draws_it(at: Scene) -> None:
    """Ask: both created; send: both uploading; confirm: both uploaded, in one transaction with the jobs."""
    asked = await at.ask(PNG)
    assert await at.states(asked.file_id) == ("created", "created", [])
    assert at.files() == []
    await at.send(asked.upload_url, PNG)
    assert await at.states(asked.file_id) == ("uploading", "uploading", [])
    assert await at.jobs() == []
    confirmed = await confirm(at.database, at.stores, asked.file_id, OWNER)
    assert (confirmed.status, confirmed.size, confirmed.sha256) == ("uploaded", len(PNG), sha256(PNG).hexdigest())
    assert await at.states(asked.file_id) == ("uploaded", "uploaded", ["created"] * 3)
    assert await at.jobs() == [str(asked.file_id)]
    await at.derive(asked.file_id)
    assert await at.states(asked.file_id) == ("processed", "processed", ["processed"] * 3)
    moves = [(line.lifecycle, line.move) for line in await at.story(asked.file_id) if line.variant is None]
    assert moves == [
        ("content", "create"),
        ("object", "create"),
        ("content", "upload"),
        ("object", "upload"),
        ("object", "store"),
        ("content", "store"),
        ("content", "process"),
        ("object", "process"),
        ("content", "finish"),
        ("object", "finish"),
    ]
    stored = [line for line in await at.story(asked.file_id) if line.move == "store" and line.variant is None]
    assert len({line.at for line in stored}) <= 2  # statements of one transaction
    assert {line.actor for line in stored} == {OWNER}


async def test_confirm_is_idempotent_also_at_the_same_moment(at: Scene) -> None:
    """Confirmed once, twice or by many at once: one move, one job, the same answer."""
    asked = await at.ask(PNG)
    await at.send(asked.upload_url, PNG)
    answers = await asyncio.gather(
        *(confirm(at.database, at.stores, asked.file_id, OWNER) for _ in range(8)), return_exceptions=True
    )
    good = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert good
    assert {getattr(answer, "code", "upload.busy") for answer in answers if answer not in good} <= {"upload.busy"}
    assert await confirm(at.database, at.stores, asked.file_id, OWNER) == good[0]
    assert await at.jobs() == [str(asked.file_id)]
    assert [line.move for line in await at.story(asked.file_id)].count("store") == 2


async def test_nothing_is_confirmed_before_bytes_came(at: Scene) -> None:
    """It says so and changes nothing: the bytes can still be sent."""
    asked = await at.ask(PNG)
    await refused(confirm(at.database, at.stores, asked.file_id, OWNER), "upload.missing")
    assert await at.states(asked.file_id) == ("created", "created", [])
    await at.send(asked.upload_url, PNG)
    await confirm(at.database, at.stores, asked.file_id, OWNER)


async def test_only_the_owner_confirms(at: Scene) -> None:
    """For anybody else there is no such content."""
    asked = await at.ask(PNG)
    await at.send(asked.upload_url, PNG)
    await refused(confirm(at.database, at.stores, asked.file_id, "eve"), "content.missing")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (PNG + b"x", "blob.wrong_size"),
        (PNG[:-1], "blob.wrong_size"),
        (PNG[:-1] + b"x", "blob.wrong_hash"),
    ],
)
async def test_wrong_bytes_fail_the_upload_and_it_can_be_done_again(at: Scene, sent: bytes, code: str) -> None:
    """Too many, too few or others than promised: failed with a code, nothing kept, and the second try works."""
    asked = await at.ask(PNG)
    problem = await refused(at.send(asked.upload_url, sent), code)
    assert problem.sentence.endswith(".")
    assert await at.states(asked.file_id) == ("failed", "failed", [])
    assert await at.code(asked.file_id) == code
    assert at.files() == []
    again = await ask_again(
        at.database, at.stores, at.settings, asked.file_id, Wanted("a.png", "image/png", len(PNG)), OWNER
    )
    assert again.storage_key != asked.storage_key
    assert await at.states(asked.file_id) == ("uploading", "uploading", [])
    await at.send(again.upload_url, PNG)
    await confirm(at.database, at.stores, asked.file_id, OWNER)
    await at.derive(asked.file_id)
    assert await at.states(asked.file_id) == ("processed", "processed", ["processed"] * 3)


@pytest.mark.parametrize(
    ("data", "promised"),
    [
        (b"<!DOCTYPE html><script>alert(1)</script>", "image/png"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "image/png"),
        (JPEG, "image/png"),
        (b"nothing anybody knows", "image/gif"),
        (b"%PDF-1.7", "image/jpeg"),
    ],
)
async def test_another_type_than_promised_fails_at_confirm(at: Scene, data: bytes, promised: str) -> None:
    """What a file is decides, not what it is called; its bytes are not kept."""
    asked = await at.ask(data, promised)
    await at.send(asked.upload_url, data)
    await refused(confirm(at.database, at.stores, asked.file_id, OWNER), "upload.wrong_type")
    assert await at.states(asked.file_id) == ("failed", "failed", [])
    assert await at.code(asked.file_id) == "upload.wrong_type"
    assert at.files() == []
    assert await at.jobs() == []


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (Wanted("a", "image/svg+xml", 10), "upload.type_not_allowed"),
        (Wanted("a", "text/html", 10), "upload.type_not_allowed"),
        (Wanted("a", "image/png", 0), "upload.empty"),
        (Wanted("a", "image/png", -1), "upload.empty"),
        (Wanted("a", "image/png", 10**9), "upload.too_large"),
        (Wanted("a", "image/png", 10, "NOT A HASH"), "blob.bad_promise"),
    ],
)
async def test_what_can_never_be_uploaded_is_refused_at_once(at: Scene, wanted: Wanted, code: str) -> None:
    """Without a row or a URL."""
    await refused(ask(at.database, at.stores, at.settings, wanted, OWNER), code)
    async with at.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM content") == 0


async def test_a_url_is_used_once(at: Scene) -> None:
    """A second PUT is refused before a byte is read, also at the same moment."""
    asked = await at.ask(PNG)
    answers = await asyncio.gather(*(at.send(asked.upload_url, PNG) for _ in range(5)), return_exceptions=True)
    assert answers.count(None) == 1
    assert {answer.code for answer in answers if isinstance(answer, Problem)} == {"upload.used"}
    await refused(at.send(asked.upload_url, PNG), "upload.used")
    assert len(at.files()) == 1


async def test_a_connection_that_breaks_may_try_again(at: Scene) -> None:
    """Nothing was stored, so the URL is as good as before."""

    async def breaks() -> AsyncIterator[bytes]:
        yield PNG[:5]
        raise ConnectionResetError("gone")

    asked = await at.ask(PNG)
    uploads = at.stores.uploads
    assert isinstance(uploads, LocalUploads)
    target = asked.upload_url.removeprefix("http://127.0.0.1:7600")
    with pytest.raises(ConnectionResetError):
        await receive(at.database, at.stores, uploads, "PUT", target, breaks())
    await at.send(asked.upload_url, PNG)
    await confirm(at.database, at.stores, asked.file_id, OWNER)


async def test_headers_are_held_against_the_grant(at: Scene) -> None:
    """Another type or length than promised is refused before the URL is used up; so is another method."""
    asked = await at.ask(PNG)
    uploads = at.stores.uploads
    assert isinstance(uploads, LocalUploads)
    target = asked.upload_url.removeprefix("http://127.0.0.1:7600")

    async def with_headers(method: str = "PUT", kind: str | None = None, length: int | None = None) -> None:
        await receive(at.database, at.stores, uploads, method, target, cut(PNG), content_type=kind, length=length)

    await refused(with_headers(kind="text/html"), "upload.refused")
    await refused(with_headers(length=1), "upload.refused")
    await refused(with_headers(method="POST"), "upload.refused")
    await with_headers(kind="image/png; charset=binary", length=len(PNG))


async def test_uploads_that_never_ended_are_reaped(at: Scene) -> None:
    """Nothing came: failed as expired. All came, and nobody confirmed: confirmed. Still in time: left alone."""
    empty, whole = await at.ask(PNG), await at.ask(PNG)
    await at.send(whole.upload_url, PNG)
    assert await reap(at.database, at.stores) == 0
    await at.pass_time(2 * HOUR)
    fresh = await at.ask(PNG)
    assert await reap(at.database, at.stores) == 2
    assert await at.states(empty.file_id) == ("failed", "failed", [])
    assert await at.code(empty.file_id) == "upload.expired"
    assert await at.states(whole.file_id) == ("uploaded", "uploaded", ["created"] * 3)
    assert await at.jobs() == [str(whole.file_id)]
    assert await at.states(fresh.file_id) == ("created", "created", [])
    assert await reap(at.database, at.stores) == 0


async def test_bytes_that_came_too_late_still_count(at: Scene) -> None:
    """An upload that was given up while it was on its way is confirmed when it has arrived."""
    asked = await at.ask(PNG)
    await at.pass_time(2 * HOUR)
    await reap(at.database, at.stores)
    await at.stores.blobs.put(asked.storage_key, cut(PNG))
    await confirm(at.database, at.stores, asked.file_id, OWNER)
    assert await at.states(asked.file_id) == ("uploaded", "uploaded", ["created"] * 3)


async def test_an_expired_url_is_refused(at: Scene) -> None:
    """The database's clock decides."""
    asked = await at.ask(PNG)
    await at.pass_time(HOUR)
    await refused(at.send(asked.upload_url, PNG), "upload.expired")


async def test_the_database_refuses_what_is_not_verified(at: Scene) -> None:
    """Raw SQL cannot call an object uploaded without its hash, size, key and type."""
    asked = await at.ask(PNG)
    async with at.database.connection() as connection:
        for change in ("status = 'uploaded'", "status = 'uploaded', sha256 = repeat('0', 64), size = 1", "size = 1"):
            with pytest.raises(Exception, match="check constraint"):
                await connection.execute(f"UPDATE object SET {change} WHERE content_id = $1", asked.file_id)


@pytest.mark.parametrize(
    ("filename", "shown"),
    [
        ("a.png", "a.png"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\a.png", "a.png"),
        ("a\x00b\n.png", "ab.png"),
        ("", "unnamed"),
        ("/", "unnamed"),
        ("x" * 500, "x" * 200),
    ],
)
def test_a_filename_is_only_a_label(filename: str, shown: str) -> None:
    """Whatever it is, no part of it becomes a path."""
    assert label(filename) == shown


async def test_a_file_of_this_machine_in_one_call(at: Scene, tmp_path: Path) -> None:
    """Named by its bytes, told how far it is, and one that was cut short is gone on with."""
    file = tmp_path / "photo.png"
    file.write_bytes(JPEG)
    told: list[int] = []
    confirmed = await add(at.database, at.stores, at.settings, file, OWNER, told.append)
    assert (confirmed.content_type, sum(told)) == ("image/jpeg", len(JPEG))
    wanted = Wanted("photo.png", "image/jpeg", len(JPEG), sha256(JPEG).hexdigest())
    cut_short = await ask(at.database, at.stores, at.settings, wanted, OWNER)
    assert (await add(at.database, at.stores, at.settings, file, OWNER)).file_id == cut_short.file_id
    assert (await add(at.database, at.stores, at.settings, file, OWNER)).file_id != cut_short.file_id
    for name, data, code in (
        ("page.png", b"<html>", "upload.type_not_allowed"),
        ("empty.png", b"", "upload.empty"),
    ):
        (tmp_path / name).write_bytes(data)
        await refused(add(at.database, at.stores, at.settings, tmp_path / name, OWNER), code)
    await refused(add(at.database, at.stores, at.settings, tmp_path, OWNER), "content.folder")
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it, and nobody is waited for
    await refused(add(at.database, at.stores, at.settings, tmp_path / "pipe", OWNER), "content.not_a_file")
    with (tmp_path / "huge.jpg").open("wb") as huge:
        huge.truncate(at.settings.upload_largest_mb * 1_000_000 + 1)
    await refused(add(at.database, at.stores, at.settings, tmp_path / "huge.jpg", OWNER), "upload.too_large")
    await refused(add(at.database, at.stores, at.settings, tmp_path / "none", OWNER), "content.unreadable")


async def test_the_same_without_a_disk(database_url: str, home: Path) -> None:
    """A store that has no files is streamed through the spool."""
    async with scene(database_url, home, MemoryBlobs()) as at:
        content = await at.processed(JPEG, "image/jpeg")
        assert await at.states(content) == ("processed", "processed", ["processed"] * 3)
        assert list((home / "spool").iterdir()) == []


def test_a_name_is_text_and_keeps_its_ending() -> None:
    """A name that is no text on the disk becomes some, and a long one is shortened before its ending."""
    assert label(os.fsdecode(b"bad\xff.jpg")) == "bad\ufffd.jpg"
    shortened = label("x" * 300 + ".png")
    assert shortened.endswith("x.png")
    assert len(shortened) <= 200
