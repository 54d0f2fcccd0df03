"""The house: every route, put together; loaded when somebody comes."""

from fastapi import FastAPI

from imprint import __version__
from imprint.api import (
    accounts,
    api_keys,
    audit,
    batches,
    calendar,
    chapters,
    content,
    content_moves,
    dead_letters,
    downloads,
    dry_runs,
    events,
    explanations,
    invitations,
    library,
    metrics,
    notices,
    openapi,
    people,
    post_files,
    post_moves,
    posts,
    posts_bulk,
    problems,
    publications,
    rules,
    sandbox_accounts,
    series,
    sessions,
    sheets,
    sources,
    status,
    targets,
    upload_bytes,
    uploads,
    webhooks,
)
from imprint.api.site import Site
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.wall import DOOR
from imprint.work.sandbox_account import Sandbox

# In the order in which people read about them. Where one route could be taken for another, the narrower comes first.
NOUNS = (
    sessions,
    people,
    invitations,
    api_keys,
    posts_bulk,
    sheets,
    posts,
    post_moves,
    post_files,
    explanations,
    dry_runs,
    publications,
    batches,
    calendar,
    uploads,
    upload_bytes,
    content_moves,
    content,
    downloads,
    accounts,
    sandbox_accounts,
    series,
    sources,
    chapters,
    library,
    rules,
    notices,
    targets,
    webhooks,
    dead_letters,
    status,
    metrics,
    events,
    audit,
)


def build(database: Database, settings: Settings, sandbox: Sandbox | None = None) -> FastAPI:
    """Put every route together around an open database."""
    app = FastAPI(
        title="Imprint",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.site = Site(database.behind(DOOR), settings, sandbox)
    problems.register(app)
    for noun in NOUNS:
        app.include_router(noun.routes)
    openapi.register(app)
    return app
