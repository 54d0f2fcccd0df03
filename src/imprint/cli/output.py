"""Output: tables for people, JSON for programs."""

import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SHORT = 8
# Texts are broken between words, but not into columns that are narrower than this; a moment is never broken.
NARROWEST = 12
_MOMENT = re.compile(r"(about )?\d{4}-\d\d-\d\d")
GAP = 2
INDENT = 2
# Wider than any table.
ENDLESS = 100_000


def print_json(data: object) -> None:
    """Print data as JSON on standard output, where programs look for it."""
    typer.echo(json.dumps(data, indent=2, default=str, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as a table; nothing in them is taken for markup.

    Where the terminal is too narrow for it, each row becomes a few lines of its own: no id and no address is broken.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    used = [n for n, column in enumerate(columns) if column or any(row[n] for row in cells)]
    columns, cells = [columns[n] for n in used], [[row[n] for n in used] for row in cells]
    room = _width()
    if room is not None and cells and _least(columns, cells) > room:
        told = [n for n in range(len(columns)) if any(row[n] for row in cells)]  # an empty column tells nothing
        columns, cells = [columns[n] for n in told], [[row[n] for n in told] for row in cells]
        if _least(columns, cells) > room:
            _print_apart(title, columns, cells, room)
            return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column, width in zip(columns, _widths(columns, cells, room), strict=True):
        table.add_column(column, width=width)
    for row in cells:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    _print(table, markup=True)


def say(text: str) -> None:
    """Print one line for a person."""
    _print(text, markup=False)


def short(row: UUID) -> str:
    """Give as much of an id as a person needs to name it."""
    return str(row)[:SHORT]


def _least(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """Say how wide a table is at least when only spaces in texts are broken."""
    return sum(_narrowest(each) for each in _columns(columns, cells)) + GAP * (len(columns) - 1)


def _widths(columns: Sequence[str], cells: Sequence[Sequence[str]], room: int | None) -> list[int]:
    """Give each column what it needs at least, and what is left to the first ones that want more."""
    left = None if room is None else room - _least(columns, cells)
    widths: list[int] = []
    for each in _columns(columns, cells):
        least, wanted = _narrowest(each), max(map(cell_len, each))
        more = wanted - least if left is None else min(wanted - least, max(left, 0))
        left = None if left is None else left - more
        widths.append(least + more)
    return widths


def _columns(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[column, *(row[n] for row in cells)] for n, column in enumerate(columns)]


def _narrowest(column: Sequence[str]) -> int:
    longest = max(map(cell_len, column))
    words = (word for cell in column for word in ([cell] if _MOMENT.match(cell) else cell.split()))
    return min(longest, max(NARROWEST, *(cell_len(word) for word in words), 0))


def _print_apart(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], room: int) -> None:
    """Print each row as lines of its own: what it is, then a line for everything that is known of it."""
    names = max(cell_len(column) for column in columns[1:] or columns)
    say(title)
    for row in cells:
        say(row[0] or "-")
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                head = " " * INDENT + column.ljust(names) + " " * GAP
                say(_wrapped(head, cell, room))


def _wrapped(head: str, text: str, room: int) -> str:
    """Put a text behind its name; lines that follow begin where it began, and a word that is too long stays whole."""
    lines = textwrap.wrap(
        text,
        max(room - len(head), NARROWEST),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return ("\n" + " " * len(head)).join([head + (lines or [""])[0], *lines[1:]])


def _width() -> int | None:
    """Say how many letters a line has; None when nobody looks: what another program reads is not broken at all."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None


def _print(what: str | Table, *, markup: bool) -> None:
    # Through a string: Rich would end the program itself when whoever reads our output has seen enough.
    width = _width() or ENDLESS
    console = Console(highlight=False, markup=markup, soft_wrap=isinstance(what, str), width=width)
    with console.capture() as captured:
        console.print(what)
    typer.echo(captured.get(), nl=False)
