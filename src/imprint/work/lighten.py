"""Lighten: removes the originals of what is published, where that is wanted; variants and records stay."""

from datetime import timedelta

from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.post import Row

PAGE = 500

LIGHTEN = query("content_lighten", Row)


async def lighten(database: Database, settings: Settings) -> int:
    """Delete originals softly, whose bytes go after the same grace as deleted content's; say how many."""
    if settings.published_originals == "keep":
        return 0
    removed = 0
    while True:
        async with database.transaction("clean-up", "everything of it is published") as connection:
            page = await LIGHTEN.all(connection, timedelta(days=settings.keep_deleted_days), PAGE)
        removed += len(page)
        if len(page) < PAGE:
            return removed
