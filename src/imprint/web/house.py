"""The house with its pages: the API, and in front of it everything a person sees in a browser."""

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from imprint.api import problems
from imprint.api.house import build as build_api
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.web import (
    accounts,
    accounts_return,
    assets,
    batches,
    calendar,
    composer,
    dead_letters,
    entrance,
    health,
    notices,
    post,
    posts,
    series,
    settings_audit,
    settings_own,
    settings_people,
    shell,
)
from imprint.web.assets import Assets
from imprint.web.page import sorry
from imprint.work.sandbox_account import Sandbox

# Where one route could be taken for another, the narrower comes first.
PAGES = (
    entrance,
    accounts_return,
    calendar,
    posts,
    composer,
    post,
    accounts,
    batches,
    series,
    notices,
    dead_letters,
    health,
    settings_own,
    settings_people,
    settings_audit,
    shell,
)


def build(database: Database, settings: Settings, sandbox: Sandbox | None = None) -> FastAPI:
    """Put the API and the pages together around an open database."""
    app = build_api(database, settings, sandbox)
    app.state.assets = Assets(Path(__file__).parent)
    app.exception_handler(HTTPException)(_lost)
    app.include_router(assets.routes)
    for page in PAGES:
        app.include_router(page.routes)
    app.state.page_paths = frozenset(route.path for page in PAGES for route in page.routes.routes)
    return app


async def _lost(request: Request, error: Exception) -> Response:
    """Tell a person who is nowhere so on a page; programs hear it from the API."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    if error.status_code == 404 and not request.url.path.startswith("/api"):  # noqa: PLR2004
        return sorry(request, Problem("route.missing", "There is nothing at this address."), 404)
    return await problems.translated(request, error)
