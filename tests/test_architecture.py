"""The house: SQL lives in the store, and no module is a bucket."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import imprint

SOURCE = Path(imprint.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# The store holds the SQL; a lifecycle writes what it is made of itself.
MAY_HOLD_SQL = ("store/", "lifecycles/lifecycle.py")
BUCKETS = {"utils", "util", "common", "helpers", "models", "misc"}

# Statements, not words: a sentence may well begin with Update, in capitals it does not go on with a table.
STATEMENT = re.compile(
    r"\b(SELECT\s+.+\s+FROM\b|SELECT\s+\w+\(|INSERT\s+INTO\b|UPDATE\s+\S+\s+SET\b|DELETE\s+FROM\b"
    r"|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|DATABASE|TRIGGER|FUNCTION|ROLE|SCHEMA|TYPE)\b|TRUNCATE\s+\w+"
    r"|LISTEN\s+\w+|NOTIFY\s+\w+|SET\s+LOCAL\b)",
    re.DOTALL,
)


def place(module: Path) -> str:
    """Name a module by its path inside the package."""
    return module.relative_to(SOURCE).as_posix()


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give every text of a module that is not a docstring, the constant parts of an f-string joined."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            skipped.add(id(node.body[0].value))  # type: ignore[attr-defined] # an expression, or there were no docstring
        if isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            skipped |= {id(part) for part in parts}
            yield node.lineno, " x ".join(str(part.value) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def statements(code: str) -> list[str]:
    """List the texts of a module that look like SQL."""
    return [f"line {line}: {text[:60]!r}" for line, text in texts(ast.parse(code)) if STATEMENT.search(text)]


@pytest.mark.parametrize("module", MODULES, ids=place)
def test_sql_lives_in_the_store(module: Path) -> None:
    """Nobody else writes statements, so that all of them can be read, planned and checked in one place."""
    if place(module).startswith(MAY_HOLD_SQL):
        return
    assert statements(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("a = 'SELECT id FROM post'", 1),
        ("a = 'SELECT pg_sleep(1)'", 1),
        ("a = '''\n  WITH x AS (SELECT 1)\n  INSERT INTO post VALUES (1)'''", 1),
        ("a = f'UPDATE {table} SET status = 1'", 1),
        ("a = f'DELETE FROM {table}'", 1),
        ("a = 'CREATE TABLE x ()'", 1),
        ("async def a():\n    'SELECT 1 FROM x'\n    return 'Select one of them from the list'", 0),
        ("a = 'Update the settings'", 0),
    ],
)
def test_the_eye_for_sql_is_sharp(code: str, seen: int) -> None:
    """A test that sees nothing would prove nothing."""
    assert len(statements(code)) == seen


def test_no_module_is_a_bucket() -> None:
    """Each file is one noun of the glossary."""
    assert [
        place(module) for module in MODULES if BUCKETS & set(module.relative_to(SOURCE).with_suffix("").parts)
    ] == []
    assert len(MODULES) > 20
