"""Queries: declared and written agree, each fits the schema and its dataclass, and the hot ones use an index."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints
from uuid import UUID

import asyncpg
import pytest

import imprint
from imprint.engine.clock import timers
from imprint.store import query as module
from imprint.store.query import Connection, Link, Query, declared, query, read, texts


@cache
def queries() -> dict[str, Query[Any]]:
    """Import the whole program and give every query that it declares."""
    for found in pkgutil.walk_packages(imprint.__path__, "imprint."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    timers(3)  # these are declared when they are asked for
    return dict(sorted(declared().items()))


TYPES: dict[type, set[str]] = {
    int: {"int2", "int4", "int8"},
    float: {"float8"},
    Decimal: {"numeric"},
    str: {"text", "varchar", "name"},
    bool: {"bool"},
    bytes: {"bytea"},
    datetime: {"timestamptz"},
    timedelta: {"interval"},
    UUID: {"uuid"},
}


@dataclass(frozen=True)
class Word:
    """A row of a made-up query."""

    word: str


def test_what_is_written_is_declared_and_what_is_declared_is_written() -> None:
    """A query nobody declares is dead; one that is declared must exist."""
    assert set(queries()) == set(texts())


@pytest.mark.parametrize("name", texts())
def test_each_query_has_a_sentence(name: str) -> None:
    """One that begins like a sentence, ends like one and fits into a list."""
    sentence = texts()[name].sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert len(sentence) < 250


async def test_each_query_fits_the_schema_and_its_dataclass(connection: Connection) -> None:
    """PostgreSQL prepares and EXPLAINs it, and gives the dataclass's fields in their order and with their types."""
    for name, each in queries().items():
        prepared = await connection.prepare(each.sql)
        attributes = prepared.get_attributes()
        assert [a.name for a in attributes] == [f.name for f in fields(each.row)], name
        hints = get_type_hints(each.row)
        for attribute in attributes:
            assert attribute.type.name in accepted(hints[attribute.name]), f"{name}: {attribute}"
        if re.match(r"SELECT|WITH|INSERT|UPDATE|DELETE", each.sql):
            assert await plan(connection, each)
        else:
            assert not attributes, f"{name}: a statement that defines something gives no rows"


def accepted(hint: Any) -> set[str]:
    """Name the types of PostgreSQL that a field can hold."""
    if isinstance(hint, UnionType):
        return set().union(*(accepted(part) for part in get_args(hint) if part is not NoneType))
    if get_origin(hint) is list:
        return {f"{name}[]" for name in accepted(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return TYPES[str]
    return TYPES.get(hint, set()) or (TYPES[str] if issubclass(hint, StrEnum) else set())


VALUES = {"uuid": "gen_random_uuid()", "int8": "100", "int4": "100", "interval": "'1 min'", "text[]": "'{}'"}


async def plan(connection: Link, each: Query[Any], mode: str = "force_generic_plan") -> dict[str, Any]:
    """Ask PostgreSQL how it runs a query: with values it does not know, or with these."""
    parameters = (await connection.prepare(each.sql)).get_parameters()
    values = ", ".join(VALUES.get(parameter.name, "NULL") for parameter in parameters)
    await connection.execute(f"SET plan_cache_mode = {mode}")
    await connection.execute(f"PREPARE explained AS {each.sql}")
    try:
        text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE explained{f'({values})' if values else ''}")
    finally:
        await connection.execute("DEALLOCATE explained")
    found: dict[str, Any] = json.loads(text)[0]["Plan"]
    return found


def nodes(of: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk through a plan."""
    yield of
    for below in of.get("Plans", ()):
        yield from nodes(below)


@pytest.fixture
async def crowded(connection: Connection) -> Connection:
    """Give a database with 20,000 publications, sources and messages, most of which have their time ahead of them."""
    for table in ("post", "account", "publication", "source", "delivery"):
        await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    await connection.execute("""
        INSERT INTO account (platform, name) SELECT 'sandbox', 'a' || n FROM generate_series(1, 500) n;
        INSERT INTO post (title) SELECT 'p' || n FROM generate_series(1, 20000) n;
        INSERT INTO publication (post_id, account_id, due_at, status, lease_until, phase, remote_id)
        SELECT p.id, a.id, imprint_now() + (p.n - 100) * interval '1 min', s.status,
               CASE s.status WHEN 'running' THEN imprint_now() + interval '1 min' END,
               CASE s.status WHEN 'running' THEN 'uploading' END, CASE s.status WHEN 'success' THEN 'r' END
        FROM (SELECT id, row_number() OVER () AS n FROM post) p
        JOIN (SELECT id, row_number() OVER () AS n FROM account) a ON a.n = 1 + p.n % 500
        CROSS JOIN LATERAL (SELECT CASE WHEN p.n <= 200 THEN 'running' WHEN p.n % 2 = 0 THEN 'success'
            ELSE 'pending' END AS status) s;
        INSERT INTO source (name, next_check_at, lease_until)
        SELECT 's' || n, imprint_now() + (n - 20) * interval '1 min',
               CASE WHEN n % 100 = 0 THEN imprint_now() + interval '1 min' END FROM generate_series(1, 5000) n;
        INSERT INTO delivery (target_id, next_at, closed_at, ended_at, outcome)
        SELECT gen_random_uuid(), imprint_now() + (n - 20) * interval '1 min', imprint_now(),
               CASE WHEN n % 2 = 0 THEN imprint_now() END, CASE WHEN n % 2 = 0 THEN 'sent' END
        FROM generate_series(1, 20000) n;
        ANALYZE;
        """)
    return connection


CLOCK = {"clock_plan", "clock_publication_due", "clock_source_due", "clock_delivery_due"}
LEASES = {
    f"lease_{step}_{table}" for table in ("publication", "source") for step in ("claim", "renew", "release", "expire")
}


def hot() -> dict[str, Query[Any]]:
    """Pick the queries that run all the time."""
    return {name: each for name, each in queries().items() if name in LEASES | CLOCK}


def test_the_hot_queries_are_there() -> None:
    """What is guarded below cannot become nothing unseen."""
    assert len(hot()) == len(CLOCK) + 2 * 4


async def test_hot_queries_use_an_index(crowded: Connection) -> None:
    """None of them reads a whole table, with any values, and none calls a function to know the time of each row."""
    for name, each in hot().items():
        for mode in ("force_generic_plan", "force_custom_plan"):
            found = list(nodes(await plan(crowded, each, mode)))
            read_whole = [node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"]
            assert not {"publication", "source", "delivery"} & set(read_whole), f"{name}: {read_whole}"
            assert any("Index" in node["Node Type"] for node in found), name
            # Written out, as the condition of the index: imprint_now() itself is no longer there.
            assert "imprint_now" not in json.dumps(found), name


async def test_the_clock_looks_at_one_row_to_know_when_to_wake(crowded: Connection) -> None:
    """However many rows wait, each timer reads the first entry of its own index."""
    found = await plan(crowded, queries()["clock_plan"])
    below_limits = [node["Plans"][0] for node in nodes(found) if node["Node Type"] == "Limit"]
    used = {below.get("Index Name") for below in below_limits}
    assert used >= {"publication_due", "publication_leased", "source_due", "source_leased", "delivery_due"}
    small = {below["Node Type"] for below in below_limits if below.get("Index Name") is None}
    assert small <= {"Sort"}  # of the chores, of which there is a handful


async def test_what_is_due_is_found_by_its_time(crowded: Connection) -> None:
    """The clock and the recovery go down the index of times only as far as what is due."""
    for name, index in (
        ("clock_publication_due", "publication_due"),
        ("clock_source_due", "source_due"),
        ("clock_delivery_due", "delivery_due"),
        ("lease_expire_publication", "publication_leased"),
        ("lease_expire_source", "source_leased"),
    ):
        found = nodes(await plan(crowded, queries()[name]))
        condition = next(node.get("Index Cond", "") for node in found if node.get("Index Name") == index)
        assert "wake_at <= (statement_timestamp()" in condition, name


async def test_the_one_time_can_be_moved_for_a_session_and_for_a_database(
    connection: Connection, database_url: str
) -> None:
    """imprint_now() is the server's time unless imprint.clock_offset says otherwise, and stable in a statement."""
    ahead = "SELECT imprint_now() - statement_timestamp()"
    assert await connection.fetchval("SELECT provolatile FROM pg_proc WHERE proname = 'imprint_now'") == b"s"
    assert await connection.fetchval(ahead) == timedelta(0)
    await connection.execute("SET imprint.clock_offset = '2 days'")
    assert await connection.fetchval(ahead) == timedelta(days=2)
    await connection.execute("SET imprint.clock_offset = '-1 hour'")
    assert await connection.fetchval(ahead) == timedelta(hours=-1)
    await connection.execute("RESET imprint.clock_offset")
    assert await connection.fetchval(ahead) == timedelta(0)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET imprint.clock_offset = '7 minutes'")
    assert await connection.fetchval(ahead) == timedelta(0)  # whoever is there keeps the time it came with
    other = await asyncpg.connect(database_url)
    assert await other.fetchval(ahead) == timedelta(minutes=7)
    await other.close()


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare into a list of its own, from texts of its own."""
    found = {text.name: text for text in read("t.sql", "-- name: word\n-- Says it.\nSELECT 'a' AS word\n")}
    monkeypatch.setattr(module, "_declared", {})
    monkeypatch.setattr(module, "texts", lambda: found)


@pytest.mark.usefixtures("empty")
def test_a_query_is_declared_by_the_name_it_has_in_its_file() -> None:
    """A name that stands in no file is seen when the program starts."""
    assert query("word", Word).sql == "SELECT 'a' AS word"
    assert set(declared()) == {"word"}
    with pytest.raises(KeyError):
        query("missing", Word)


@pytest.mark.usefixtures("empty")
def test_one_name_has_one_meaning() -> None:
    """The same again is the same; another row under the same name is refused."""

    @dataclass(frozen=True)
    class Other:
        word: str

    assert query("word", Word) == query("word", Word)
    with pytest.raises(ValueError, match="word is already declared"):
        query("word", Other)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("SELECT 1", "does not begin with a query's name"),
        ("-- A file about words.\n\n-- name: a\n-- A.\nSELECT 1", "does not begin with a query's name"),
        ("-- name: a\nSELECT 1", "does not begin with a query's name"),
        ("-- name: a\n-- A.\nSELECT 1\n\n-- name: b\nSELECT 2", "a is not one statement with the next name after it"),
        ("-- name: a\n-- A.\nSELECT 1\n\n--name: b\n-- B.\nSELECT 2", "a is not one statement"),
        ("-- name: a\n-- A.\nSELECT 1\n\n-- name : b\n-- B.\nSELECT 2", "a is not one statement"),
        ("-- name: a\n-- A.\nSELECT 1\n\n-- name: b c\n-- B.\nSELECT 2", "a is not one statement"),
        ("-- name: a\n-- A.\n\n-- name: b\n-- B.\nSELECT 2", "a is not one statement"),
        ("-- name: a\n-- no full stop\nSELECT 1", "a has no sentence"),
    ],
)
def test_a_file_that_is_not_laid_out_well_is_refused(body: str, said: str) -> None:
    """A query without a name, a sentence or a statement cannot hide inside another one."""
    with pytest.raises(ValueError, match=said):
        list(read("t.sql", body))


def test_a_file_is_taken_apart() -> None:
    """Names, sentences over several lines, statements with comments and empty lines of their own."""
    body = "-- name: a\n-- One\n-- sentence.\nSELECT 1 -- one\n\n  + 2\n\n-- name: b\n-- Two.\nSELECT 2\n"
    assert [(text.name, text.sentence, text.sql) for text in read("t.sql", body)] == [
        ("a", "One sentence.", "SELECT 1 -- one\n\n  + 2"),
        ("b", "Two.", "SELECT 2"),
    ]


def test_two_queries_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when they live in two files."""
    twice = list(read("t.sql", "-- name: a\n-- A.\nSELECT 1\n"))
    monkeypatch.setattr(module, "read", lambda *_: iter(twice))
    with pytest.raises(ValueError, match="two queries named a"):
        texts.__wrapped__()


async def test_a_query_gives_rows_a_row_or_none(connection: Connection) -> None:
    """`first` of nothing is None, `one` of nothing is an error with the query's name, `run` counts."""
    some = Query("some", "Some.", "SELECT w AS word FROM unnest($1::text[]) w", Word)
    assert await some.all(connection, ["a", "b"]) == [Word("a"), Word("b")]
    assert await some.first(connection, ["a", "b"]) == Word("a")
    assert await some.first(connection, []) is None
    assert await some.one(connection, ["a"]) == Word("a")
    with pytest.raises(LookupError, match="some gave no row"):
        await some.one(connection, [])
    post = Query("post", "A post.", "INSERT INTO post (title) SELECT unnest($1::text[])", Word)
    assert await post.run(connection, ["a", "b", "c"]) == 3
    assert await Query("gone", "Gone.", "DELETE FROM circuit", Word).run(connection) == 0
    assert await Query("made", "Made.", "CREATE TABLE made (a int)", Word).run(connection) == 0
