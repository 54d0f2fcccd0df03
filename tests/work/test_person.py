"""People below the HTTP server: what the database itself refuses, what is forgotten, and how long a knock takes."""

from datetime import timedelta
from statistics import median
from time import perf_counter

import asyncpg
import pytest

from imprint.problem import Problem
from imprint.settings import load
from imprint.store.db import Database
from imprint.work import api_key, first_code, idempotency, invitation, person, session
from imprint.work.clean import clean
from imprint.work.idempotency import Answered
from imprint.work.password import hash_password, matches
from imprint.work.scope import OF_ROLE, Role, Scope, allowed
from tests.work.posts import Author

PASSWORD = "correct horse battery staple"  # noqa: S105 - of people who live as long as a test
HERE = "127.0.0.1"


async def operator(database: Database) -> str:
    """Make the first person."""
    async with database.connection() as connection:
        code = await first_code.required(connection)
    return (await person.first(database, code, "Ada", PASSWORD)).id


async def test_the_database_refuses_what_must_never_be(database: Database) -> None:
    """Two people of one name however written, a password that is none, a reader of nobody, no administrator left."""
    await operator(database)
    async with database.connection() as connection:
        for statement, refused in (
            ("INSERT INTO person (name, password_hash, role) VALUES ('ADA', '$argon2id$x', 'member')", "person_name"),
            ("INSERT INTO person (name, password_hash, role) VALUES ('b', 'plain', 'member')", "password_hash"),
            ("INSERT INTO person (name, password_hash, role) VALUES ('b', '$argon2id$x', 'reader')", "looks_at"),
            ("INSERT INTO person (name, password_hash, role) VALUES ('b', '$argon2id$x', 'root')", "role"),
            ("UPDATE person SET role = 'member'", "last administrator"),
            ("UPDATE person SET disabled_at = imprint_now()", "last administrator"),
            (
                """INSERT INTO session (sha256, person_id, address, agent, expires_at)
                VALUES ('plain', 'operator', '', '', imprint_now())""",
                "sha256",
            ),
        ):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match=refused):
                await connection.execute(statement)


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\x00b", "a\u202eb", "\ud800"])
async def test_a_name_can_be_seen(database: Database, name: str) -> None:
    """Nothing that hides, and nothing that cannot be kept."""
    with pytest.raises(Problem, match="A name has"):
        await person.first(database, "x", name, PASSWORD)


def test_names_are_written_in_one_way() -> None:
    """The same letters in another form are the same name."""
    assert person.checked_name("  A\u0308da   L ") == person.checked_name("Äda L") == "Äda L"


async def test_a_password_is_the_same_however_a_keyboard_writes_it() -> None:
    """Composed and decomposed letters are the same password; another one is not, and nobody's never is."""
    kept = await hash_password("Käsekuchen mit Sahne")
    assert await matches("Ka\u0308sekuchen mit Sahne", kept)
    assert not await matches("Kasekuchen mit Sahne", kept)
    assert not await matches("nobody has this password", None)
    assert not await matches("\ud800" * 20, kept)
    for weak in ("", "short", "a" * 50, "ab" * 20, "x" * 201):
        with pytest.raises(Problem, match="A password has"):
            await hash_password(weak)


async def test_a_knock_takes_as_long_whoever_is_asked_for() -> None:
    """An unknown name is hashed for like a known one; not to the microsecond, but nobody is skipped."""
    kept = await hash_password(PASSWORD)
    await matches("x", None)

    async def takes(whose: str | None) -> float:
        began = perf_counter()
        await matches("wrong", whose)
        return perf_counter() - began

    known, unknown = [], []
    for _ in range(9):
        known.append(await takes(kept))
        unknown.append(await takes(None))
    assert 0.5 < median(known) / median(unknown) < 2


def test_scopes_of_roles() -> None:
    """A reader only reads, a member has nothing of the machine, and a key never has more than its person."""
    assert all(each.endswith(":read") for each in OF_ROLE[Role.READER])
    assert OF_ROLE[Role.READER] < OF_ROLE[Role.MEMBER] < OF_ROLE[Role.ADMINISTRATOR]
    assert allowed(Role.MEMBER, [Scope.POSTS_WRITE]) == {Scope.POSTS_WRITE, Scope.POSTS_READ}
    assert allowed(Role.READER, [Scope.POSTS_WRITE, Scope.PEOPLE_WRITE]) == {Scope.POSTS_READ}


async def test_whoever_is_demoted_is_so_at_once(database: Database) -> None:
    """A key that was made by an administrator has what a member has, once they are one."""
    ada = await operator(database)
    made = await invitation.invite(database, ada, Role.ADMINISTRATOR)
    bob = (await invitation.accept(database, made.code, "bob", PASSWORD)).id
    key = await api_key.add(database, bob, bob, "k", [Scope.PEOPLE_WRITE, Scope.POSTS_READ])
    await person.change(database, ada, bob, role=Role.MEMBER)
    async with database.connection() as connection:
        caller = await api_key.caller(connection, key.secret)
    assert caller is not None
    assert caller.scopes == {Scope.POSTS_READ}


async def test_a_request_is_taken_over_from_a_server_that_died(database: Database) -> None:
    """While it may run nobody else does it; after a while the same request may, and the late answer is not kept."""
    ada = await operator(database)

    async def dies() -> Answered:
        async with database.connection() as connection:
            await connection.execute("UPDATE idempotency SET running_until = running_until - interval '1 hour'")
        assert await idempotency.once(database, ada, "k", b"r", works) == Answered(200, "a", b"second")
        return Answered(200, "a", b"first")

    async def works() -> Answered:
        with pytest.raises(Problem, match="being done"):
            await idempotency.once(database, ada, "k", b"r", works)
        return Answered(200, "a", b"second")

    assert (await idempotency.once(database, ada, "k", b"r", dies)).body == b"first"
    again = await idempotency.once(database, ada, "k", b"r", works)
    assert (again.body, again.again) == (b"second", True)


async def test_what_is_past_its_time_is_forgotten(database: Database) -> None:
    """Sessions, tries and kept answers go; people, keys and the rest stay."""
    ada = await operator(database)
    with pytest.raises(Problem):
        await session.sign_in(database, "ada", "wrong", address=HERE)
    await session.sign_in(database, "ada", PASSWORD, address=HERE)

    async def done() -> Answered:
        return Answered(200, "a", b"x")

    await idempotency.once(database, ada, "k", b"r", done)
    settings = load({})
    await clean(database, settings)
    tables = ("session", "sign_in_limit", "idempotency", "person")
    author = Author(database)
    assert all([await author.read(f"SELECT count(*) FROM {table}") for table in tables])
    await author.pass_time(timedelta(days=31))
    await clean(database, settings)
    assert [await author.read(f"SELECT count(*) FROM {table}") for table in tables] == [0, 0, 0, 1]
