"""A page: rendered on the server, for whoever may see it, under a policy that lets no foreign script in.

Pages only read. What changes something is sent to the API by a script of ours, so that there is one gate and a page can
do nothing that the API cannot.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from imprint import __version__
from imprint.api import problems
from imprint.api.app import STOP
from imprint.api.gate import OPEN, admit, needs, refuse_beyond, who
from imprint.api.site import Site, here
from imprint.problem import Problem
from imprint.store.db import TROUBLE
from imprint.web import shown
from imprint.web.assets import Assets
from imprint.web.navigation import open_to
from imprint.work.caller import Caller
from imprint.work.scope import Scope

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
MOMENT = 0.5
FRAGMENT = "hx-request"  # what htmx sends along when it wants a part of a page


class _Page(APIRoute):
    """A route whose answer is a page, also when something is wrong."""

    def get_route_handler(self) -> Handler:
        """Let only those see it who may, and send those who have not signed in to where they can."""
        handle = super().get_route_handler()
        scope = (self.openapi_extra or {})["x-scope"]

        async def guarded(request: Request) -> Response:
            request.state.caller = None
            try:
                if scope != OPEN:
                    caller = await who(request)
                    admit(request, caller, scope)
                    refuse_beyond(caller, scope)
                    if FRAGMENT not in request.headers:
                        await _watch(request)
                return await handle(request)
            except Problem as problem:
                if problem.code == "scope.lacking":  # the names of scopes are for programs
                    problem = Problem(problem.code, "Your role does not include this page. Ask an administrator.")
                return _entrance(request) if problem.code == "signed_out" else sorry(request, problem)
            except RequestValidationError:
                return sorry(request, Problem("page.missing", "There is nothing at this address."))
            except TROUBLE:
                return sorry(request, Problem("database.away", "The database does not answer."), 503)

        return guarded


def pages() -> APIRouter:
    """Make a router for pages."""
    return APIRouter(route_class=_Page, include_in_schema=False, default_response_class=HTMLResponse)


def seen_by(scope: Scope | str) -> dict[str, Any]:
    """Say who may see a page."""
    return {"openapi_extra": needs(scope)}


@dataclass(frozen=True)
class View:
    """What a page is made with: who looks, at what, and how it is shown."""

    request: Request
    site: Site
    caller: Caller | None

    @property
    def me(self) -> Caller:
        """Give who looks; on a page that is open to everybody nobody may be there."""
        if self.caller is None:
            raise Problem("signed_out", "Sign in first.")
        return self.caller

    def may(self, scope: str) -> bool:
        """Say whether who looks may do this, so that a page offers nothing that would be refused."""
        return self.caller is not None and scope in self.caller.scopes

    def page(self, template: str, *, http_status: int = 200, **values: Any) -> Response:
        """Show a template; each page says its `title`."""
        nonce = secrets.token_urlsafe(16)
        assets: Assets = self.request.app.state.assets
        if assets.lacking:
            return HTMLResponse(f"<!doctype html><title>Imprint</title><p>{assets.lacking}", 503)
        text = (
            _templates()
            .get_template(template)
            .render(
                asset=assets.url,
                may=self.may,
                me=self.caller,
                navigation=open_to(self.caller, self.request.app.state.page_paths) if self.caller else [],
                nonce=nonce,
                path=self.request.url.path,
                position=getattr(self.request.state, "position", None),
                there=self.request.app.state.page_paths.__contains__,
                version=__version__,
                **values,
            )
        )
        return HTMLResponse(text, http_status, {"Content-Security-Policy": _policy(self.site, nonce)})

    def part(self, template: str, **values: Any) -> Response:
        """Show a fragment: what htmx puts into a page that is there already."""
        return self.page(template, **values)


async def _watch(request: Request) -> None:
    """Note how far everything is told before a page reads anything: its stream goes on there, and misses nothing."""
    live = here(request).live
    live.end_with(request.scope[STOP])
    # Where that cannot be said at once, the stream itself says later that everything is to be loaded anew.
    with suppress(TimeoutError):
        async with asyncio.timeout(MOMENT):
            request.state.position = await live.position()


async def _view(request: Request) -> View:
    return View(request, here(request), request.state.caller)


Looking = Annotated[View, Depends(_view)]


def sorry(request: Request, problem: Problem, status: int | None = None) -> Response:
    """Say in a sentence what is wrong: a page for a person, a sentence for a fragment, JSON for a program."""
    status = status or problems.status_of(problem)
    if "text/html" not in request.headers.get("accept", "") and FRAGMENT not in request.headers:
        return problems.answer(status, problem.code, problem.sentence)
    view = View(request, here(request), getattr(request.state, "caller", None))
    if FRAGMENT in request.headers:
        return view.page("sorry_part.html", http_status=status, sentence=problem.sentence)
    return view.page("sorry.html", http_status=status, title="That did not work", sentence=problem.sentence)


def _entrance(request: Request) -> Response:
    """Lead to the sign-in, and from there back to what was wanted."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    to = "/sign-in" if wanted == "/" else f"/sign-in?next={quote(wanted, safe='/')}"
    if FRAGMENT in request.headers:
        # A fragment is no place to come back to: the page it belongs to is.
        page = urlsplit(request.headers.get("hx-current-url", "")).path
        to = f"/sign-in?next={quote(page, safe='/')}" if page not in {"", "/"} else "/sign-in"
        return Response(status_code=200, headers={"HX-Redirect": to})
    return RedirectResponse(to, 303)


def _policy(site: Site, nonce: str) -> str:
    """Only what is ours runs; the nonce and the font are for what the calendar writes by itself."""
    bucket = site.settings.s3_endpoint if site.settings.blob_store == "s3" else None
    amazon = "https://*.amazonaws.com" if site.settings.blob_store == "s3" and bucket is None else None
    there = " ".join(filter(None, ("'self'", bucket, amazon)))
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
        "img-src 'self' blob: data:; font-src data:; "
        f"connect-src {there}; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(shown.FILTERS)
    return made
