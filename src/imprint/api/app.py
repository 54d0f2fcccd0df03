"""The HTTP server: health for machines, the status for whoever has the operator's key."""

import asyncio
import hmac
import html
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs

from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.requests import ClientDisconnect

from imprint import __version__
from imprint.problem import Problem
from imprint.store.db import TROUBLE, Database
from imprint.work.doctor import TIME
from imprint.work.status import Status, status

COOKIE = "imprint_session"
MOST_FORM = 4096
PATIENCE = 3.0

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class SignedOut(Problem):
    """Nobody has signed in."""


def build(database: Database, key: str) -> FastAPI:
    """Put the HTTP server together around an open database and the operator's key."""
    app = FastAPI(title="Imprint", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    site = Site(database, key)
    locked = [Depends(site.signed_in)]
    app.middleware("http")(_with_headers)
    app.exception_handler(SignedOut)(_signed_out)
    for away in TROUBLE:  # one by one: a handler of Exception would also write each into the log as a bug
        app.exception_handler(away)(_away)
    app.exception_handler(ClientDisconnect)(_left)
    app.api_route("/healthz", methods=["GET", "HEAD"])(site.healthz)
    app.api_route("/readyz", methods=["GET", "HEAD"])(site.readyz)
    app.post("/sign-in")(site.sign_in)
    app.get("/api/status", dependencies=locked)(site.status_as_data)
    app.api_route("/", methods=["GET", "HEAD"], dependencies=locked)(site.status_as_page)
    return app


@dataclass(frozen=True)
class Site:
    """What is answered, and to whom."""

    database: Database
    key: str

    @property
    def session(self) -> str:
        """What a browser that has signed in carries instead of the key."""
        return hmac.new(self.key.encode(), b"session", sha256).hexdigest()

    def signed_in(self, request: Request) -> None:
        """Refuse whoever has neither the key nor a session."""
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if not (
            (scheme.lower() == "bearer" and _same(bearer, self.key))
            or _same(request.cookies.get(COOKIE, ""), self.session)
        ):
            raise SignedOut("signed_out", "Sign in with the operator's key first; `imprint up` prints it.")

    async def healthz(self) -> dict[str, str]:
        """Say that this process answers."""
        return {"status": "ok", "version": __version__}

    async def readyz(self) -> Response:
        """Say whether the database answers."""
        async with asyncio.timeout(PATIENCE), self.database.connection() as connection:
            await TIME.one(connection)
        return JSONResponse({"status": "ready"})

    async def sign_in(self, request: Request) -> Response:
        """Take the operator's key and give a session for it."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_FORM:
                return _problem(413, "too_large", "That is no key.")
        form = parse_qs(body.decode(errors="replace"))
        if not _same("".join(form.get("key", [])).strip(), self.key):
            return HTMLResponse(_page("<p>That is not the key.</p>" + _FORM), status_code=401)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(COOKIE, self.session, httponly=True, samesite="strict")
        return answer

    async def status_as_data(self) -> dict[str, Any]:
        """Give what waits, runs, is late or stuck."""
        return (await self._status()).as_data()

    async def status_as_page(self) -> HTMLResponse:
        """Show what waits, runs, is late or stuck."""
        seen = await self._status()
        rows = "".join(
            f"<tr><th scope=row>{html.escape(work.kind)}</th><td>{work.waiting}</td><td>{work.running}</td>"
            f"<td>{work.late}</td><td>{work.stuck}</td></tr>"
            for work in seen.work
        )
        alive = sum(worker.alive for worker in seen.workers)
        held = f"<p><strong>Every send is held:</strong> {html.escape(seen.held_why)}.</p>" if seen.held_why else ""
        return HTMLResponse(
            _page(
                f"{held}<p>{alive} worker{'s' if alive != 1 else ''} alive.</p>"
                "<table><thead><tr><td></td><th>waiting</th><th>running</th><th>late</th><th>stuck</th></tr></thead>"
                f"<tbody>{rows}</tbody></table>"
            )
        )

    async def _status(self) -> Status:
        async with asyncio.timeout(PATIENCE), self.database.connection() as connection:
            return await status(connection)


async def _with_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers.update(HEADERS)
    return response


async def _signed_out(request: Request, problem: Exception) -> Response:
    if request.url.path == "/":
        return HTMLResponse(_page(_FORM), status_code=401)
    return _problem(401, "signed_out", str(problem))


async def _away(_request: Request, _error: Exception) -> Response:
    return _problem(503, "database.away", "The database does not answer.")


async def _left(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # nobody is there to read it


def _same(given: str, wanted: str) -> bool:
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())


def _problem(code: int, name: str, sentence: str) -> JSONResponse:
    return JSONResponse(
        {"code": name, "title": sentence, "status": code}, status_code=code, media_type="application/problem+json"
    )


_FORM = (
    "<form method=post action=/sign-in><label>Operator's key <input name=key type=password autofocus "
    "autocomplete=current-password></label> <button>Sign in</button></form>"
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
