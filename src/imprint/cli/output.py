"""Output: tables for people, JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def print_json(data: object) -> None:
    """Print data as JSON on standard output, where programs look for it."""
    typer.echo(json.dumps(data, indent=2, default=str, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as a table; nothing in them is taken for markup."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(_plain(cell) for cell in row))
    Console().print(table)


def say(text: str) -> None:
    """Print one line for a person."""
    Console(highlight=False, markup=False, soft_wrap=True).print(text)


def _plain(cell: object) -> str:
    return str(cell).replace("[", r"\[")
