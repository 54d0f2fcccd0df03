"""Worker and HTTP server run alone against a server that others share; what does not fit is refused in a sentence."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import httpx2
import pytest

from imprint.engine.address import listen
from imprint.problem import Exit
from imprint.store.query import Connection
from tests.api.visitor import answers
from tests.journeys.test_up import PROGRAM, first_key, postmaster, up
from tests.waiting import until


@contextmanager
def started(home: Path, *arguments: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command in the background and leave nothing of it behind."""
    env = {**os.environ, "IMPRINT_HOME": str(home), **environment}
    with (home / "err").open("ab") as err:
        process = subprocess.Popen([*PROGRAM, *arguments], env=env, stdout=err, stderr=err)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(40)


async def test_two_workers_and_a_server_share_one_database(
    connection: Connection, database_url: str, tmp_path: Path
) -> None:
    """Two workers on two homes say that they are alive, one HTTP server tells of both, and each says goodbye."""
    homes = [tmp_path / name for name in ("a", "b", "web")]
    for home in homes:
        home.mkdir()
    with listen("127.0.0.1", 0) as free:
        port = str(free.getsockname()[1])
    settings = {"IMPRINT_DATABASE_URL": database_url, "IMPRINT_PORT": port}
    with (
        started(homes[0], "worker", "--concurrency", "3", **settings) as first,
        started(homes[1], "worker", **settings),
        started(homes[2], "api", **settings),
    ):
        await until(lambda: connection.fetchval("SELECT count(*) = 2 FROM worker"), seconds=30)
        assert await connection.fetchval("SELECT min(concurrency) FROM worker") == 3

        at = f"http://127.0.0.1:{port}"
        await until(lambda: answers(at), seconds=30)
        env = {**os.environ, "IMPRINT_HOME": str(homes[2]), **settings}
        made = subprocess.run([*PROGRAM, "code", "--json"], env=env, capture_output=True, check=True, timeout=60)
        key = first_key(at, json.loads(made.stdout)["code"])
        await until(lambda: _tells_of(at, key, workers=2), seconds=30)
        first.send_signal(signal.SIGTERM)
        assert first.wait(40) == 0
        assert await connection.fetchval("SELECT count(*) FROM worker") == 1
    assert await connection.fetchval("SELECT count(*) FROM worker") == 0


async def test_a_worker_rides_out_an_outage(connection: Connection, database_url: str, tmp_path: Path) -> None:
    """While nobody is let in the worker waits; when the database is back so is the worker, the same process."""
    with started(tmp_path, "worker", IMPRINT_DATABASE_URL=database_url) as worker:
        await until(lambda: connection.fetchval("SELECT count(*) FROM worker"), seconds=30)
        name = await connection.fetchval("SELECT current_database()")
        admin = await asyncpg.connect(database_url.replace(f"/{name}?", "/imprint?"))
        await connection.close()
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        await until(lambda: _said(tmp_path, "the database does not serve"), seconds=30)
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await admin.close()
        again = await asyncpg.connect(database_url)
        await again.execute("UPDATE chore SET next_at = imprint_now()")
        done = "SELECT count(*) FROM pgqueuer_log WHERE entrypoint = 'chore' AND status = 'successful' AND created > $1"
        now = await again.fetchval("SELECT now()")
        await until(lambda: again.fetchval(done, now), seconds=30)
        await again.close()
        assert worker.poll() is None


async def test_a_database_of_a_newer_version_is_refused(
    connection: Connection, database_url: str, tmp_path: Path
) -> None:
    """Nothing is started or changed on a database that a newer Imprint has migrated."""
    await connection.execute("INSERT INTO migration (number, name, checksum) VALUES (999, 'future', 'x')")
    for command in ("up", "worker", "api", "status", "migrate"):
        done = subprocess.run(
            [*PROGRAM, command],
            env={**os.environ, "IMPRINT_HOME": str(tmp_path), "IMPRINT_DATABASE_URL": database_url},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (Exit.VERSION, 1), done.stderr
        assert "newer Imprint" in done.stderr


async def test_a_stolen_note_does_not_let_a_second_one_in(home: Path) -> None:
    """The lock is on the folder itself: without its note, or with another's, a second `up` is still refused."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        (home / "up.json").unlink()
        assert it.command("up").returncode == Exit.BUSY
        (home / "up.json").write_text('{"pid": 1, "what": "thief"}')
        assert it.command("up").returncode == Exit.BUSY
        assert it.command("restore", "/dev/null").returncode == Exit.BUSY
        assert it.process.poll() is None


async def test_an_embedded_database_is_backed_up_before_it_is_changed(home: Path) -> None:
    """An older embedded database gets a backup in the home before a migration touches it; a new one does not."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        assert not (home / "backups").exists()
        url = f"postgresql://postgres@/imprint?host={home}/postgres/run"
        older = await asyncpg.connect(url)
        await older.execute("UPDATE migration SET checksum = 'older' WHERE number = 0")
        await older.close()
        applied = json.loads(it.command("migrate", "--json").stdout)["applied"]
        assert applied == ["lifecycles"]
        assert len(list((home / "backups").glob("*-before-migration.dump"))) == 1
        assert json.loads(it.command("migrate", "--json").stdout)["applied"] == []
        assert len(list((home / "backups").iterdir())) == 1
    assert postmaster(home) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_a_full_and_a_read_only_disk_are_one_sentence(home: Path) -> None:
    """`imprint up` on a disk that is full or read-only says so, and starts once there is room."""
    disk = home / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m,mode=0711", "tmpfs", disk],  # noqa: S607 - found by the system
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    env = {**os.environ, "IMPRINT_HOME": str(disk / "home"), "IMPRINT_PORT": "0"}
    try:
        full = subprocess.run([*PROGRAM, "up"], env=env, capture_output=True, text=True, check=False, timeout=120)
        assert (full.returncode, len(full.stderr.strip().splitlines())) == (Exit.UNAVAILABLE, 1), full.stderr
        assert "is full" in full.stderr
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)  # noqa: S607
        locked = subprocess.run([*PROGRAM, "up"], env=env, capture_output=True, text=True, check=False, timeout=120)
        assert (locked.returncode, len(locked.stderr.strip().splitlines())) == (Exit.UNAVAILABLE, 1), locked.stderr
        assert "read-only" in locked.stderr
        subprocess.run(["mount", "-o", "remount,rw,size=300m", disk], check=True)  # noqa: S607
        with up(disk / "home") as it:
            await until(it.ready, seconds=60)
    finally:
        subprocess.run(["umount", "-l", disk], check=False)  # noqa: S607


async def _tells_of(at: str, key: str, *, workers: int) -> bool:
    async with httpx2.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {key}"}) as http:
        return len((await http.get(f"{at}/api/status")).json()["workers"]) == workers


async def _said(home: Path, sentence: str) -> bool:
    return sentence in (home / "err").read_text()
