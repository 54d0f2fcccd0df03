"""The commands about series: add, list, show, follow, unfollow, mark as read, remove."""

from collections.abc import Awaitable, Callable
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.consent import Yes, consent
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.work import series as work
from imprint.work import source as sources
from imprint.work.person import OPERATOR
from imprint.work.series import Chapter, Series

Which = Annotated[str, typer.Argument(help="The series' title or id.", metavar="SERIES")]
Languages = Annotated[
    list[str] | None,
    typer.Option("--language", help="Only chapters in this language, such as en; may be repeated.", metavar="LANGUAGE"),
]
MORE_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Follow serial works.", no_args_is_help=True, rich_markup_mode=None)
    group.command()(add)
    group.command("list")(list_)
    for command in (show, follow, unfollow, read, rename, remove):
        group.command()(command)
    app.add_typer(group, name="series")


def add(
    place: Annotated[
        str, typer.Argument(help="Its address, a feed's address, or KIND:ID such as mangadex:….", metavar="PLACE")
    ],
    *,
    title: Annotated[
        str | None, typer.Option("--title", help="What you call it; else what its source does.", metavar="TITLE")
    ] = None,
    languages: Languages = None,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Whether to follow it.")] = True,
    as_json: AsJson = False,
) -> None:
    """Add a series.

    A worker reads it at once. What is there already is no news; what comes later is.
    """
    settings = session.begin()

    async def act() -> Series:
        async with session.ready_database(settings, create=True) as database:
            return await work.add(
                database, settings, OPERATOR, place, title=title, languages=languages or (), follow=follow
            )

    made = session.run(act())
    if as_json:
        print_json(written(made.as_data(), chosen(settings, None)))
        return
    say(f"{made.title} is added as {str(made.id)[:8]}; a worker reads it now.")


def list_(
    *,
    followed: Annotated[bool, typer.Option("--followed", help="Only those you follow.")] = False,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """List the series."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def act() -> list[Series]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await work.listed(connection, OPERATOR, followed=followed)

    found = session.run(act())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    rows = [
        (str(s.id)[:8], s.title, _number(s.latest_chapter), on_wall(s.latest_at, wall), s.unread or "", s.sources,
         f"{s.failing} failing" if s.failing else "", _library(s))
        for s in found
    ]  # fmt: skip
    print_table("Series", ["id", "title", "latest", "since", "unread", "sources", "", "library"], rows)
    if not found:
        say("\nNo series was added yet: run `imprint series add PLACE`.")


def show(which: Which, *, zone: Zone = None, as_json: AsJson = False) -> None:
    """Show a series, its sources and its latest chapters."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def act() -> tuple[Series, list[sources.Source], list[Chapter]]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            one = await work.find(connection, OPERATOR, which)
            return (
                await work.show(connection, OPERATOR, one),
                await sources.listed(connection, OPERATOR, one),
                await work.chapters(connection, OPERATOR, one),
            )

    one, carried, chapters = session.run(act())
    if as_json:
        data: dict[str, Any] = one.as_data()
        data["sourceList"] = [each.as_data() for each in carried]
        data["chapterList"] = [each.as_data() for each in chapters]
        print_json(written(data, wall))
        return
    say(f"{one.title} ({one.id})")
    latest = _number(one.latest_chapter) or "unknown"
    say(f"latest chapter {latest}, {one.unread} unread, {_library(one) or 'not followed'}\n")
    rows = [
        (s.name, s.kind, s.status, s.priority, s.releases, on_wall(s.next_check_at, wall), s.error or "")
        for s in carried
    ]
    print_table("Sources", ["name", "kind", "state", "priority", "releases", "next look", "last error"], rows)
    listed = [
        (c.slug, c.title or "", c.releases, on_wall(c.first_seen_at, wall), "read" if c.read_at else "", c.url or "")
        for c in chapters[:MORE_SHOWN]
    ]
    print_table("Chapters", ["chapter", "title", "releases", "first seen", "", "where"], listed)
    if len(chapters) > MORE_SHOWN:
        say(f"\nAnd {len(chapters) - MORE_SHOWN} before; --json lists them.")


def follow(
    which: Which,
    *,
    notify: Annotated[
        bool | None, typer.Option("--notify/--quiet", help="Whether you are told of new chapters.")
    ] = None,
    prefer: Annotated[
        str | None, typer.Option("--prefer", help="The source you like to read it at.", metavar="SOURCE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Follow a series, or change how you follow it."""

    async def act(database: Database, one: UUID) -> None:
        preferred = None
        if prefer is not None:
            async with database.connection() as connection:
                preferred = await sources.find(connection, OPERATOR, prefer)
        await work.follow(database, OPERATOR, one, notify=notify, preferred=preferred)

    _change(which, act, "is followed", as_json=as_json)


def unfollow(which: Which, *, as_json: AsJson = False) -> None:
    """Follow a series no more; what was read stays known."""
    _change(which, lambda d, s: work.unfollow(d, OPERATOR, s), "is no longer followed", as_json=as_json)


def read(
    which: Which,
    chapters: Annotated[
        list[str] | None, typer.Argument(help="The chapters, such as 45 or «Extra 3»; all if none.", metavar="CHAPTER")
    ] = None,
    *,
    up_to: Annotated[str | None, typer.Option("--up-to", help="All up to this number.", metavar="NUMBER")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Mark as not read.")] = False,
    as_json: AsJson = False,
) -> None:
    """Mark chapters as read."""
    settings = session.begin()
    last = _read_number(up_to) if up_to is not None else None
    if undo and last is not None:
        raise Problem("series.bad_mark", "Name the chapters to mark as not read.")

    async def act() -> tuple[Series, int]:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                one = await work.find(connection, OPERATOR, which)
            names = chapters or ()
            done = (
                await work.unread(database, OPERATOR, one, names)
                if undo
                else await work.read(database, OPERATOR, one, names, up_to=last)
            )
            async with database.connection() as connection:
                return await work.show(connection, OPERATOR, one), done

    one, marked = session.run(act())
    if as_json:
        print_json({"id": str(one.id), "marked": marked, "unread": one.unread})
    else:
        say(f"{marked} marked as {'not read' if undo else 'read'}; {one.unread} of {one.title} unread.")


def rename(
    which: Which,
    title: Annotated[str, typer.Argument(help="The new title.", metavar="TITLE")],
    *,
    as_json: AsJson = False,
) -> None:
    """Give a series another title."""
    _change(which, lambda d, s: work.rename(d, OPERATOR, s, title), "is its title now", as_json=as_json)


def remove(which: Which, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a series; it is asked for no more."""
    settings = session.begin()
    consent(f"Remove the series {which}?", yes=yes)

    async def act() -> Series:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                one = await work.show(connection, OPERATOR, await work.find(connection, OPERATOR, which))
            await work.remove(database, OPERATOR, one.id)
            return one

    one = session.run(act())
    if as_json:
        print_json({"id": str(one.id), "removed": True})
    else:
        say(f"{one.title} is removed.")


def _change(which: str, act: Callable[[Database, UUID], Awaitable[object]], done: str, *, as_json: bool) -> None:
    settings = session.begin()

    async def work_() -> Series:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                one = await work.find(connection, OPERATOR, which)
            await act(database, one)
            async with database.connection() as connection:
                return await work.show(connection, OPERATOR, one)

    one = session.run(work_())
    if as_json:
        print_json(written(one.as_data(), chosen(settings, None)))
    else:
        say(f"{one.title} {done}.")


def _library(one: Series) -> str:
    return "" if not one.followed else "followed" if one.notify else "followed quietly"


def _number(number: Decimal | None) -> str:
    return "" if number is None else f"{number:f}"


def _read_number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise Problem("series.bad_number", f"{text!r} is not a number.")
    return number
