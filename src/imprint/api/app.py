"""The HTTP server: health for machines, the status for whoever has the operator's key."""

import hmac
import html
from hashlib import sha256
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Cookie, Depends, FastAPI, Header, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from imprint import __version__
from imprint.problem import Problem
from imprint.store.db import GONE, Database
from imprint.work.status import status

COOKIE = "imprint_session"
MOST_FORM = 4096

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class SignedOut(Problem):
    """Nobody has signed in."""


def build(database: Database, key: str) -> FastAPI:
    """Put the HTTP server together around an open database and the operator's key."""
    app = FastAPI(title="Imprint", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    session = hmac.new(key.encode(), b"session", sha256).hexdigest()

    def signed_in(
        authorization: Annotated[str, Header()] = "", given: Annotated[str, Cookie(alias=COOKIE)] = ""
    ) -> None:
        bearer = authorization.removeprefix("Bearer ")
        if not (_same(bearer, key) or _same(given, session)):
            raise SignedOut("signed_out", "Sign in with the operator's key first; `imprint up` prints it.")

    @app.middleware("http")
    async def headers(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    @app.exception_handler(SignedOut)
    async def signed_out(request: Request, problem: SignedOut) -> Response:
        if request.url.path == "/":
            return HTMLResponse(_page(_FORM), status_code=401)
        return _problem(401, problem.code, problem.sentence)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Say that this process answers."""
        return {"status": "ok", "version": __version__}

    @app.get("/readyz")
    async def readyz() -> Response:
        """Say whether the database answers."""
        try:
            async with database.connection() as connection:
                await status(connection)
        except GONE:
            return _problem(503, "database.away", "The database does not answer.")
        return JSONResponse({"status": "ready"})

    @app.post("/sign-in")
    async def sign_in(request: Request) -> Response:
        """Take the operator's key and give a session for it."""
        form = parse_qs((await request.body())[:MOST_FORM].decode(errors="replace"))
        if not _same("".join(form.get("key", [])).strip(), key):
            return HTMLResponse(_page("<p>That is not the key.</p>" + _FORM), status_code=401)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(COOKIE, session, httponly=True, samesite="strict")
        return answer

    @app.get("/api/status", dependencies=[Depends(signed_in)])
    async def status_as_data() -> dict[str, Any]:
        """Give what waits, runs, is late or stuck."""
        async with database.connection() as connection:
            return (await status(connection)).as_data()

    @app.get("/", dependencies=[Depends(signed_in)])
    async def status_as_page() -> HTMLResponse:
        """Show what waits, runs, is late or stuck."""
        async with database.connection() as connection:
            seen = await status(connection)
        rows = "".join(
            f"<tr><th scope=row>{html.escape(work.kind)}</th><td>{work.waiting}</td><td>{work.running}</td>"
            f"<td>{work.late}</td><td>{work.stuck}</td></tr>"
            for work in seen.work
        )
        alive = sum(worker.alive for worker in seen.workers)
        held = f"<p><strong>Every send is held:</strong> {html.escape(seen.held_why)}</p>" if seen.held_why else ""
        return HTMLResponse(
            _page(
                f"{held}<p>{alive} worker{'s' if alive != 1 else ''} alive.</p><table><thead><tr><td></td><th>waiting</th>"
                f"<th>running</th><th>late</th><th>stuck</th></tr></thead><tbody>{rows}</tbody></table>"
            )
        )

    return app


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


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
