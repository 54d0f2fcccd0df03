"""The commands about sources: add, list, show, poll now, disable, enable, set the priority, remove."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Literal
from uuid import UUID

import typer
from pydantic.alias_generators import to_camel

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.series import Languages
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.decisions.polling import Priority
from imprint.problem import Exit
from imprint.store.db import Database
from imprint.work import series
from imprint.work import source as work
from imprint.work.person import OPERATOR
from imprint.work.poll import Polled, Poller
from imprint.work.source import Source

Which = Annotated[str, typer.Argument(help="The source's name or id.", metavar="SOURCE")]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(
        help="The places that carry a series, and when they are asked.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command()(add)
    group.command("list")(list_)
    for command in (show, poll, priority, disable, enable, remove):
        group.command()(command)
    app.add_typer(group, name="source")


def add(
    which: Annotated[str, typer.Argument(help="The series' title or id.", metavar="SERIES")],
    place: Annotated[str, typer.Argument(help="An address, or KIND:ID such as mangapark:….", metavar="PLACE")],
    *,
    name: Annotated[str | None, typer.Option("--name", help="What you call it.", metavar="NAME")] = None,
    languages: Languages = None,
    as_json: AsJson = False,
) -> None:
    """Add another place that carries a series."""
    settings = session.begin()

    async def act() -> Source:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                one = await series.find(connection, OPERATOR, which)
            return await work.add(database, settings, OPERATOR, one, place, name=name, languages=languages or ())

    made = session.run(act())
    if as_json:
        print_json(written(made.as_data(), chosen(settings, None)))
    else:
        say(f"{made.name} is added to {made.series}; a worker reads it now.")


def list_(*, zone: Zone = None, as_json: AsJson = False) -> None:
    """List the sources, each with its last error and its next try."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def act() -> list[Source]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await work.listed(connection, OPERATOR)

    found = session.run(act())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    rows = [
        (str(s.id)[:8], s.name, s.series, s.kind, s.status, s.priority, s.releases,
         "now" if s.polling else on_wall(s.next_check_at, wall) if s.status != "disabled" else "never", s.error or "")
        for s in found
    ]  # fmt: skip
    columns = ["id", "name", "series", "kind", "state", "priority", "releases", "next look", "last error"]
    print_table("Sources", columns, rows)


def show(which: Which, *, zone: Zone = None, as_json: AsJson = False) -> None:
    """Show a source: how it is asked, when, and what went wrong last."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def act() -> Source:
        async with session.ready_database(settings) as database:
            return await _found(database, which)

    one = session.run(act())
    if as_json:
        print_json(written(one.as_data(), wall))
        return
    lines = [
        ("series", one.series),
        ("place", f"{one.kind} {one.ref}"),
        ("state", f"{one.status} since {on_wall(one.status_at, wall)}"),
        ("priority", f"{one.priority}{', fixed' if one.priority_fixed else ''}"),
        ("releases", one.releases),
        ("last asked", on_wall(one.last_polled_at, wall) or "never"),
        ("last news", on_wall(one.last_news_at, wall) or "never"),
        (
            "next look",
            "now" if one.polling else on_wall(one.next_check_at, wall) if one.status != "disabled" else "never",
        ),
        ("failures in a row", one.failures or ""),
        ("last error", one.error or ""),
        ("missing chapters", one.missing or ""),
        ("set aside", one.set_aside or ""),
    ]
    print_table(f"{one.name} ({one.id})", ["", ""], [line for line in lines if line[1] != ""])


def poll(which: Which, *, zone: Zone = None, as_json: AsJson = False) -> None:
    """Ask a source now, due or not; one that rests is tried."""
    settings = session.begin(calm=True)
    wall = chosen(settings, zone)

    async def act() -> Polled:
        async with session.ready_database(settings) as database:
            one = await _found(database, which)
            poller = Poller.of(database, settings)
            try:
                return await poller.now(one.id)
            finally:
                await poller.fetcher.close()

    done = session.run(act())
    if as_json:
        print_json(written({to_camel(name): value for name, value in asdict(done).items()}, wall))
    elif done.error:
        say(f"{done.error} It is tried again at {on_wall(done.next_check_at, wall)}.")
    else:
        aside = f" {done.set_aside} could not be read; see `imprint dead-letters list`." if done.set_aside else ""
        found = ((done.chapters, "new chapter"), (done.releases, "new release"), (done.notices, "notice"))
        say(", ".join(f"{number} {what}{'' if number == 1 else 's'}" for number, what in found) + f".{aside}")
    if done.error:
        raise typer.Exit(Exit.ATTENTION)


def priority(
    which: Which,
    urgency: Annotated[
        Literal["HOT", "WARM", "COLD", "auto"],
        typer.Argument(help="How urgently it is asked; auto: as its news ask for.", metavar="PRIORITY"),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Set how urgently a source is asked: HOT, WARM, COLD, or auto, which follows its news."""
    wanted = None if urgency == "auto" else Priority(urgency)
    _change(which, lambda d, s: work.prioritise(d, OPERATOR, s, wanted), f"is asked {urgency}", as_json=as_json)


def disable(which: Which, *, as_json: AsJson = False) -> None:
    """Ask a source no more until it is enabled."""
    _change(which, lambda d, s: work.disable(d, OPERATOR, s), "is disabled", as_json=as_json)


def enable(which: Which, *, as_json: AsJson = False) -> None:
    """Ask a source again."""
    _change(which, lambda d, s: work.enable(d, OPERATOR, s), "is enabled", as_json=as_json)


def remove(which: Which, *, as_json: AsJson = False) -> None:
    """Remove a source; what it has brought stays."""
    settings = session.begin()

    async def act() -> Source:
        async with session.ready_database(settings) as database:
            one = await _found(database, which)
            await work.remove(database, OPERATOR, one.id)
            return one

    one = session.run(act())
    if as_json:
        print_json({"id": str(one.id), "removed": True})
    else:
        say(f"{one.name} is removed.")


def _change(which: str, act: Callable[[Database, UUID], Awaitable[Source]], done: str, *, as_json: bool) -> None:
    settings = session.begin()

    async def work_() -> Source:
        async with session.ready_database(settings) as database:
            return await act(database, (await _found(database, which)).id)

    one = session.run(work_())
    if as_json:
        print_json(written(one.as_data(), chosen(settings, None)))
    else:
        say(f"{one.name} {done}.")


async def _found(database: Database, which: str) -> Source:
    async with database.connection() as connection:
        return await work.show(connection, OPERATOR, await work.find(connection, OPERATOR, which))
