"""Writes the pages that are made from the code: `python -m docs.generate`; with `--check` it only names stale ones."""

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from typer.core import TyperGroup
from typer.main import get_command

from docs import reliability
from imprint.api.house import NOUNS
from imprint.api.openapi import DESCRIPTION, document, operations
from imprint.cli.program import program
from imprint.engine.clock import Timer, timers
from imprint.lifecycles.lifecycle import Lifecycle
from imprint.lifecycles.registry import LIFECYCLES
from imprint.main import entrypoints, proofs, serve, town
from imprint.problem import Exit
from imprint.settings import Settings, described
from imprint.store.query import Text, read, texts

FOLDER = Path(__file__).parent
STALE = 1
WIDTH = 80

_HEAD = "<!-- Made by `make docs` from the code. Change the code, not this page. -->\n\n"
_INTERRUPTED = (130, "Ctrl-C stopped the command before it was done; `up`, `worker`, `api` and `sandbox` end with 0")


def pages() -> dict[str, str]:
    """Give every generated page by its file name."""
    written = {
        "lifecycles.md": _lifecycles(),
        "settings.md": _settings(),
        "cli.md": _cli(),
        "queries.md": _queries(),
        "timers.md": _timers(),
        "api.md": _api(),
        "reliability.md": _page("Reliability", reliability.OPENING, *reliability.page(_table)),
    }
    return {name: _HEAD + text.rstrip() + "\n" for name, text in written.items()}


def stale(folder: Path = FOLDER) -> list[str]:
    """Name the pages that are missing or no longer say what the code says."""
    return [name for name, text in pages().items() if _read(folder / name) != text]


def exits() -> dict[int, str]:
    """Give every exit code with its sentence, which is the comment behind it in the code."""
    said = dict(re.findall(r"^ +(\w+) = \d+(?: +# (.+))?$", inspect.getsource(Exit), re.MULTILINE))
    return {code.value: said[code.name] or "it worked" for code in Exit} | dict([_INTERRUPTED])


def commands() -> dict[str, str]:
    """Give every command with what its `--help` prints."""
    group = get_command(program(entrypoints, serve, town, proofs))
    if not isinstance(group, TyperGroup):  # pragma: no cover - an application with one command only
        raise TypeError("imprint has no commands")
    found: dict[str, str] = {}
    for name, command in group.commands.items():
        found[name] = _help(f"imprint {name}", command)
        if isinstance(command, TyperGroup):
            parts = (_help(f"imprint {name} {below}", each) for below, each in command.commands.items())
            found[name] = "\n\n".join([found[name], *parts])
    return found


def _help(name: str, command: Any) -> str:
    context = command.make_context(name, [], resilient_parsing=True, terminal_width=WIDTH, max_content_width=WIDTH)
    return str(command.get_help(context)).rstrip()


def queries() -> Mapping[str, list[Text]]:
    """Give every query by the file it is in."""
    files = sorted(resources.files("imprint.store").joinpath("sql").iterdir(), key=lambda file: file.name)
    return {
        file.name: list(read(file.name, file.read_text(encoding="utf-8")))
        for file in files
        if file.name.endswith(".sql")
    }


def _statement(timer: Timer) -> str:
    return f"lease_expire_{timer.name.removesuffix('_lost')}" if timer.entrypoint is None else f"clock_{timer.name}"


def main(arguments: Sequence[str], folder: Path = FOLDER) -> int:
    """Write the pages, or with `--check` name the stale ones and fail."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m docs.generate [--check]\n")
        return 2
    old = stale(folder)
    if arguments:
        sys.stdout.writelines(f"docs/{name} is stale; run `make docs`.\n" for name in old)
        return STALE if old else 0
    written = pages()
    for name in old:
        (folder / name).write_text(written[name], encoding="utf-8")
        sys.stdout.write(f"wrote docs/{name}\n")
    return 0


def _lifecycles() -> str:
    parts = [" · ".join(f"[{lifecycle.table}](#{lifecycle.table})" for lifecycle in LIFECYCLES)]
    for lifecycle in LIFECYCLES:
        parts += [
            f"## {lifecycle.table}",
            f"Begins as `{lifecycle.initial}`.",
            f"```mermaid\n{lifecycle.mermaid()}\n```",
            _table(("move", "from", "to", "when"), _moves(lifecycle)),
            *_conditions(lifecycle),
        ]
    return _page(
        "Lifecycles",
        "The states a thing can be in and the moves between them. Each is declared once, in `src/imprint/lifecycles/`; "
        "PostgreSQL refuses every move that is not here and writes down every one that is taken. "
        "`imprint lifecycles` shows the same on the command line.",
        *parts,
    )


def _moves(lifecycle: Lifecycle) -> Iterator[tuple[str, ...]]:
    for move in lifecycle.moves:
        yield f"`{move.name}`", ", ".join(f"`{source}`" for source in move.sources), f"`{move.target}`", move.why


def _conditions(lifecycle: Lifecycle) -> Iterator[str]:
    """Say what a row must and must not carry in a state, where the lifecycle says so."""
    rows = [
        (f"`{state}`", _columns(lifecycle.needs.get(state, ())), _columns(lifecycle.bars.get(state, ())))
        for state in lifecycle.states
        if state in lifecycle.needs or state in lifecycle.bars
    ]
    if rows:
        yield _table(("in state", "must be filled", "must be empty"), rows)


def _columns(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _settings() -> str:
    rows = [(f"`{each.variable}`", _shown(each.default), each.sentence) for each in described(Settings)]
    return _page(
        "Settings",
        "A setting is a variable of the environment. One that is empty counts as not set. "
        "A name that is not here, or a bad value, stops the start and says which. "
        "`imprint settings` shows the same on the command line.",
        _table(("variable", "default", ""), rows),
    )


def _shown(default: str) -> str:
    return default if default == "none" or "`" in default else f"`{default}`"


def _cli() -> str:
    found = commands()
    parts = [
        "## Exit codes",
        _table(("code", "meaning"), ((f"`{code}`", sentence) for code, sentence in sorted(exits().items()))),
        "## Commands",
        " · ".join(f"[{name}](#imprint-{name})" for name in found),
    ]
    for name, text in found.items():
        parts += [f"### imprint {name}", f"```text\n{text}\n```"]
    return _page(
        "The command line",
        "After `make install` the command is `.venv/bin/imprint`. What goes wrong is one sentence on standard error; "
        'with `--json` it is `{"code": …, "error": …}`, where the code stays the same from version to version.',
        *parts,
    )


def _queries() -> str:
    parts: list[str] = []
    for file, found in queries().items():
        parts += [f"## {file}", _table(("query", ""), ((f"`{text.name}`", text.sentence) for text in found))]
    return _page(
        "Queries",
        "Every named query, by the file in `src/imprint/store/sql/` that holds it. "
        "PgQueuer's own and the migrations are not in this list.",
        *parts,
    )


def _timers() -> str:
    rows = []
    for timer in timers(crashes_before_quarantine=1):
        sentence = texts()[_statement(timer)].sentence
        rows.append((f"`{timer.name}`", f"`{timer.entrypoint}`" if timer.entrypoint else "", sentence))
    return _page(
        "Timers",
        "The columns of times that the clock watches. What is due is handed to the entrypoint, as a job; where none is "
        "named, the statement does all there is to do. A worker watches only the timers whose entrypoint it has.",
        _table(("timer", "entrypoint", ""), rows),
    )


def routes() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Give every route of the API: its method, its path and what the OpenAPI document says of it."""
    app = FastAPI()
    for noun in NOUNS:
        app.include_router(noun.routes)
    for method, path, operation in operations(document(app)):
        yield method.upper(), path, operation


def _api() -> str:
    nouns: dict[str, list[Sequence[str]]] = {}
    for method, path, operation in routes():
        row = f"`{method}`", f"`{path}`", f"`{operation['x-scope']}`", operation["description"].split("\n")[0]
        nouns.setdefault(operation["tags"][0], []).append(row)
    parts = [" · ".join(f"[{name}](#{name.replace(' ', '-')})" for name in nouns)]
    example = (FOLDER / "first-post.sh").read_text(encoding="utf-8").rstrip()
    parts += ["## From a key to a published post", "This is [first-post.sh](first-post.sh).", f"```sh\n{example}\n```"]
    for name, rows in nouns.items():
        parts += [f"## {name}", _table(("", "path", "needs", ""), rows)]
    return _page(
        "The API",
        f"{DESCRIPTION} A running Imprint shows the same with bodies, answers and examples at `/api/docs`, and as "
        "OpenAPI 3.1 at `/api/openapi.json`. What an operation needs is a scope; `open` is for everybody, `signed-in` "
        "for a session or a key, `self` for a session only.",
        *parts,
    )


def _page(title: str, opening: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", opening, *parts])


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;")


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
