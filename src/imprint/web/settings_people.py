"""People: who is here, what they are, and whether they are let in; for administrators."""

from typing import Annotated, Any

from fastapi import Path
from fastapi.responses import Response

from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import person as people
from imprint.work.scope import Role, Scope

routes = pages()
Which = Annotated[str, Path(pattern=r"^[!-~]{1,200}$")]


@routes.get("/settings/people", **seen_by(Scope.PEOPLE_READ))
async def everybody(look: Looking) -> Response:
    """Show everybody."""
    return look.page("settings_people.html", title="People", **await _people(look))


@routes.get("/settings/people/rows", **seen_by(Scope.PEOPLE_READ))
async def rows(look: Looking) -> Response:
    """Show everybody, again."""
    return look.part("settings_people_rows.html", **await _people(look))


@routes.get("/settings/people/{person}", **seen_by(Scope.PEOPLE_READ))
async def one(look: Looking, person: Which) -> Response:
    """Show one person, and what can be changed about them."""
    async with look.site.database.connection() as connection:
        shown = await people.show(connection, person)
    return look.page("settings_person.html", title=shown.name, person=shown, roles=list(Role))


async def _people(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        return {"people": await people.listed(connection)}
