"""The page: sign in, make the first account, see the status; and where platforms send people back to."""

import asyncio
import hmac
import html
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from imprint.api.accounts import RETURN_PATH, finished
from imprint.api.gate import cookie, refuse_beyond, refuse_foreign, who
from imprint.api.sessions import carry
from imprint.api.site import Here, Site, client
from imprint.problem import Problem
from imprint.work import person as people
from imprint.work import session as sessions
from imprint.work import sign_in_limit
from imprint.work.caller import Caller
from imprint.work.scope import Scope
from imprint.work.status import status

PATIENCE = 3.0
MOST_FORM = 4096


def register(app: FastAPI) -> None:
    """Add the pages."""
    for path, methods, answer in (
        ("/", ["GET", "HEAD"], show),
        ("/sign-in", ["POST"], sign_in),
        ("/first", ["POST"], first),
        ("/sign-out", ["POST"], sign_out),
        (RETURN_PATH, ["GET"], came_back),
    ):
        app.api_route(path, methods=methods, include_in_schema=False)(answer)


async def show(site: Here, request: Request) -> Response:
    """Show the status to whoever may see it, and a form to everybody else."""
    async with asyncio.timeout(PATIENCE):
        try:
            me = await who(request)
        except Problem:
            return await _form(site)
        return HTMLResponse(_page(_hello(me) + (await _status(site) if Scope.SYSTEM_READ in me.scopes else "")))


async def sign_in(site: Here, request: Request) -> Response:
    """Take a name and a password, and give a session for them."""
    refuse_foreign(request)
    form = await _read(request)
    try:
        opened = await sessions.sign_in(
            site.database,
            form.get("name", ""),
            form.get("password", ""),
            address=client(request),
            agent=request.headers.get("user-agent", ""),
            before=cookie(request) or None,
        )
    except Problem as problem:
        return await _form(site, problem)
    return _home(request, opened)


async def first(site: Here, request: Request) -> Response:
    """Take the code that `imprint up` has printed, and make the first account."""
    refuse_foreign(request)
    form = await _read(request)
    try:
        async with site.database.connection() as connection:
            await sign_in_limit.count(connection, None, client(request))
        code = form.get("code", "")
        person = await people.first(site.database, code, form.get("name", ""), form.get("password", ""))
    except Problem as problem:
        return await _form(site, problem)
    return _home(request, await sessions.open_for(site.database, person.id, address=client(request)))


async def sign_out(site: Here, request: Request) -> Response:
    """End the session; only for a form that knows the token of it."""
    refuse_foreign(request)
    me = await who(request)
    given = (await _read(request)).get("token", "")
    if me.session is None or not hmac.compare_digest(given.encode(), me.csrf.encode()):
        raise Problem("csrf.refused", "A page of another site cannot do this.")
    await sessions.end(site.database, me.person, me.session)
    return RedirectResponse("/", status_code=303)


async def came_back(site: Here, request: Request) -> Response:
    """Go on with the sign-in of an account; the address itself is the proof that it was begun here."""
    try:
        me = await who(request)
        refuse_beyond(me, Scope.ACCOUNTS_WRITE)
        account = await finished(site, me, str(request.url))
    except Problem as problem:
        return HTMLResponse(_page(f"<p>{html.escape(problem.sentence)}</p>"), status_code=400)
    name = account["label"] or account["name"] or account["platform"]
    return HTMLResponse(_page(f"<p>{html.escape(name)} is connected. <a href='/'>Go on</a></p>"))


async def _read(request: Request) -> dict[str, str]:
    body = await request.body()
    if len(body) > MOST_FORM:
        raise Problem("request.too_large", "That is too much for a name and a password.")
    return {name: values[-1] for name, values in parse_qs(body.decode(errors="replace")).items()}


async def _form(site: Site, problem: Problem | None = None) -> Response:
    async with site.database.connection() as connection:
        known = await people.any_there(connection)
    told = f"<p role=alert>{html.escape(problem.sentence)}</p>" if problem else ""
    return HTMLResponse(_page(told + (_SIGN_IN if known else _FIRST)), status_code=401)


def _home(request: Request, opened: sessions.Opened) -> Response:
    answer = RedirectResponse("/", status_code=303)
    carry(request, answer, opened.secret, opened.begun.expires_at)
    return answer


def _hello(me: Caller) -> str:
    return (
        f"<form method=post action=/sign-out>{html.escape(me.name)}, {html.escape(me.role)} "
        f"<input type=hidden name=token value='{html.escape(me.csrf)}'><button>Sign out</button></form>"
        "<p><a href='/api/docs'>The API</a></p>"
    )


async def _status(site: Site) -> str:
    async with site.database.connection() as connection:
        seen = await status(connection)
    rows = "".join(
        f"<tr><th scope=row>{html.escape(work.kind)}</th><td>{work.waiting}</td><td>{work.running}</td>"
        f"<td>{work.late}</td><td>{work.stuck}</td></tr>"
        for work in seen.work
    )
    alive = sum(worker.alive for worker in seen.workers)
    held = f"<p><strong>Every send is held:</strong> {html.escape(seen.held_why)}.</p>" if seen.held_why else ""
    return (
        f"{held}<p>{alive} worker{'s' if alive != 1 else ''} alive.</p>"
        "<table><thead><tr><td></td><th>waiting</th><th>running</th><th>late</th><th>stuck</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


_WHO = (
    "<p><label>Name <input name=name autocomplete=username required></label></p>"
    "<p><label>Password <input name=password type=password autocomplete={} required></label></p>"
)
_SIGN_IN = f"<form method=post action=/sign-in>{_WHO.format('current-password')}<button>Sign in</button></form>"
_FIRST = (
    "<p>Nobody is here yet. Make the first account, with the code that <code>imprint up</code> has printed.</p>"
    "<form method=post action=/first><p><label>Code <input name=code autocomplete=off required autofocus></label></p>"
    f"{_WHO.format('new-password')}<button>Make the first account</button></form>"
)


def _page(body: str) -> str:
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<meta name=color-scheme content='light dark'><title>Imprint</title><style>"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}"
        "table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.3rem .6rem}"
        "tbody th{text-align:left}tbody tr{border-top:1px solid #8884}"
        f"</style><main><h1>Imprint</h1>{body}</main></html>"
    )
