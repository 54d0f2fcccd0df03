"""Bulk: the same for many rows, each in a transaction of its own, with a report of what became of each."""

from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from imprint.problem import Problem

Which = TypeVar("Which", bound=Hashable)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Outcome(Generic[Which, Result]):
    """What became of one row: a result or a problem."""

    id: Which
    result: Result | None = None
    problem: Problem | None = None

    def as_data(self, result: object = None) -> dict[str, object]:
        """Give it as plain data, with the result as the caller writes it."""
        if self.problem is not None:
            return {"id": self.id, "ok": False, "code": self.problem.code, "error": self.problem.sentence}
        return {"id": self.id, "ok": True, "result": result}


async def each(rows: Iterable[Which], act: Callable[[Which], Awaitable[Result]]) -> list[Outcome[Which, Result]]:
    """Do it for each row, once; a problem with one does not stop the others."""
    outcomes: list[Outcome[Which, Result]] = []
    for row in dict.fromkeys(rows):
        try:
            outcomes.append(Outcome(row, result=await act(row)))
        except Problem as problem:
            outcomes.append(Outcome(row, problem=problem))
    return outcomes
