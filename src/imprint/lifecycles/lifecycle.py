"""A lifecycle: the states a thing can be in and the moves between them, declared once.

The database's checks, its transition trigger and audit trail, the diagram in the documentation and
the answer to "what can I do next?" are all made from this declaration.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class IllegalLifecycle(ValueError):  # noqa: N818 - named like the other problems
    """A declaration that contradicts itself; seen when the program starts, never later."""


@dataclass(frozen=True)
class Move:
    """A named step from one of several states to one state, and why it is taken."""

    name: str
    sources: tuple[StrEnum, ...]
    target: StrEnum
    why: str


@dataclass(frozen=True)
class Arrow:
    """One move seen from one state."""

    name: str
    source: StrEnum
    target: StrEnum
    why: str


@dataclass(frozen=True)
class Lifecycle:
    """The states of one table's rows, where they begin, and the moves that are allowed.

    `needs` names columns that must be filled in a state, `bars` columns that must be empty in it.
    """

    table: str
    states: type[StrEnum]
    initial: StrEnum
    moves: tuple[Move, ...]
    needs: Mapping[StrEnum, tuple[str, ...]] = field(default_factory=dict)
    bars: Mapping[StrEnum, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a declaration in which an arrow has two names or goes nowhere."""
        seen: dict[tuple[StrEnum, StrEnum], str] = {}
        for arrow in self._expand():
            pair = (arrow.source, arrow.target)
            if pair in seen:
                raise IllegalLifecycle(
                    f"{self.table}: {arrow.source}→{arrow.target} is both {seen[pair]!r} and {arrow.name!r}"
                )
            if arrow.source == arrow.target:
                raise IllegalLifecycle(f"{self.table}: {arrow.name!r} goes from {arrow.source} to itself")
            seen[pair] = arrow.name
        known = set(self.states)
        named = {state for pair in seen for state in pair} | {self.initial, *self.needs, *self.bars}
        if foreign := named - known:
            raise IllegalLifecycle(f"{self.table}: not a state of it: {', '.join(sorted(foreign))}")
        if unreachable := known - self._reachable():
            raise IllegalLifecycle(f"{self.table}: nothing leads to {', '.join(sorted(unreachable))}")
        for state in known:
            if torn := set(self.needs.get(state, ())) & set(self.bars.get(state, ())):
                raise IllegalLifecycle(f"{self.table}: {state} both needs and bars {', '.join(sorted(torn))}")

    @cached_property
    def arrows(self) -> tuple[Arrow, ...]:
        """Every (source, target) pair that is allowed, with the name of its move."""
        return tuple(self._expand())

    def open_to(self, state: str) -> tuple[Arrow, ...]:
        """List the moves that are open to a row in this state."""
        return tuple(arrow for arrow in self.arrows if arrow.source == state)

    def move(self, source: str, target: str) -> str | None:
        """Name the move from one state to another, None where there is none."""
        return next((a.name for a in self.arrows if a.source == source and a.target == target), None)

    def conditions(self) -> Iterator[tuple[str, str]]:
        """Give a name and an SQL condition for every rule that a CHECK can hold."""
        yield "lifecycle_states", f"status IN ({', '.join(map(_literal, self.states))})"
        for state, columns in self.needs.items():
            for column in columns:
                yield f"lifecycle_{state}_needs_{column}", f"status <> {_literal(state)} OR {column} IS NOT NULL"
        for state, columns in self.bars.items():
            for column in columns:
                yield f"lifecycle_{state}_bars_{column}", f"status <> {_literal(state)} OR {column} IS NULL"

    def sql(self) -> str:
        """Write the statements that make PostgreSQL hold exactly this declaration, whatever it held before."""
        rows = ",\n    ".join(
            f"({', '.join(map(_literal, (self.table, a.source, a.target, a.name, a.why)))})" for a in self.arrows
        )
        checks = ",\n    ".join(f"ADD CONSTRAINT {name} CHECK ({rule})" for name, rule in self.conditions())
        return _SQL.format(table=self.table, initial=_literal(self.initial), rows=rows, checks=checks)

    def mermaid(self) -> str:
        """Draw the lifecycle as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        lines += [f"    {a.source} --> {a.target}: {a.name}" for a in self.arrows]
        lines += [f"    {state} --> [*]" for state in self.states if not self.open_to(state)]
        return "\n".join(lines)

    def as_data(self) -> dict[str, object]:
        """Give the declaration as plain data, one entry for each arrow."""
        return {
            "name": self.table,
            "states": [str(state) for state in self.states],
            "initial": str(self.initial),
            "moves": [{"name": a.name, "from": str(a.source), "to": str(a.target), "why": a.why} for a in self.arrows],
        }

    def _expand(self) -> Iterator[Arrow]:
        for move in self.moves:
            for source in move.sources:
                yield Arrow(move.name, source, move.target, move.why)

    def _reachable(self) -> set[StrEnum]:
        reached, frontier = {self.initial}, [self.initial]
        while frontier:
            state = frontier.pop()
            ahead = {a.target for a in self._expand() if a.source == state} - reached
            reached |= ahead
            frontier += ahead
        return reached


def _literal(text: str) -> str:
    return "'" + str(text).replace("'", "''") + "'"


# `status_at` moves before the row is written, the guard looks after: so an insert that ON CONFLICT
# throws away leaves no line in the audit. Both are ENABLE ALWAYS: no session setting turns them off.
_SQL = """\
ALTER TABLE {table} ALTER COLUMN status SET DEFAULT {initial};
SELECT lifecycle_drop_checks('{table}');
ALTER TABLE {table}
    {checks};
DELETE FROM lifecycle_move WHERE lifecycle = '{table}';
INSERT INTO lifecycle_move (lifecycle, source, target, name, why) VALUES
    {rows};
CREATE OR REPLACE TRIGGER lifecycle_stamp BEFORE UPDATE ON {table}
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION lifecycle_stamp();
CREATE OR REPLACE TRIGGER lifecycle_begin AFTER INSERT ON {table}
    FOR EACH ROW EXECUTE FUNCTION lifecycle_guard({initial});
CREATE OR REPLACE TRIGGER lifecycle_move AFTER UPDATE ON {table}
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION lifecycle_guard({initial});
CREATE OR REPLACE TRIGGER lifecycle_identity BEFORE UPDATE ON {table}
    FOR EACH ROW WHEN (OLD.id IS DISTINCT FROM NEW.id) EXECUTE FUNCTION lifecycle_refuse('renaming');
CREATE OR REPLACE TRIGGER lifecycle_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION lifecycle_refuse('emptying');
ALTER TABLE {table} ENABLE ALWAYS TRIGGER lifecycle_identity;
ALTER TABLE {table} ENABLE ALWAYS TRIGGER lifecycle_truncate;
ALTER TABLE {table} ENABLE ALWAYS TRIGGER lifecycle_stamp;
ALTER TABLE {table} ENABLE ALWAYS TRIGGER lifecycle_begin;
ALTER TABLE {table} ENABLE ALWAYS TRIGGER lifecycle_move;
"""
