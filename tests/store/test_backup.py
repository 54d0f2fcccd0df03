"""A backup is whole or not there, and a restored one sends nothing before a person has looked."""

from pathlib import Path

import asyncpg
import pytest

from imprint.problem import Busy, Problem, Unavailable
from imprint.store import incarnation
from imprint.store.backup import back_up, back_up_before, restore_beside, restore_into
from imprint.store.embedded import running
from imprint.store.migrate import migrate
from imprint.store.query import Connection


async def test_what_was_backed_up_comes_back_and_is_held(home: Path) -> None:
    """Restoring puts the old rows in place of the new ones, saves the new ones aside and holds every send."""
    file = home / "b.dump"
    async with running(home) as server:
        await migrate(server.url)
        connection = await asyncpg.connect(server.url)
        await incarnation.check(connection, home, embedded=True)
        await connection.execute("INSERT INTO post (title) VALUES ('old')")
        assert await back_up(server.url, file) == file.stat().st_size
        await connection.execute("INSERT INTO post (title) VALUES ('new')")
        with pytest.raises(Busy):  # somebody is connected: nothing is touched
            await restore_beside(server.url, file, home / "backups", keep=5)
        assert await connection.fetchval("SELECT count(*) FROM post") == 2
        await connection.close()
        saved = await restore_beside(server.url, file, home / "backups", keep=5)
        connection = await asyncpg.connect(server.url)
        assert [row[0] for row in await connection.fetch("SELECT title FROM post")] == ["old"]
        assert "b.dump" in str((await incarnation.check(connection, home, embedded=True)).held_why)
        with pytest.raises(asyncpg.CheckViolationError):  # the lifecycles came along
            await connection.execute("UPDATE post SET status = 'published'")
        names = {row[0] for row in await connection.fetch("SELECT datname FROM pg_database")}
        await connection.close()
        assert names == {"imprint", "postgres", "template0", "template1"}
        assert saved is not None
        await restore_beside(server.url, saved, home / "backups", keep=5)
        connection = await asyncpg.connect(server.url)
        assert await connection.fetchval("SELECT count(*) FROM post") == 2
        await connection.close()


async def test_a_server_gets_a_backup_into_an_empty_database_only(
    database_url: str, empty_url: str, tmp_path: Path, connection: Connection
) -> None:
    """A database that holds something is never overwritten."""
    await connection.execute("INSERT INTO post (title) VALUES ('kept')")
    await back_up(database_url, tmp_path / "b.dump")
    with pytest.raises(Problem, match="not empty"):
        await restore_into(database_url, tmp_path / "b.dump")
    await restore_into(empty_url, tmp_path / "b.dump")
    restored = await asyncpg.connect(empty_url)
    assert await restored.fetchval("SELECT title FROM post") == "kept"
    await restored.close()


async def test_a_backup_does_not_overwrite(database_url: str, tmp_path: Path) -> None:
    """A file that is there stays as it is unless one insists; a failed backup leaves no file."""
    file = tmp_path / "b.dump"
    file.write_text("precious")
    with pytest.raises(Problem, match="already there"):
        await back_up(database_url, file)
    assert file.read_text() == "precious"
    await back_up(database_url, file, replace=True)
    assert file.read_bytes().startswith(b"PGDMP")
    with pytest.raises(Problem):
        await back_up(database_url.replace("/t_", "/no_such_"), tmp_path / "c.dump")
    with pytest.raises((Problem, Unavailable)):
        await back_up(database_url, tmp_path / "no" / "such" / "folder" / "d.dump")
    assert [path.name for path in tmp_path.iterdir()] == ["b.dump"]


@pytest.mark.parametrize("content", [b"", b"PGDMP", b"not a backup at all", b"\x00" * 4096])
async def test_what_is_no_backup_is_refused_in_one_sentence(empty_url: str, tmp_path: Path, content: bytes) -> None:
    """Garbage is named as such and changes nothing."""
    file = tmp_path / "garbage"
    file.write_bytes(content)
    with pytest.raises(Problem, match="is not a backup"):
        await restore_into(empty_url, file)
    with pytest.raises(Problem, match="There is no file"):
        await restore_into(empty_url, tmp_path / "missing")


async def test_a_backup_of_something_else_is_refused(empty_url: str, server_url: str, tmp_path: Path) -> None:
    """A dump of a database that is not Imprint's is not taken for ours."""
    await back_up(server_url, tmp_path / "other.dump")
    with pytest.raises(Problem, match="not of Imprint"):
        await restore_into(empty_url, tmp_path / "other.dump")


async def test_only_so_many_old_backups_are_kept(database_url: str, tmp_path: Path) -> None:
    """The oldest go; those made for another reason stay."""
    first = await back_up_before(database_url, tmp_path, "before-migration", keep=2)
    other = await back_up_before(database_url, tmp_path, "before-restore", keep=2)
    for _ in range(2):
        await back_up_before(database_url, tmp_path, "before-migration", keep=2)
    assert not first.exists()
    assert other.exists()
    assert len(list(tmp_path.glob("*-before-migration.dump"))) == 2


async def test_only_a_file_becomes_a_backup_and_only_its_owner_reads_it(database_url: str, tmp_path: Path) -> None:
    """A device or a folder is never replaced, a link stays a link, and what is written is private."""
    for other in (Path("/dev/null"), tmp_path, Path("-")):
        with pytest.raises(Problem, match="something else"):
            await back_up(database_url, other, replace=True)
    assert Path("/dev/null").is_char_device()
    (tmp_path / "link.dump").symlink_to(tmp_path / "real.dump")
    await back_up(database_url, tmp_path / "link.dump")
    assert (tmp_path / "link.dump").is_symlink()
    assert (tmp_path / "real.dump").stat().st_mode & 0o077 == 0
