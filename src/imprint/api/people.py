"""People: who is here; for administrators."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field

from imprint.api.gate import needs, router
from imprint.api.sessions import Name, Password
from imprint.api.shape import Given, Opening, Shape, shape
from imprint.api.site import Here, Me
from imprint.work import person as people
from imprint.work.caller import Caller
from imprint.work.scope import Role, Scope

routes = router("people")

Which = Annotated[str, Path(pattern=r"^[!-~]{1,200}$", description="The person's id.", examples=["operator"])]
EXAMPLE = {
    "id": "operator",
    "name": "ada",
    "role": "administrator",
    "looksAt": None,
    "createdAt": "2030-05-01T16:00:00Z",
    "disabledAt": None,
    "seenAt": "2030-05-02T09:00:00Z",
    "moves": [{"name": "disable"}],
}
Person = shape("Person", people.Person, moves=list[Opening], example=EXAMPLE)


class People(Shape):
    """Everybody."""

    items: list[Person]  # type: ignore[valid-type] # a shape made from its dataclass


class Change(Given):
    """What is to be different."""

    name: Name | None = None
    role: Role | None = Field(default=None, examples=["member"])


class Renewed(Given):
    """A new password, for somebody who has lost theirs."""

    password: Password


@routes.get("/people", response_model=People, openapi_extra=needs(Scope.PEOPLE_READ))
async def listed(site: Here, me: Me) -> dict[str, Any]:
    """List everybody."""
    async with site.database.connection() as connection:
        return {"items": [_told(me, each) for each in await people.listed(connection)]}


@routes.get("/people/{person}", response_model=Person, openapi_extra=needs(Scope.PEOPLE_READ))
async def show(site: Here, me: Me, person: Which) -> dict[str, Any]:
    """Show one person."""
    async with site.database.connection() as connection:
        return _told(me, await people.show(connection, person))


@routes.patch("/people/{person}", response_model=Person, openapi_extra=needs(Scope.PEOPLE_WRITE))
async def change(site: Here, me: Me, person: Which, given: Change) -> dict[str, Any]:
    """Give a person another name or role; one who becomes a reader looks at your things."""
    return _told(me, await people.change(site.database, me.person, person, name=given.name, role=given.role))


@routes.post("/people/{person}/disable", response_model=Person, openapi_extra=needs(Scope.PEOPLE_WRITE))
async def disable(site: Here, me: Me, person: Which) -> dict[str, Any]:
    """Let a person in no more; what they have scheduled goes on."""
    return _told(me, await people.disable(site.database, me.person, person))


@routes.post("/people/{person}/enable", response_model=Person, openapi_extra=needs(Scope.PEOPLE_WRITE))
async def enable(site: Here, me: Me, person: Which) -> dict[str, Any]:
    """Let a person in again."""
    return _told(me, await people.enable(site.database, me.person, person))


@routes.post("/people/{person}/password", status_code=204, openapi_extra=needs(Scope.PEOPLE_WRITE))
async def set_password(site: Here, me: Me, person: Which, given: Renewed) -> None:
    """Give a person a new password; every session of theirs ends."""
    await people.set_password(site.database, me.person, person, given.password)


def _told(me: Caller, person: people.Person) -> dict[str, Any]:
    """Give a person, with moves only for who may make them."""
    return person.as_data() | ({} if Scope.PEOPLE_WRITE in me.scopes else {"moves": []})
