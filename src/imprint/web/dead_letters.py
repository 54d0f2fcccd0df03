"""Dead letters: what failed for good; one's own for everybody, those of the whole machine for administrators."""

from typing import Annotated, Any

from fastapi import Path, Query
from fastapi.responses import Response

from imprint.api import cursor
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import dead_letter as letters
from imprint.work.scope import Scope
from imprint.work.status import DEAD_LETTERS

routes = pages()
PAGE = 50
# What a queue does, for people; any other is a job of the machine.
KINDS = {"notify": "a message to", "ingest": "an item of"}
OWN, MACHINE = "/dead-letters", "/dead-letters/machine"

After = Annotated[str, Query(max_length=100)]
Id = Annotated[str, Path(max_length=60)]


@routes.get(OWN, **seen_by(Scope.NOTICES_READ))
async def own(look: Looking, after: After = "") -> Response:
    """Show one's own."""
    return look.page("dead_letters.html", title="Dead letters", **await _found(look, OWN, after))


@routes.get(f"{OWN}/rows", **seen_by(Scope.NOTICES_READ))
async def own_rows(look: Looking, after: After = "") -> Response:
    """Show one's own, again."""
    return look.part("dead_letters_rows.html", **await _found(look, OWN, after))


@routes.get(MACHINE, **seen_by(Scope.SYSTEM_READ))
async def machine(look: Looking, after: After = "") -> Response:
    """Show those of the whole machine."""
    return look.page("dead_letters.html", title="Dead letters", **await _found(look, MACHINE, after))


@routes.get(f"{MACHINE}/rows", **seen_by(Scope.SYSTEM_READ))
async def machine_rows(look: Looking, after: After = "") -> Response:
    """Show those of the whole machine, again."""
    return look.part("dead_letters_rows.html", **await _found(look, MACHINE, after))


@routes.get(f"{MACHINE}/count", **seen_by(Scope.SYSTEM_READ))
async def machine_count(look: Looking) -> Response:
    """Show how many there are on the whole machine."""
    async with look.site.database.connection() as connection:
        held = sum(each.held for each in await DEAD_LETTERS.all(connection))
    return look.part("dead_letters_count.html", held=held)


@routes.get(f"{MACHINE}/{{letter}}", **seen_by(Scope.SYSTEM_READ))
async def of_machine(look: Looking, letter: Id) -> Response:
    """Show one of the whole machine."""
    return await _letter(look, MACHINE, letter)


@routes.get(f"{OWN}/{{letter}}", **seen_by(Scope.NOTICES_READ))
async def of_own(look: Looking, letter: Id) -> Response:
    """Show one of one's own."""
    return await _letter(look, OWN, letter)


def _side(look: View, where: str) -> dict[str, Any]:
    """Say on which side of the page one is, and what may be done there."""
    machine = where == MACHINE
    scope = Scope.SYSTEM_WRITE if machine else Scope.NOTICES_WRITE
    api = "/api/system/dead-letters" if machine else "/api/dead-letters"
    return {"where": where, "machine": machine, "api": api, "may_move": look.may(scope), "kinds": KINDS}


async def _found(look: View, where: str, after: str) -> dict[str, Any]:
    owner = None if where == MACHINE else look.me.owner
    async with look.site.database.connection() as connection:
        found = await letters.listed(connection, None, PAGE + 1, owner=owner, after=cursor.read(after or None))
    told = cursor.page(found, PAGE, [each.as_data() for each in found], by="held_at", row="key")
    return {**_side(look, where), "letters": told["items"], "next": told["next"], "after": after}


async def _letter(look: View, where: str, letter: str) -> Response:
    owner = None if where == MACHINE else look.me.owner
    async with look.site.database.connection() as connection:
        shown = (await letters.show(connection, letter, owner=owner)).as_data()
    return look.page("dead_letter.html", title=shown["about"], letter=shown, **_side(look, where))
