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
    _print(table, markup=True)


def say(text: str) -> None:
    """Print one line for a person."""
    _print(text, markup=False)


def _print(what: str | Table, *, markup: bool) -> None:
    # Through a string: Rich would end the program itself when whoever reads our output has seen enough.
    console = Console(highlight=False, markup=markup, soft_wrap=isinstance(what, str))
    with console.capture() as captured:
        console.print(what)
    typer.echo(captured.get(), nl=False)


def _plain(cell: object) -> str:
    return str(cell).replace("[", r"\[")
