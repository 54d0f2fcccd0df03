"""Invitations: let others in; an administrator anybody, a member readers of their own things."""

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import Request, Response
from pydantic import Field

from imprint.api.gate import OPEN, SELF, needs, router
from imprint.api.sessions import Name, Password, Signed, welcome
from imprint.api.shape import Given, Opening, Shape, Text, shape
from imprint.api.site import Here, Me, client
from imprint.work import invitation as invitations
from imprint.work import sign_in_limit
from imprint.work.scope import Role

routes = router("invitations")

Invitation = shape("Invitation", invitations.Invitation, moves=list[Opening])
Made = shape(
    "NewInvitation",
    invitations.Made,
    example={
        "id": "5f0c6f0e-4f0e-4a57-9d3c-0a3c7c0b2f11",
        "role": "member",
        "expiresAt": "2030-05-08T16:00:00Z",
        "code": "7KQFM-2HXPD-9RVTC-WNEBA-38GYZ",
    },
)


class Invitations(Shape):
    """Invitations that are open."""

    items: list[Invitation]  # type: ignore[valid-type] # a shape made from its dataclass


class Invite(Given):
    """Whom to let in."""

    role: Annotated[Role, Field(examples=["member"])] = Role.MEMBER
    label: Annotated[Text, Field(max_length=100, examples=["Grace"])] = ""
    days: Annotated[int, Field(ge=1, le=30)] = 7


class Accept(Given):
    """The code one was given, and the name and password one wants."""

    code: Annotated[Text, Field(max_length=100, examples=["7KQFM-2HXPD-9RVTC-WNEBA-38GYZ"])]
    name: Name
    password: Password


@routes.get("/invitations", response_model=Invitations, openapi_extra=needs(SELF))
async def listed(site: Here, me: Me) -> dict[str, Any]:
    """List the invitations that are open: one's own, for an administrator all."""
    async with site.database.connection() as connection:
        return {"items": [each.as_data() for each in await invitations.listed(connection, _whose(me.role, me.person))]}


@routes.post("/invitations", response_model=Made, status_code=201, openapi_extra=needs(SELF, shown_once=True))
async def invite(site: Here, me: Me, given: Invite) -> dict[str, Any]:
    """Invite somebody; the code is shown once, and can be used once."""
    lasts = timedelta(days=given.days)
    return (await invitations.invite(site.database, me.person, given.role, given.label, lasts)).as_data()


@routes.delete("/invitations/{invitation}", status_code=204, openapi_extra=needs(SELF))
async def withdraw(site: Here, me: Me, invitation: UUID) -> None:
    """Take an invitation back."""
    await invitations.withdraw(site.database, me.person, invitation, by=_whose(me.role, me.person))


@routes.post("/invitations/accept", response_model=Signed, status_code=201, openapi_extra=needs(OPEN))
async def accept(site: Here, request: Request, response: Response, given: Accept) -> dict[str, Any]:
    """Take an invitation up: makes the account and signs in."""
    async with site.database.connection() as connection:
        await sign_in_limit.count(connection, None, client(request))
    person = await invitations.accept(site.database, given.code, given.name, given.password)
    return await welcome(site, request, response, person.id)


def _whose(role: str, person: str) -> str | None:
    return None if role == Role.ADMINISTRATOR else person
