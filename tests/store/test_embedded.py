"""The embedded server: it starts whatever happened before, keeps what was committed, and goes with its last user."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import asyncpg
import psutil
import pytest

from imprint.problem import Busy, Unavailable, WrongVersion
from imprint.store import binaries, embedded
from imprint.store.embedded import Server, running
from tests.store.homes import SECONDS, copied, folder, make_read_only, problem, small_disk

USER_SCRIPT = """
import asyncio, sys
from pathlib import Path
from imprint.store.embedded import running

async def main():
    async with running(Path(sys.argv[1])) as server:
        print(server.pid, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.fixture
def fresh_home() -> Iterator[Path]:
    """Give a home that nobody has used."""
    with folder() as path:
        yield path / "home"


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    """Make one home with a table in it, since making a cluster takes most of a test's time."""

    async def fill(home: Path) -> None:
        async with running(home) as server, connected(server) as connection:
            await connection.execute("CREATE TABLE kept (word text)")

    with folder() as path:
        asyncio.run(fill(path / "home"))
        yield path / "home"


@pytest.fixture
def home(template: Path) -> Iterator[Path]:
    """Give a home that was used and left in order."""
    with folder() as path:
        copied(template, path / "home")
        yield path / "home"


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """Connect as everybody does."""
    connection = await asyncpg.connect(server.url)
    try:
        yield connection
    finally:
        await connection.close()


async def until(check: Callable[[], object]) -> None:
    """Wait until something is so, but not for ever."""
    deadline = time.monotonic() + SECONDS
    while not check():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    """Say whether a process has ended; nobody may have asked a zombie yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def other_user(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process use the server; it leaves when its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", USER_SCRIPT, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def said_pid(process: subprocess.Popen[str]) -> int:
    """Wait until another user has its server and says which."""
    assert process.stdout
    return int(await asyncio.to_thread(process.stdout.readline))


async def leave(process: subprocess.Popen[str]) -> None:
    """Let another user leave in order."""
    assert process.stdin
    process.stdin.close()
    assert await asyncio.to_thread(process.wait, SECONDS) == 0


async def keep(server: Server, word: str) -> None:
    """Commit a word."""
    async with connected(server) as connection:
        await connection.execute("INSERT INTO kept VALUES ($1)", word)


async def kept(server: Server) -> list[str]:
    """Read the committed words."""
    async with connected(server) as connection:
        return [row["word"] for row in await connection.fetch("SELECT word FROM kept")]


async def test_first_start_makes_a_database(fresh_home: Path) -> None:
    """The first start makes a cluster with checksums and a UTF-8 database, and the last user takes the server along."""
    async with running(fresh_home) as server:
        async with connected(server) as connection:
            assert await connection.fetchval("SELECT current_database()") == "imprint"
            assert await connection.fetchval("SHOW server_encoding") == "UTF8"
            assert await connection.fetchval("SHOW data_checksums") == "on"
            assert await connection.fetchval("SHOW fsync") == "on"
            assert await connection.fetchval("SELECT lower('É')") == "é"
            assert await connection.fetchval("SELECT pg_backend_pid() <> $1", server.pid)
        assert server.data == fresh_home / "postgres" / "data"
        assert not (fresh_home / "postgres" / "data.new").exists()
        assert psutil.Process(server.pid).cwd() == str(server.data)
    assert gone(server.pid)
    assert not (server.data / "postmaster.pid").exists()


async def test_nobody_else_can_reach_the_server(home: Path) -> None:
    """There is no TCP port, and the folders of socket, data and log are the owner's alone."""
    async with running(home) as server:
        assert not psutil.Process(server.pid).net_connections(kind="inet")
        owner = binaries.account().uid
        for path in (home / "postgres", home / "postgres" / "run", server.data):
            assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o700, owner)
        log = (home / "postgres" / "postgres.log").stat()
        assert (log.st_mode & 0o777, log.st_uid) == (0o600, owner)


async def test_ctrl_c_of_the_terminal_does_not_reach_the_server(home: Path) -> None:
    """The server has a session of its own."""
    async with running(home) as server:
        assert os.getsid(server.pid) == server.pid


async def test_a_start_killed_while_the_cluster_is_made(fresh_home: Path) -> None:
    """Kill -9 in the middle of initdb leaves nothing that counts, and the next start makes it whole."""
    with other_user(fresh_home) as user:
        await until((fresh_home / "postgres" / "data.new" / "base").exists)
        user.kill()
        assert not (fresh_home / "postgres" / "data").exists()
        async with running(fresh_home) as server, connected(server) as connection:
            assert await connection.fetchval("SELECT 1") == 1
        assert not (fresh_home / "postgres" / "data.new").exists()


async def test_a_start_cancelled_while_the_cluster_is_made(fresh_home: Path) -> None:
    """A cancelled first start takes initdb along."""
    task = asyncio.create_task(problem(fresh_home))
    await until((fresh_home / "postgres" / "data.new" / "base").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(str(fresh_home) in " ".join(found) for found in commands())
    async with running(fresh_home) as server:
        assert not gone(server.pid)


def commands() -> Iterator[list[str]]:
    """List the command lines of all living processes."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                yield process.cmdline()


async def test_a_cancelled_start_leaves_no_server(home: Path) -> None:
    """Whoever gives up while the server starts stops it again."""
    task = asyncio.create_task(problem(home))
    await until(lambda: home / "postgres" / "data" in embedded._children)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(str(home) in " ".join(found) for found in commands())


async def test_what_was_committed_is_there_after_a_restart(home: Path) -> None:
    """Stop and start lose nothing."""
    async with running(home) as server:
        await keep(server, "one")
    async with running(home) as server:
        assert await kept(server) == ["one"]


async def test_a_failing_user_stops_the_server_too(home: Path) -> None:
    """An error of the user is the user's to see, and the server stops."""

    async def fail() -> int:
        async with running(home) as server:
            pid.append(server.pid)
            raise FileNotFoundError(2, "the user's own")

    pid: list[int] = []
    with pytest.raises(FileNotFoundError, match="the user's own"):
        await fail()
    assert gone(pid[0])


async def test_a_killed_server_starts_again_with_everything_committed(home: Path) -> None:
    """Kill -9 of the server, our own child, loses nothing; who still held the dead one leaves in peace."""
    async with running(home) as first:
        await keep(first, "one")
        os.kill(first.pid, signal.SIGKILL)
        async with running(home) as second:
            assert second.pid != first.pid
            assert await kept(second) == ["one"]
        assert not gone(second.pid)
    assert gone(second.pid)


async def test_a_killed_server_of_another_process_starts_again(home: Path) -> None:
    """A zombie whose parent does not ask for it counts as dead."""
    with other_user(home) as user:
        pid = await said_pid(user)
        os.kill(pid, signal.SIGKILL)
        async with running(home) as server:
            assert server.pid != pid
        await leave(user)
    assert gone(server.pid)


async def test_a_busy_process_of_a_killed_server_does_not_hold_the_next_one_back(home: Path) -> None:
    """A query that runs on after its server was killed is ended, as PostgreSQL would refuse to start beside it."""
    async with running(home) as server:
        busy = await asyncpg.connect(server.url)
        query = asyncio.create_task(busy.execute("SELECT count(*) FROM generate_series(1, 1000000000000) AS n"))
        orphan = busy.get_server_pid()
        await until(lambda: psutil.Process(orphan).cpu_times().user > 0.05)
        os.kill(server.pid, signal.SIGKILL)
        async with running(home) as second:
            assert await kept(second) == []
        assert "pre-existing shared memory block" in (home / "postgres" / "postgres.log").read_text()
        assert gone(orphan)
        with pytest.raises((OSError, asyncpg.PostgresError)):
            await query
        busy.terminate()


@contextmanager
def foreign_process() -> Iterator[int]:
    """Run something else as the server's own user."""
    process = binaries.start(["/bin/sleep", "60"], binaries.account())
    try:
        yield process.pid
    finally:
        process.kill()
        process.communicate()


async def test_a_pid_that_is_somebody_elses_by_now(home: Path) -> None:
    """A pid file left by a kill that names a living process of the same user does not stop the start."""
    async with running(home) as server:
        await keep(server, "one")
        left = (server.data / "postmaster.pid").read_text()
        os.kill(server.pid, signal.SIGKILL)
    with foreign_process() as pid:
        (server.data / "postmaster.pid").write_text(left.replace(str(server.pid), str(pid), 1))
        (home / "postgres" / "run" / ".s.PGSQL.5432.lock").write_text(left.replace(str(server.pid), str(pid), 1))
        command = [str(binaries.binary("postgres", binaries.account())), "-D", str(server.data)]
        refused = await binaries.finish(binaries.start(command, binaries.account()))
        assert 'lock file "postmaster.pid" already exists' in refused, "the test proves nothing"
        async with running(home) as second:
            assert await kept(second) == ["one"]
        assert not gone(pid)


@pytest.mark.parametrize("text", ["", "\n", "nonsense", "0\n"])
async def test_a_pid_file_without_a_pid(home: Path, text: str) -> None:
    """A server killed before it wrote its pid does not stop the next one."""
    (home / "postgres" / "data" / "postmaster.pid").write_text(text)
    async with running(home) as server:
        assert await kept(server) == []


async def test_a_copy_of_a_running_home_is_a_home_of_its_own(home: Path) -> None:
    """A copied pid file names the original's process and socket, and neither is taken for the copy's."""
    async with running(home) as original:
        copied(home, home.parent / "copy")
        async with running(home.parent / "copy") as copy:
            await keep(copy, "only here")
        assert copy.pid != original.pid
        assert await kept(original) == []


async def test_the_last_user_stops_the_server(home: Path) -> None:
    """The server stays while any process or task uses it, whoever started it."""
    with other_user(home) as user:
        async with running(home) as server:
            assert await said_pid(user) == server.pid
            async with running(home) as again:
                assert again == server
            assert not gone(server.pid)
        assert not gone(server.pid)
        await leave(user)
    assert gone(server.pid)


async def test_a_killed_user_keeps_nothing_up(home: Path) -> None:
    """Kill -9 of a user frees its share, which the server did not inherit; the next one to leave stops the server."""
    with other_user(home) as user:
        pid = await said_pid(user)
        user.kill()
        await asyncio.to_thread(user.wait)
    for name in (".", "run"):
        locked = os.open(home / "postgres" / name, os.O_RDONLY)
        fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(locked)
    assert not gone(pid)
    async with running(home) as server:
        assert server.pid == pid
    assert gone(pid)


async def test_many_start_at_once(home: Path) -> None:
    """Of many that start at the same moment one starts the server and all use it."""
    together = asyncio.Barrier(4)

    async def use() -> int:
        async with running(home) as server:
            await together.wait()
            return server.pid

    with other_user(home) as user:
        *pids, theirs = await asyncio.gather(*(use() for _ in range(4)), said_pid(user))
        await leave(user)
    assert len(set(pids)) == 1
    assert gone(pids[0])
    assert gone(theirs)


async def test_a_held_gate_is_waited_for_and_then_a_problem(home: Path) -> None:
    """Waiting for another start does not hold up the rest of the program, and ends."""
    gate = os.open(home / "postgres", os.O_RDONLY)
    fcntl.flock(gate, fcntl.LOCK_EX)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    found = await problem(home, start_seconds=0.3)
    ticking.cancel()
    os.close(gate)
    assert isinstance(found, Busy)
    assert found.code == "database.busy"
    assert ticks > 10


async def test_a_server_that_is_stopping_is_waited_for(home: Path) -> None:
    """A server on its way down is not used and not disturbed; a new one comes after it."""
    async with running(home) as first:
        last = await asyncpg.connect(first.url)
        os.kill(first.pid, signal.SIGTERM)  # a smart shutdown: it waits for the last connection
        await until(lambda: "stopping" in (first.data / "postmaster.pid").read_text())

        async def next_pid() -> int:
            async with running(home) as second:
                return second.pid

        task = asyncio.create_task(next_pid())
        await asyncio.wait({task}, timeout=0.2)
        assert not task.done()
        assert not gone(first.pid)
        await last.close()
        assert await task != first.pid


async def test_a_server_that_hangs_is_given_up_but_left_alone(home: Path) -> None:
    """After the time given there is a sentence; the server may go on with what it does."""
    async with running(home) as server:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            found = await problem(home, start_seconds=0.3)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert found.code == "database.start_timeout"
        assert await kept(server) == []


async def test_a_big_log_is_set_aside(home: Path) -> None:
    """A log over ten megabytes is kept once and begun anew."""
    log = home / "postgres" / "postgres.log"
    with log.open("r+b") as file:
        file.truncate(10_000_001)
    async with running(home):
        assert log.stat().st_size < 10_000
        assert log.with_name("postgres.log.1").stat().st_size == 10_000_001


async def test_variables_of_other_servers_change_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who works with another PostgreSQL has variables set that are not meant for this one."""
    for name, value in {"PGPORT": "7", "PGHOST": "nowhere", "PGDATABASE": "no", "PGDATA": "/no"}.items():
        monkeypatch.setenv(name, value)
    async with running(home) as server:
        assert await kept(server) == []


@pytest.mark.parametrize("name", ["x" * 100, "a, b: c", "blank % ü"])
async def test_any_path_will_do(template: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home whose path is too long or too odd for a socket's works all the same."""
    with folder() as path:
        monkeypatch.setattr(tempfile, "tempdir", str(path))
        copied(template, path / name)
        async with running(path / name) as server:
            await keep(server, "one")
            listed = await binaries.tool("psql", "-XAtc", "SELECT word FROM kept", server.url)
        assert listed == "one\n"


async def test_an_unsafe_socket_folder_is_refused(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for the socket that others can enter, or that is a link, is not used."""
    with folder() as path:
        monkeypatch.setattr(tempfile, "tempdir", str(path))
        copied(template, path / ("x" * 100))
        async with running(path / ("x" * 100)) as server:
            sockets = next(path.glob("imprint-*"))
            assert sockets.name in server.url
        sockets.chmod(0o755)
        assert (await problem(path / ("x" * 100))).code == "database.socket_folder"
        sockets.rmdir()
        sockets.symlink_to(path)
        assert (await problem(path / ("x" * 100))).code == "database.socket_folder"


async def test_a_cluster_of_another_version(home: Path) -> None:
    """A cluster of another major version is named and not touched."""
    (home / "postgres" / "data" / "PG_VERSION").write_text("16\n")
    found = await problem(home)
    assert isinstance(found, WrongVersion)
    assert found.code == "database.cluster_version"
    assert "16" in found.sentence


async def test_files_that_are_no_cluster(fresh_home: Path) -> None:
    """Somebody's files where the cluster belongs are not overwritten."""
    data = fresh_home / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "letter.txt").write_text("keep me")
    assert (await problem(fresh_home)).code == "database.not_a_cluster"
    assert (data / "letter.txt").read_text() == "keep me"


async def test_a_server_that_dies_at_start_is_quoted(home: Path) -> None:
    """The last words of a server that does not start are in the sentence."""
    control = home / "postgres" / "data" / "global" / "pg_control"
    whole = control.read_bytes()
    control.write_bytes(b"")
    found = await problem(home)
    assert found.code == "database.start_failed"
    assert "pg_control" in found.sentence
    control.write_bytes(whole)
    async with running(home) as server:
        assert await kept(server) == []


async def test_a_lost_database_is_made_again(home: Path) -> None:
    """A cluster whose first start ended before the database was made gets it at the next."""
    async with running(home) as server:
        await binaries.tool("psql", "-XAtc", "DROP DATABASE imprint", server.url.replace("/imprint?", "/postgres?"))
        async with running(home), connected(server) as connection:
            assert await connection.fetchval("SELECT to_regclass('kept') IS NULL")


def fill(file: Path) -> None:
    """Take all the space there is."""
    with suppress(OSError), file.open("wb", buffering=0) as ballast:
        while ballast.write(b"0" * 2**16):
            pass


async def test_a_full_disk_at_the_first_start() -> None:
    """A disk too small for a cluster is a sentence and leaves nothing half-made."""
    with folder() as path, small_disk(path, "20m"):
        found = await problem(path)
        assert isinstance(found, Unavailable)
        assert found.code == "database.disk_full"
        assert [child.name for child in (path / "postgres").iterdir()] == ["run"]


async def test_a_full_disk_at_a_later_start(template: Path) -> None:
    """A full disk stops the start and loses nothing: with space again everything is there."""
    with folder() as path, small_disk(path, "100m"):
        copied(template, path / "home")
        async with running(path / "home") as server:
            await keep(server, "one")
        fill(path / "ballast")
        assert (await problem(path / "home")).code == "database.disk_full"
        (path / "ballast").unlink()
        async with running(path / "home") as server:
            assert await kept(server) == ["one"]


async def test_a_full_disk_during_recovery(template: Path) -> None:
    """A crash on a disk that is full by the next start loses nothing either."""
    with folder() as path, small_disk(path, "150m"):
        copied(template, path / "home")
        async with running(path / "home") as server:
            await keep(server, "one")
            async with connected(server) as connection:
                # Recovery makes this table again before it drops it again, and that takes space.
                await connection.execute(
                    "CREATE TABLE big AS SELECT n, repeat('x', 500) FROM generate_series(1, 9999) n"
                )
                await connection.execute("DROP TABLE big")
            os.kill(server.pid, signal.SIGKILL)
            await until(lambda: gone(server.pid))
        fill(path / "ballast")
        assert (await problem(path / "home")).code == "database.disk_full"
        (path / "ballast").unlink()
        async with running(path / "home") as server:
            assert await kept(server) == ["one"]


async def test_a_full_disk_when_the_database_is_made(template: Path) -> None:
    """A disk that fills between cluster and database is a sentence, and the server is stopped."""
    with folder() as path, small_disk(path, "100m"):
        copied(template, path / "home")
        async with running(path / "home") as server:
            await binaries.tool("psql", "-XAtc", "DROP DATABASE imprint", server.url.replace("/imprint?", "/postgres?"))
        fill(path / "ballast")
        with (path / "ballast").open("r+b") as ballast:
            ballast.truncate((path / "ballast").stat().st_size - 2**20)
        found = await problem(path / "home")
        assert found.code == "database.disk_full"
        assert not (server.data / "postmaster.pid").exists()


async def test_a_read_only_disk(template: Path) -> None:
    """A home on a read-only disk is a sentence, with a cluster in it and without."""
    with folder() as path, small_disk(path, "100m"):
        copied(template, path / "home")
        make_read_only(path)
        for name in ("home", "new"):
            assert (await problem(path / name)).code == "home.read_only"


async def test_warm_start_is_quick(home: Path) -> None:
    """A start with a cluster in place takes well under a second, and so does a stop."""
    begun = time.monotonic()
    async with running(home):
        pass
    assert time.monotonic() - begun < 2
