"""A prefix: how a person names a row, by its name, its id or the first letters of that; one rule for all commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from imprint.problem import Problem

SHORTEST = 4  # fewer letters are a slip of the hand
DIGITS = 32
SHOWN = 8
MOST = 5
LONGEST_NAME = 40
PLURALS = {"api_key": "keys", "batch": "batches", "series": "series"}
_NOWHERE = UUID(int=1), UUID(int=0)


@dataclass(frozen=True)
class Candidate:
    """A row that may be meant; `exact` when it is called exactly so."""

    id: UUID
    name: str
    exact: bool


def bounds(text: str) -> tuple[UUID, UUID]:
    """Give the first and the last id that begin with these letters; what cannot be an id has none between its two."""
    letters = text.strip().lower().replace("-", "")
    try:
        if SHORTEST <= len(letters) <= DIGITS:
            return UUID(letters.ljust(DIGITS, "0")), UUID(letters.ljust(DIGITS, "f"))
    except ValueError:
        pass
    return _NOWHERE


def picked(text: str, found: Sequence[Candidate], missing: Problem) -> UUID:
    """Give the one that is meant; raise `missing` when there is none, and name them when there are several."""
    exact = [each for each in found if each.exact]
    meant = exact or [each for each in found if len(text.strip()) >= SHORTEST]
    if not meant:
        raise missing
    if len(meant) > 1:
        raise _ambiguous(text.strip(), meant, missing.code.partition(".")[0])
    return meant[0].id


def _ambiguous(text: str, meant: Sequence[Candidate], kind: str) -> Problem:
    """Say which ones could be meant, each with as many letters of its id as it takes to tell them apart."""
    ids = [str(each.id) for each in meant]
    letters = next(n for n in range(SHOWN, len(ids[0]) + 1) if len({each[:n] for each in ids}) == len(set(ids)))
    told = ", ".join(f"{str(each.id)[:letters]} ({_cut(each.name)})" for each in meant[:MOST])
    more = ", …" if len(meant) > MOST else ""
    plural = PLURALS.get(kind, f"{kind}s")
    return Problem(f"{kind}.ambiguous", f"{_cut(text)} can mean several {plural}: {told}{more}; write more of the id.")


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
