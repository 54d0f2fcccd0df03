"""The first code: what the first visitor must know, so that it is whoever started Imprint; made anew at each start."""

from dataclasses import dataclass

from imprint.problem import Problem
from imprint.store.query import Link, query
from imprint.work.secret import hashed_code, new_code


@dataclass(frozen=True)
class Code:
    """A code that was set or used up."""

    sha256: str


SET = query("first_code_set", Code)
USE = query("first_code_use", Code)


async def renewed(connection: Link) -> str | None:
    """Make a new code and forget the one before; None when there is a person already."""
    code = new_code()
    return code if await SET.first(connection, hashed_code(code)) else None


async def required(connection: Link) -> str:
    """Make a new code, or say why none is needed."""
    code = await renewed(connection)
    if code is None:
        raise Problem("first.done", "There is a first person already; invite others with `imprint person invite`.")
    return code


async def used(connection: Link, typed: str) -> bool:
    """Use the code up; False when it is not the one."""
    return await USE.first(connection, hashed_code(typed)) is not None
