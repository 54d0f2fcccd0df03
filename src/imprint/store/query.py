"""A query: SQL from a .sql file, with a name, a sentence and the frozen dataclass its rows become.

In the files a query reads

    -- name: worker_seen
    -- A worker says that it is alive.
    UPDATE worker …

and in the code `SEEN = query("worker_seen", Seen)`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

import asyncpg
import asyncpg.pool

# asyncpg's classes can be subscripted by the type checker only.
Link: TypeAlias = "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

Row = TypeVar("Row")

_HEAD = re.compile(r"^-- name: (\w+)\n((?:-- (?!name:).*\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Text:
    """What a .sql file says about one query."""

    name: str
    sentence: str
    sql: str


@dataclass(frozen=True)
class Query(Generic[Row]):
    """A statement that can be run on any connection; its rows are frozen dataclasses."""

    name: str
    sentence: str
    sql: str
    row: type[Row]

    async def all(self, connection: Link, *values: Any) -> list[Row]:
        """Run it and give every row."""
        return [self.row(*record) for record in await connection.fetch(self.sql, *values)]

    async def first(self, connection: Link, *values: Any) -> Row | None:
        """Run it and give the first row; None is an answer, not an accident."""
        record = await connection.fetchrow(self.sql, *values)
        return None if record is None else self.row(*record)

    async def one(self, connection: Link, *values: Any) -> Row:
        """Run it and give the row it always has."""
        row = await self.first(connection, *values)
        if row is None:
            raise LookupError(f"{self.name} gave no row")
        return row

    async def run(self, connection: Link, *values: Any) -> int:
        """Run it for its effect and say how many rows it touched."""
        tag = (await connection.execute(self.sql, *values)).rpartition(" ")[2]
        return int(tag) if tag.isdigit() else 0


@dataclass(frozen=True)
class Nothing:
    """The row of a statement that is run for its effect."""


_declared: dict[str, Query[Any]] = {}


def query(name: str, row: type[Row]) -> Query[Row]:
    """Declare the query of that name from the .sql files, and what its rows become."""
    text = texts()[name]
    new = Query(name, text.sentence, text.sql, row)
    if _declared.setdefault(name, new) != new:
        raise ValueError(f"{name} is already declared with another row")
    return new


def declared() -> Mapping[str, Query[Any]]:
    """Give every query the code has declared so far, for the tests that EXPLAIN each of them."""
    return MappingProxyType(_declared)


@cache
def texts() -> Mapping[str, Text]:
    """Read every .sql file once."""
    found: dict[str, Text] = {}
    for file in sorted(resources.files("imprint.store").joinpath("sql").iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        for text in read(file.name, file.read_text(encoding="utf-8")):
            if text.name in found:
                raise ValueError(f"{file.name}: there are two queries named {text.name}")
            found[text.name] = text
    return MappingProxyType(found)


def read(file: str, body: str) -> Iterator[Text]:
    """Take a .sql file apart; raise where it is not laid out as it should be, lest a query vanish in another."""
    heads = list(_HEAD.finditer(body))
    if body[: heads[0].start() if heads else None].strip():
        raise ValueError(f"{file}: does not begin with a query's name and sentence")
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        name = head[1]
        sql = body[head.end() : following.start() if following else None].strip()
        sentence = " ".join(line.removeprefix("-- ") for line in head[2].splitlines())
        if not sentence.endswith("."):
            raise ValueError(f"{file}: {name} has no sentence before it")
        if not sql or re.search(r"--\s*name\b", sql):
            raise ValueError(f"{file}: {name} is not one statement with the next name after it")
        yield Text(name, sentence, sql)
