"""Signing in and out, and the first account."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Request, Response
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api.gate import COOKIE, OPEN, SECURE_COOKIE, SELF, SIGNED_IN, cookie, needs, router
from imprint.api.shape import Given, Opening, Shape, Text, shape
from imprint.api.site import Here, Me, Site, client
from imprint.store.query import Link
from imprint.work import person as people
from imprint.work import session as sessions
from imprint.work import sign_in_limit
from imprint.work.caller import Caller
from imprint.work.password import LONGEST

routes = router("sessions")

Name = Annotated[Text, Field(min_length=1, max_length=200, examples=["ada"])]
Password = Annotated[Text, Field(min_length=1, max_length=LONGEST, examples=["correct horse battery staple"])]


class SignIn(Given):
    """A name and its password."""

    name: Name
    password: Password


class First(SignIn):
    """The first account: what `imprint up` printed, a name and a password."""

    code: Annotated[Text, Field(max_length=100, examples=["7KQFM-2HXPD-9RVTC-WNEBA-38GYZ"])]


class NewPassword(Given):
    """The password one has, and the one one wants."""

    old: Password
    new: Password


class Signed(Shape):
    """Who is signed in, what they may do, and what their pages send along as X-CSRF-Token."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "personId": "operator",
                    "name": "ada",
                    "role": "administrator",
                    "owner": "operator",
                    "scopes": ["posts:read", "posts:write"],
                    "csrfToken": "…",
                    "moves": [{"name": "signOut"}],
                }
            ]
        },
    )

    person_id: str
    name: str
    role: str
    owner: str
    scopes: list[str]
    csrf_token: str | None
    moves: list[Opening]


Session = shape("Session", sessions.Session, current=bool)


class Sessions(Shape):
    """One's sessions."""

    items: list[Session]  # type: ignore[valid-type] # a shape made from its dataclass


@routes.get("/session", response_model=Signed, openapi_extra=needs(SIGNED_IN))
async def who(me: Me) -> dict[str, Any]:
    """Say who is signed in."""
    return _signed(me)


@routes.post("/session", response_model=Signed, status_code=201, openapi_extra=needs(OPEN))
async def sign_in(site: Here, request: Request, response: Response, given: SignIn) -> dict[str, Any]:
    """Sign in with a name and a password; gives a cookie."""
    opened = await sessions.sign_in(
        site.database,
        given.name,
        given.password,
        address=client(request),
        agent=request.headers.get("user-agent", ""),
        before=cookie(request) or None,
    )
    return await entered(site, request, response, opened)


@routes.delete("/session", status_code=204, openapi_extra=needs(SELF))
async def sign_out(site: Here, me: Me, response: Response) -> None:
    """Sign out."""
    assert me.session is not None  # noqa: S101 - the gate has seen to it
    await sessions.end(site.database, me.person, me.session)
    for name in (COOKIE, SECURE_COOKIE):
        response.delete_cookie(name, path="/", secure=name == SECURE_COOKIE, httponly=True, samesite="lax")


@routes.post("/session/password", status_code=204, openapi_extra=needs(SELF))
async def change_password(site: Here, me: Me, request: Request, given: NewPassword) -> None:
    """Change one's password; every other session of one's own ends."""
    async with site.database.connection() as connection:
        await sign_in_limit.count(connection, None, client(request))
    await people.change_password(site.database, me.person, me.session, given.old, given.new)


@routes.get("/sessions", response_model=Sessions, openapi_extra=needs(SELF))
async def mine(site: Here, me: Me) -> dict[str, Any]:
    """List one's sessions."""
    async with site.database.connection() as connection:
        found = await sessions.listed(connection, me.person)
    return {"items": [{**each.as_data(), "current": each.id == me.session} for each in found]}


@routes.delete("/sessions", status_code=204, openapi_extra=needs(SELF))
async def end_others(site: Here, me: Me) -> None:
    """End every session of one's own but this one."""
    await sessions.end_others(site.database, me.person, me.session)


@routes.delete("/sessions/{session}", status_code=204, openapi_extra=needs(SELF))
async def end(site: Here, me: Me, session: UUID) -> None:
    """End one session of one's own."""
    await sessions.end(site.database, me.person, session)


@routes.post("/people/first", response_model=Signed, status_code=201, openapi_extra=needs(OPEN))
async def first(site: Here, request: Request, response: Response, given: First) -> dict[str, Any]:
    """Make the first account, an administrator, with the code that `imprint up` has printed."""
    async with site.database.connection() as connection:
        await sign_in_limit.count(connection, None, client(request))
    person = await people.first(site.database, given.code, given.name, given.password)
    return await welcome(site, request, response, person.id)


async def welcome(site: Site, request: Request, response: Response, person: str) -> dict[str, Any]:
    """Begin a session for somebody who has just been made."""
    agent = request.headers.get("user-agent", "")
    opened = await sessions.open_for(
        site.database, person, address=client(request), agent=agent, before=cookie(request) or None
    )
    return await entered(site, request, response, opened)


async def entered(site: Site, request: Request, response: Response, opened: sessions.Opened) -> dict[str, Any]:
    """Give the cookie of a session, and say who has come in."""
    carry(request, response, opened.secret, opened.begun.expires_at)
    async with site.database.connection() as connection:
        return _signed(await _known(connection, opened.secret))


def carry(request: Request, response: Response, secret: str, until: datetime) -> None:
    """Let a browser carry a session: no script reads it, no other site sends it along with a change."""
    https = request.url.scheme == "https"
    response.set_cookie(
        SECURE_COOKIE if https else COOKIE, secret, expires=until, path="/", httponly=True, samesite="lax", secure=https
    )


async def _known(connection: Link, secret: str) -> Caller:
    caller = await sessions.caller(connection, secret)
    assert caller is not None  # noqa: S101 - it was begun a moment ago
    return caller


def _signed(me: Caller) -> dict[str, Any]:
    return {
        "personId": me.person,
        "name": me.name,
        "role": me.role,
        "owner": me.owner,
        "scopes": sorted(me.scopes),
        "csrfToken": me.csrf or None,
        "moves": [{"name": "signOut"}] if me.session else [],
    }
