"""Series: what one follows, its chapters and where to read them, how its sources are, and rules that announce it."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from fastapi.responses import Response

from imprint.api import cursor
from imprint.decisions.chapter_number import ChapterNumber, Kind
from imprint.platforms.registry import PLATFORMS
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import account as accounts
from imprint.work import rule as rules
from imprint.work import series as serials
from imprint.work import source as sources
from imprint.work.outlook import span
from imprint.work.scope import Scope
from imprint.work.series import Chapter

routes = pages()
PAGE, CHAPTERS = 50, 50
# Where a post goes out that has words and no file, as those of a rule do.
WORDED = {name for name, platform in PLATFORMS.items() if not platform.limits.least_files}
Words = Annotated[str, Query(max_length=200)]


@routes.get("/series", **seen_by(Scope.SERIES_READ))
async def listed(look: Looking, text: Words = "", after: str = "") -> Response:
    """Show the series."""
    return look.page("series.html", title="Series", **await _found(look, text, after))


@routes.get("/series/rows", **seen_by(Scope.SERIES_READ))
async def rows(look: Looking, text: Words = "", after: str = "") -> Response:
    """Show the rows of the list, again."""
    return look.part("series_rows.html", **await _found(look, text, after))


@routes.get("/series/{series}", **seen_by(Scope.SERIES_READ))
async def show(look: Looking, series: UUID, after: str = "") -> Response:
    """Show one series with everything about it."""
    told = {**await _about(look, series), **await _chapters(look, series, after)}
    told |= {**await _sources(look, series), **await _rules(look, series)}
    return look.page("one_series.html", title=told["series"].title, **told)


@routes.get("/series/{series}/about", **seen_by(Scope.SERIES_READ))
async def about(look: Looking, series: UUID) -> Response:
    """Show what it is called and how one follows it, again."""
    return look.part("one_series_about.html", **await _about(look, series))


@routes.get("/series/{series}/chapters", **seen_by(Scope.SERIES_READ))
async def chapters(look: Looking, series: UUID, after: str = "") -> Response:
    """Show its chapters, again."""
    return look.part("one_series_chapters.html", **await _chapters(look, series, after))


@routes.get("/series/{series}/sources", **seen_by(Scope.SERIES_READ))
async def carried(look: Looking, series: UUID) -> Response:
    """Show how its sources are, again."""
    return look.part("one_series_sources.html", **await _sources(look, series))


@routes.get("/series/{series}/rules", **seen_by(Scope.POSTS_READ))
async def announced(look: Looking, series: UUID) -> Response:
    """Show its rules, again."""
    return look.part("one_series_rules.html", **await _rules(look, series))


async def _found(look: View, text: str, after: str) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        place = cursor.read(after or None)
        found = await serials.page(connection, look.me.owner, text=text or None, after=place, limit=PAGE + 1)
    told = cursor.page(found, PAGE, found)
    return {"all_series": told["items"], "next": told["next"], "text": text, "after": after}


async def _about(look: View, series: UUID) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        return {"series": await serials.show(connection, look.me.owner, series)}


async def _chapters(look: View, series: UUID, after: str) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        one = await serials.show(connection, look.me.owner, series)
        place = cursor.read_number(after or None)
        found = await serials.chapters(connection, look.me.owner, series, CHAPTERS + 1, after=place)
        releases = await serials.releases(connection, found[:CHAPTERS])
    told = cursor.numbered(found, CHAPTERS, found)
    items = [
        {"chapter": each, "called": called(each), "name": _name(each), "releases": releases[each.id]}
        for each in told["items"]
    ]
    return {"series": one, "chapters": items, "next": told["next"], "after": after}


async def _sources(look: View, series: UUID) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        one = await serials.show(connection, look.me.owner, series)
        found = await sources.listed(connection, look.me.owner, series)
    now = datetime.now(UTC)
    due = {each.id for each in found if each.status != "disabled" and (each.polling or each.next_check_at <= now)}
    return {"series": one, "sources": found, "due": due, "span": span}


async def _rules(look: View, series: UUID) -> dict[str, Any]:
    """Give the rules of a series, and the accounts on which words alone can go out."""
    if not look.may(Scope.POSTS_READ):
        return {"rules": [], "accounts": [], "span": span}
    async with look.site.database.connection() as connection:
        one = await serials.show(connection, look.me.owner, series)
        found = await rules.listed(connection, look.me.owner, series)
        connected = await accounts.listed(connection, look.me.owner)
    worded = [each for each in connected if each.platform in WORDED]
    return {"series": one, "rules": found, "accounts": worded, "span": span}


def called(chapter: Chapter) -> str:
    """Say what a chapter is called: its number as people read it, or its name."""
    if chapter.number is None:
        return chapter.slug.replace("-", " ").capitalize()
    season = f"Season {chapter.season}, chapter" if chapter.season is not None else "Chapter"
    end = f"-{chapter.number_end:f}" if chapter.number_end is not None else ""
    return f"{season} {chapter.number:f}{end}"


def _name(chapter: Chapter) -> str:
    """Give the name by which the API knows a chapter: one that reads back as the same."""
    number, end = chapter.number, chapter.number_end
    return ChapterNumber(Kind(chapter.kind), chapter.slug, number, end, season=chapter.season).label
