"""A sheet: posts as rows of CSV, to take out what a list shows, and to bring many in at once.

What is brought in comes whole or not at all: each row is tried in the transaction that would keep it, and one that is
wrong takes all of them back. So a preview is the very same, taken back at its end.
"""

import csv
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from io import StringIO
from uuid import UUID
from zoneinfo import ZoneInfo

from imprint.decisions.schedule import Bounds, Slot, parse, shown, slot, zone_of
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work import account as accounts
from imprint.work.attach import ATTACH
from imprint.work.catalogue import Wanted
from imprint.work.fitting import Fitting
from imprint.work.post import APPROVE, CREATE, FILES, MOST_FILES, SHOW, lacks, missing_post
from imprint.work.post_fields import checked
from imprint.work.schedule import Target, plan

COLUMNS = ("title", "description", "tags", "kind", "body", "account", "time", "files")
# What goes out with a sheet and is not read when it comes back.
TOLD = ("id", "state", "address")
MOST_ROWS = 500
MOST_OUT = 10_000
# A cell that begins so is a formula to a spreadsheet; one of ours never is.
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_QUOTED = re.compile(r"'(?=[=+\-@\t\r\n'])")


@dataclass(frozen=True)
class Row:
    """A post as it goes into a sheet."""

    id: UUID
    kind: str
    title: str
    description: str
    body: str
    tags: list[str]
    status: str
    zone: str
    files: list[str]
    accounts: list[str]
    at: datetime | None
    urls: list[str]


@dataclass(frozen=True)
class Named:
    """Content by its name."""

    id: UUID
    name: str


@dataclass(frozen=True)
class Brought:
    """What became of one row: the post it made or would make, or what is wrong with it."""

    row: int
    title: str
    post: UUID | None = None
    at: datetime | None = None
    accounts: tuple[str, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True)
class _Known:
    """What rows can name: accounts and files of the person."""

    accounts: Mapping[str, Sequence[UUID]]
    files: Mapping[str, Sequence[UUID]]


class _TakeBack(Exception):  # noqa: N818 - not an error: a preview ends so
    """Takes everything of a transaction back."""


ROWS = query("sheet_rows", Row)
CONTENTS = query("sheet_contents", Named)


async def written(connection: Link, owner: str, wanted: Wanted) -> str:
    """Write what a list shows as CSV, the newest first."""
    found = await ROWS.all(connection, owner, wanted.status, wanted.kind, wanted.text, wanted.account, MOST_OUT)
    out = StringIO()
    sheet = csv.writer(out)
    sheet.writerow([*COLUMNS, *TOLD])
    for row in found:
        time = shown(row.at, zone_of(row.zone)) if row.at else ""
        words = (row.title, row.description, ", ".join(row.tags), row.kind, row.body)
        places = ("; ".join(row.accounts), time, "; ".join(row.files))
        sheet.writerow(map(_cell, (*words, *places, str(row.id), row.status, " ".join(row.urls))))
    return out.getvalue()


async def bring(
    database: Database, limits: Bounds, owner: str, text: str, *, zone: str, fitting: Fitting, keep: bool
) -> list[Brought]:
    """Make a post of each row; with one that is wrong, or without `keep`, none of them stays."""
    wall = zone_of(zone)
    rows = list(_read(text))
    brought: list[Brought] = []
    with suppress(_TakeBack):
        async with database.transaction(owner, "brought in with a sheet") as connection:
            known = await _known(connection, owner, rows)
            for number, row in enumerate(rows, 2):  # as a spreadsheet counts: the first row has the names
                title = row.get("title", "")[:200]
                try:
                    async with connection.transaction():
                        made = await _bring(connection, limits, owner, row, known, wall, fitting)
                    at = parse(row["time"], wall) if row.get("time") else None
                    brought.append(Brought(number, title, made, at, tuple(_parts(row.get("account", "")))))
                except Problem as problem:
                    brought.append(Brought(number, title, problem=problem))
            if not keep or any(each.problem for each in brought):
                raise _TakeBack
    return brought


async def _bring(
    connection: Link,
    limits: Bounds,
    owner: str,
    row: Mapping[str, str],
    known: _Known,
    wall: ZoneInfo,
    fitting: Fitting,
) -> UUID:
    """Make one post; one with a time is ready and scheduled, one without is in review."""
    words = {name: row[name] for name in ("title", "description", "body", "kind") if row.get(name)}
    post = (await CREATE.one(connection, owner, *checked({**words, "tags": _tags(row), "zone": wall.key}).columns())).id
    names = list(dict.fromkeys(_parts(row.get("files", ""))))
    if len(names) > MOST_FILES:
        raise Problem("post.many_files", f"A post has {MOST_FILES} files at most.")
    for name in names:
        if await ATTACH.first(connection, post, _one(known.files, name, "file"), owner, "") is None:
            raise Problem("content.missing", "There is no such content.")
    places = [Target(_one(known.accounts, name, "account")) for name in _parts(row.get("account", ""))]
    if not row.get("time"):
        if places:
            raise Problem("sheet.no_time", "It has an account but no time; leave both empty to keep it in review.")
        return post
    made = await SHOW.first(connection, post, owner)
    if made is None:
        raise missing_post()
    if missing := lacks(made, await FILES.all(connection, post)):
        raise missing
    await APPROVE.one(connection, post)
    when = partial(_slot, limits, parse(row["time"], wall), wall.key)
    await plan(connection, owner, post, places, when, fitting)
    return post


def _slot(limits: Bounds, at: datetime, zone: str, now: datetime, _: Target) -> Slot:
    return slot(now, at, zone, limits, random.random())  # noqa: S311 - a time, no secret


async def _known(connection: Link, owner: str, rows: Sequence[Mapping[str, str]]) -> _Known:
    """Look up everything that the rows name, at once."""
    named: dict[str, list[UUID]] = {}
    for account in await accounts.listed(connection, owner):
        named.setdefault(account.shown.casefold(), []).append(account.id)
    wanted = sorted({name for row in rows for name in _parts(row.get("files", ""))})
    files: dict[str, list[UUID]] = {}
    for content in await CONTENTS.all(connection, owner, wanted):
        files.setdefault(content.name.casefold(), []).append(content.id)
    return _Known(named, files)


def _one(known: Mapping[str, Sequence[UUID]], name: str, what: str) -> UUID:
    found = known.get(name.casefold(), ())
    if not found:
        raise Problem(f"sheet.no_{what}", f"There is no {what} called {name[:100]!r}.")
    if len(found) > 1:
        raise Problem(f"sheet.many_{what}s", f"{len(found)} {what}s are called {name[:100]!r}; which one is meant?")
    return found[0]


def _read(text: str) -> Iterator[dict[str, str]]:
    """Read the rows, by the names in the first one; commas, semicolons and tabs may part the cells."""
    text = text.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    parts = max(",;\t", key=first.count)
    try:
        table = [row for row in csv.reader(StringIO(text, newline=""), delimiter=parts, strict=True) if any(row)]
    except csv.Error as error:
        raise Problem("sheet.unreadable", f"This is not CSV: {error}.") from None
    if len(table) < 2:  # noqa: PLR2004 - the names, and something under them
        raise Problem("sheet.empty", f"There are no rows. The first one has the names: {', '.join(COLUMNS)}.")
    if len(table) - 1 > MOST_ROWS:
        raise Problem("sheet.too_long", f"{MOST_ROWS} rows at most come in at once; these are {len(table) - 1}.")
    names = [cell.strip().casefold() for cell in table[0]]
    if strange := [name for name in names if name not in {*COLUMNS, *TOLD}]:
        raise Problem("sheet.no_column", f"There is no column {strange[0][:60]!r}; there are {', '.join(COLUMNS)}.")
    if len(set(names)) < len(names) or "title" not in names:
        raise Problem("sheet.no_column", "Each column stands there once, and one of them is the title.")
    for number, row in enumerate(table[1:], 2):
        if len(row) > len(names):
            raise Problem("sheet.unreadable", f"Row {number} has more cells than there are names in the first one.")
        yield {name: _plain(cell) for name, cell in zip(names, row, strict=False)}


def _tags(row: Mapping[str, str]) -> list[str]:
    return [word.strip() for word in re.split(r"[,;]", row.get("tags", "")) if word.strip()]


def _parts(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";") if part.strip()]


def _plain(cell: str) -> str:
    """Give a cell without what keeps spreadsheets from taking it for a formula."""
    return (cell[1:] if _QUOTED.match(cell) else cell).strip()


def _cell(text: str) -> str:
    """Write a cell so that no spreadsheet takes it for a formula; read again it is what it was."""
    return f"'{text}" if _FORMULA.match(text) or _QUOTED.match(text) else text
