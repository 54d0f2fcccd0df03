"""The database: only a server that keeps its word is used, and every way of not reaching one is one sentence."""

import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from imprint.problem import Exit, Problem, Unavailable, WrongVersion
from imprint.settings import load
from imprint.store.db import FACTS, Database, ServerFacts, connect, open_database, reached, refuse_unfit
from imprint.store.query import Connection
from tests.store.cluster import Cluster, cluster
from tests.waiting import until

CANARY = "canary-7f3a"
RIGHT = "right"

GOOD = ServerFacts(
    version=140000, version_text="14.0", fsync="on", full_page_writes="on", synchronous_commit="on", read_only=False
)


@pytest.fixture
async def strict() -> AsyncIterator[Cluster]:
    """Give a server that asks one of its users for a password."""
    async with cluster(hba="local all ada scram-sha-256\n") as found:
        connection = await asyncpg.connect(found.url())
        await connection.execute(f"CREATE ROLE ada LOGIN PASSWORD '{RIGHT}'")
        await connection.close()
        yield found


async def refused(url: str, *, seconds: float = 10) -> Problem:
    """Try to open a database, and give what was said; whatever it is, it is one sentence without the password."""
    with pytest.raises(Problem) as caught:
        await connect(url, seconds=seconds)
    problem = caught.value
    for shown in (problem.sentence, repr(problem), str(problem), repr(problem.__cause__)):
        assert CANARY not in shown
    assert problem.exit in {Exit.SETTINGS, Exit.UNAVAILABLE}
    assert problem.sentence.endswith(".")
    assert not problem.sentence.endswith("..")
    assert "\n" not in problem.sentence
    return problem


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": 139999}, "database.too_old"),
        ({"fsync": "off"}, "database.fsync_off"),
        ({"full_page_writes": "off"}, "database.full_page_writes_off"),
        ({"synchronous_commit": "off"}, "database.synchronous_commit_off"),
        ({"read_only": True}, "database.read_only"),
    ],
)
def test_an_unfit_server_is_refused(change: dict[str, object], code: str) -> None:
    """Each reason has its own code and says what to do."""
    refuse_unfit(GOOD)
    with pytest.raises(WrongVersion if code == "database.too_old" else Unavailable) as caught:
        refuse_unfit(replace(GOOD, **change))  # type: ignore[arg-type] # the fields by name
    assert caught.value.code == code


@pytest.mark.parametrize("kept", ["local", "remote_write", "remote_apply"])
def test_a_server_with_standbys_is_fit(kept: str) -> None:
    """Every value of synchronous_commit but off keeps what was acknowledged on the server's own disk."""
    refuse_unfit(replace(GOOD, synchronous_commit=kept))


async def test_a_server_that_may_forget_is_seen(strict: Cluster) -> None:
    """A real server with fsync or full_page_writes off is refused, and taken again when they are on."""
    connection = await asyncpg.connect(strict.url())
    for setting in ("fsync", "full_page_writes"):
        for value in ("off", "on"):
            await connection.execute(f"ALTER SYSTEM SET {setting} = {value}")
            await connection.execute("SELECT pg_reload_conf()")

            async def changed(setting: str = setting, value: str = value) -> bool:
                return bool(await connection.fetchval(f"SHOW {setting}") == value)

            await until(changed)
            if value == "on":
                async with open_database(strict.url()):
                    continue
            with pytest.raises(Unavailable) as caught:
                async with open_database(strict.url()):
                    pytest.fail("it was opened")
            assert caught.value.code == f"database.{setting}_off"
            assert setting in caught.value.sentence
    await connection.close()


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("synchronous_commit = off", "database.synchronous_commit_off"),
        ("default_transaction_read_only = on", "database.read_only"),
    ],
)
async def test_what_is_set_for_one_database_is_seen(database_url: str, setting: str, code: str) -> None:
    """A setting of the database counts as much as the server's own."""
    connection = await asyncpg.connect(database_url)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET {setting}")
    await connection.close()
    with pytest.raises(Unavailable) as caught:
        async with open_database(database_url):
            pytest.fail("it was opened")
    assert caught.value.code == code


async def test_a_wrong_password_is_said_and_not_shown(strict: Cluster) -> None:
    """Nor is a user there, or a database; the right password opens."""
    async with open_database(strict.url(user="ada", password=RIGHT)):
        pass
    wrong = await refused(strict.url(user="ada", password=CANARY))
    assert (wrong.code, wrong.sentence) == (
        "database.sign_in",
        'The server refused the sign-in: password authentication failed for user "ada".',
    )
    assert (await refused(strict.url(user="ada"))).code == "database.sign_in"
    stranger = await refused(strict.url(user="eve", password=CANARY))
    assert (stranger.code, stranger.sentence) == (
        "database.sign_in",
        'The server refused the sign-in: role "eve" does not exist.',
    )
    missing = await refused(strict.url("nowhere", user="ada", password=RIGHT))
    assert (missing.code, missing.sentence) == (
        "database.missing",
        'The server is there, but database "nowhere" does not exist.',
    )


@pytest.mark.parametrize(
    "url",
    [
        CANARY,
        f"mysql://ada:{CANARY}@db/imprint",
        f"{CANARY}://ada@db/imprint",
        f"postgresql://ada:x@db:{CANARY}/imprint",
        f"postgresql://ada:{CANARY}/more@db/imprint",
        f"postgresql://ada:{CANARY}]@[db/imprint",
        f"postgresql://ada:{CANARY}@db/imprint?sslmode={CANARY}",
        f"host=db user=ada password={CANARY}",
        "://",
    ],
)
async def test_a_url_that_makes_no_sense_is_said_and_not_shown(url: str) -> None:
    """Not even the part of it that cannot be understood, which may be a piece of the password."""
    problem = await refused(url, seconds=2)
    assert problem.code == "database.url"
    assert "IMPRINT_DATABASE_URL" in problem.sentence


async def test_a_server_that_is_not_there_is_said() -> None:
    """Nobody listens, no such socket, no such host, or somebody who never answers."""
    with socket.socket() as taken, socket.socket() as silent:
        taken.bind(("127.0.0.1", 0))  # bound, so that nobody else listens there; not listening either
        nobody = await refused(f"postgresql://ada:{CANARY}@127.0.0.1:{taken.getsockname()[1]}/imprint")
        assert nobody.code == "database.unreachable"
        assert str(taken.getsockname()[1]) in nobody.sentence
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        mute = await refused(f"postgresql://ada:{CANARY}@127.0.0.1:{silent.getsockname()[1]}/imprint", seconds=0.2)
        assert mute.code == "database.no_answer"
    assert (await refused(f"postgresql://ada:{CANARY}@/imprint?host=/nowhere")).code == "database.unreachable"
    assert (await refused(f"postgresql://ada:{CANARY}@127.0.0.1:70000/imprint")).code == "database.unreachable"
    assert (await refused(f"postgresql://ada:{CANARY}@nowhere.invalid/imprint")).code == "database.unreachable"


async def test_a_pool_that_cannot_be_made_is_a_problem_too(database_url: str) -> None:
    """A server that takes one connection and no second one is said in a sentence."""
    admin = await asyncpg.connect(database_url)
    await admin.execute("CREATE ROLE single LOGIN CONNECTION LIMIT 1")
    url = database_url.replace("postgres@", "single@")
    try:
        holder = await asyncpg.connect(url)
        with pytest.raises(Unavailable, match="too many connections") as caught:
            async with open_database(url):
                pytest.fail("it was opened")
        assert caught.value.code == "database.unreachable"
        await holder.close()
    finally:
        await admin.execute("DROP ROLE single")
        await admin.close()


async def test_a_transaction_says_who_acts_and_the_next_user_of_the_connection_is_somebody_else(
    database_url: str,
) -> None:
    """Actor and reason end with their transaction, however it ends, on the one connection of this pool."""
    said = "SELECT current_setting('imprint.actor', true), current_setting('imprint.reason', true)"
    async with open_database(database_url, size=1) as database:
        async with database.transaction("ada", "because") as connection:
            pid = connection.get_server_pid()
            assert tuple(await connection.fetchrow(said) or ()) == ("ada", "because")
            post = await connection.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id")
        with pytest.raises(asyncpg.CheckViolationError):
            async with database.transaction("eve", "in vain") as connection:
                await connection.execute("UPDATE post SET status = 'published' WHERE id = $1", post)
        async with database.connection() as connection:
            assert connection.get_server_pid() == pid
            assert {each or "" for each in tuple(await connection.fetchrow(said) or ())} == {""}
            await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
        async with database.transaction("bob") as connection:
            await connection.execute("UPDATE post SET status = 'review' WHERE id = $1", post)
            lines = await connection.fetch("SELECT actor, reason FROM audit WHERE row_id = $1 ORDER BY id", post)
    assert [tuple(line) for line in lines] == [
        ("ada", "because"),
        ("database user postgres", None),
        ("bob", None),
    ]


async def test_an_error_inside_leaves_the_pool_usable(database: Database) -> None:
    """What a user of the database raises is passed on as it is, and is no problem of the connection."""
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with database.transaction("ada") as connection:
            await connection.execute("SELECT 1 / 0")
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_the_facts_are_those_of_the_server(connection: Connection) -> None:
    """What is judged is read from the server itself."""
    facts = await FACTS.one(connection)
    assert facts.version >= 140000
    assert facts.version_text.startswith(str(facts.version // 10000))
    assert (facts.fsync, facts.full_page_writes, facts.synchronous_commit, facts.read_only) == ("on", "on", "on", False)


async def test_a_named_server_is_used_instead_of_the_embedded_one(database_url: str, home: Path) -> None:
    """IMPRINT_DATABASE_URL decides, and nothing is started in the home."""
    settings = load({"IMPRINT_HOME": str(home), "IMPRINT_DATABASE_URL": database_url})
    async with reached(settings) as url:
        assert url == database_url
    assert not (home / "postgres").exists()


async def test_a_database_does_not_show_its_password(database_url: str) -> None:
    """Whoever prints it prints no secret."""
    async with open_database(database_url) as database:
        assert CANARY not in repr(replace(database, url=f"postgresql://u:{CANARY}@h/d"))
