"""The gate: before a route runs, who asks is known and may do it, it is no forgery, and it is not done twice."""

import hmac
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from imprint.api import problems
from imprint.api.site import Site, here, origin
from imprint.problem import Problem
from imprint.store.wall import Wall
from imprint.work import api_key, session
from imprint.work.caller import Caller
from imprint.work.idempotency import Answered, once
from imprint.work.scope import OF_MACHINE, Scope

SAFE = {"GET", "HEAD", "OPTIONS"}
OPEN = "open"  # for everybody
SELF = "self"  # for a person with a session, about themselves; no key will do
SIGNED_IN = "signed-in"  # for whoever is signed in, by session or key
COOKIE = "imprint_session"
SECURE_COOKIE = "__Host-imprint_session"
CSRF_HEADER = "x-csrf-token"
KEY_HEADER = "idempotency-key"
AGAIN_HEADER = "Idempotency-Replayed"
LONGEST_SECRET = 200

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def needs(scope: Scope | str, *, shown_once: bool = False) -> dict[str, Any]:
    """Say who may use a route; `shown_once` when its answer holds a secret that is not to be kept."""
    return {"x-scope": str(scope), **({"x-shown-once": True} if shown_once else {})}


class Gate(APIRoute):
    """A route behind the gate."""

    def get_route_handler(self) -> Handler:
        """Let only those through who may."""
        handle = super().get_route_handler()
        extra = self.openapi_extra or {}
        scope = extra.get("x-scope")
        if scope is None:
            raise ValueError(f"{self.path} does not say who may use it")

        async def guarded(request: Request) -> Response:
            if scope == OPEN:
                refuse_foreign(request)
                await _json_only(request)
                return await handle(request)
            caller = await who(request)
            refuse_beyond(caller, scope)
            unsafe = request.method not in SAFE
            if unsafe and caller.session:
                refuse_forged(request, caller)
            admit(request, caller, scope)
            await _json_only(request)
            key = request.headers.get(KEY_HEADER)
            if not unsafe or key is None:
                return await handle(request)
            return await _once(request, caller, key, handle, shown_once=bool(extra.get("x-shown-once")))

        return guarded


def router(tag: str, prefix: str = "/api") -> APIRouter:
    """Make a router whose routes are behind the gate."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=Gate)


async def who(request: Request) -> Caller:
    """Say who asks, or that nobody has signed in; a key that is brought is what counts."""
    site: Site = request.app.state.site
    given = request.headers.get("authorization")
    async with site.database.connection() as connection:
        if given is not None:
            scheme, _, secret = given.partition(" ")
            bearer = scheme.lower() == "bearer" and len(secret) <= LONGEST_SECRET
            found = await api_key.caller(connection, secret) if bearer else None
        else:
            secret = cookie(request)
            found = await session.caller(connection, secret) if 0 < len(secret) <= LONGEST_SECRET else None
    if found is None:
        raise Problem("signed_out", "Sign in first, or bring a key that is good.")
    return found


def admit(request: Request, caller: Caller, scope: str) -> None:
    """Let somebody in: from here on everything is asked behind their wall, with what this route needs and no more."""
    request.state.caller = caller
    request.state.site = here(request).behind(wall(caller, scope))


def wall(caller: Caller, scope: str) -> Wall:
    """Say what the database shows and lets change; it does not take another check's word for what somebody may do."""
    held = scope in caller.scopes
    office = scope.partition(":")[0] if held and scope in OF_MACHINE else ""
    if scope == SELF and Scope.PEOPLE_WRITE in caller.scopes:
        office = "invitations"  # an administrator sees everybody's among their own
    return Wall(caller.owner, caller.person, office, changes=held and scope.endswith(":write"))


def cookie(request: Request) -> str:
    """Give the secret that a browser carries; behind TLS only the cookie that plain HTTP cannot set."""
    return request.cookies.get(SECURE_COOKIE if request.url.scheme == "https" else COOKIE, "")


def refuse_beyond(caller: Caller, scope: str) -> None:
    """Raise when somebody may not do this."""
    if scope == SELF:
        if caller.session is None:
            raise Problem("session.needed", "A key cannot do this; sign in with your password.")
    elif scope != SIGNED_IN and scope not in caller.scopes:
        raise Problem("scope.lacking", f"This needs {scope}, which you do not have.")


def refuse_forged(request: Request, caller: Caller) -> None:
    """Raise unless a change that came with a cookie was made by a page of ours: it knows the token."""
    refuse_foreign(request)
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), caller.csrf.encode()):
        raise Problem("csrf.refused", "Send the csrfToken of your session along, as X-CSRF-Token.")


def refuse_foreign(request: Request) -> None:
    """Raise when a browser says that a page of somebody else sends this change."""
    if request.method in SAFE:
        return
    site: Site = request.app.state.site
    fetched = request.headers.get("sec-fetch-site")
    given = request.headers.get("origin")
    ours = {origin(request), site.settings.public_url}
    if (fetched is not None and fetched != "same-origin") or (given is not None and given.lower() not in ours):
        raise Problem("csrf.refused", "A page of another site cannot do this.")


async def _json_only(request: Request) -> None:
    """Read the body, and raise when it is not said to be JSON: a form of another site can send anything else."""
    if request.method in SAFE:
        return
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise Problem("request.not_json", "Send the body as application/json.")


async def _once(request: Request, caller: Caller, key: str, handle: Handler, *, shown_once: bool) -> Response:
    site = here(request)
    target = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    answers: list[Response] = []

    async def do() -> Answered:
        try:
            response = await handle(request)
        except Exception as error:  # noqa: BLE001 - what is no answer of ours is raised again there
            response = await problems.translated(request, error)
        answers.append(response)
        return Answered(response.status_code, response.headers.get("content-type", ""), bytes(response.body))

    def kept(answered: Answered) -> Answered:
        if not shown_once:
            return answered
        told = problems.answer(409, "idempotency.shown_once", "This was done; what it gave is shown only once.")
        return replace(answered, status=409, media_type=problems.MEDIA_TYPE, body=bytes(told.body))

    answered = await once(site.database, caller.person, key, target + await request.body(), do, kept)
    if not answered.again:
        return answers[0]
    headers = {AGAIN_HEADER: "true"}
    if answered.media_type:
        headers["Content-Type"] = answered.media_type
    return Response(answered.body, answered.status, headers)
