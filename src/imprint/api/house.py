"""The house: every route, put together; loaded when somebody comes."""

from fastapi import FastAPI

from imprint import __version__
from imprint.api import (
    accounts,
    api_keys,
    audit,
    content,
    content_moves,
    downloads,
    invitations,
    openapi,
    page,
    people,
    post_files,
    post_moves,
    posts,
    posts_bulk,
    problems,
    sessions,
    status,
    upload_bytes,
    uploads,
)
from imprint.api.site import Site
from imprint.settings import Settings
from imprint.store.db import Database

# In the order in which people read about them. Where one route could be taken for another, the narrower comes first.
NOUNS = (
    sessions,
    people,
    invitations,
    api_keys,
    posts_bulk,
    posts,
    post_moves,
    post_files,
    uploads,
    upload_bytes,
    content_moves,
    content,
    downloads,
    accounts,
    status,
    audit,
)


def build(database: Database, settings: Settings) -> FastAPI:
    """Put every route together around an open database."""
    app = FastAPI(
        title="Imprint",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.site = Site(database, settings)
    problems.register(app)
    for noun in NOUNS:
        app.include_router(noun.routes)
    openapi.register(app)
    page.register(app)
    return app
