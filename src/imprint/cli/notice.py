"""The commands about notices: what you were told, and where you want to be told."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from pydantic import SecretStr

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.work import notice as notices
from imprint.work import target as targets
from imprint.work.notice import Notice
from imprint.work.person import OPERATOR
from imprint.work.target import Target
from imprint.work.vault import Vault

Which = Annotated[str, typer.Argument(help="The target's name or id.", metavar="TARGET")]
Digest = Annotated[str, typer.Argument(help="off, hourly or daily.", metavar="DIGEST")]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(
        help="See what is new, and say where you want to be told.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("list")(list_)
    group.command()(read)
    where = typer.Typer(help="Say where you want to be told.", no_args_is_help=True, rich_markup_mode=None)
    where.command()(add)
    where.command("list")(list_targets)
    where.command()(digest)
    where.command()(mute)
    where.command()(unmute)
    where.command("test")(try_out)
    where.command()(remove)
    group.add_typer(where, name="target")
    app.add_typer(group, name="notice")


def list_(
    *,
    unread: Annotated[bool, typer.Option("--unread", help="Only those you have not read.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.", metavar="N")] = 100,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """List what is new in the series you follow, the newest first."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> list[Notice]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await notices.listed(connection, OPERATOR, unread=unread, limit=limit)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    if not found:
        say("There is nothing new.")
        return
    rows = [
        (n.id, n.series, n.label, n.title or "", on_wall(n.created_at, wall), "" if n.read_at else "new", n.url or "")
        for n in found
    ]
    print_table("Notices", ["id", "series", "chapter", "title", "found", "", "where"], rows)


def read(
    several: Annotated[list[int] | None, typer.Argument(help="Ids of notices.", metavar="ID…")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Mark notices as read; a message that has not left yet leaves them out."""
    if bool(several) == everything:
        raise Problem("notice.which", "Name the notices, or say --all, but not both.")
    settings = session.begin()

    async def work() -> list[int]:
        async with session.ready_database(settings) as database:
            return await notices.read(database, OPERATOR, several or None)

    changed = session.run(work())
    if as_json:
        print_json({"read": changed})
    else:
        say(f"Marked {len(changed)} as read.")


def add(
    url: Annotated[
        str, typer.Argument(help="The Apprise URL; @FILE takes it from a file, - asks for it.", metavar="URL")
    ],
    *,
    name: Annotated[str | None, typer.Option("--name", help="What you call it.", metavar="NAME")] = None,
    every: Annotated[str, typer.Option("--digest", help="off, hourly or daily.", metavar="DIGEST")] = "off",
    as_json: AsJson = False,
) -> None:
    """Be told at an address of Apprise, such as ntfys://topic, mailtos://… or discord://….

    Addresses of private hosts are refused unless IMPRINT_ALLOWED_HOSTS names them.
    """
    settings = session.begin()
    address = address_of(url)

    async def work() -> Target:
        by = targets.courier(settings)
        try:
            async with session.ready_database(settings, create=True) as database:
                vault = Vault.of(settings)
                return await targets.add(database, vault, by, OPERATOR, address, label=name, digest=every)
        finally:
            await by.close()

    made = session.run(work())
    if as_json:
        print_json(written(made.as_data(), chosen(settings, None)))
    else:
        say(f"You will be told at {made.label} ({made.service}). Try it: imprint notice target test {made.label}")


def list_targets(*, zone: Zone = None, as_json: AsJson = False) -> None:
    """List where you are told, without the addresses."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> list[Target]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await targets.listed(connection, OPERATOR)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    rows = [
        (t.label, t.service, t.digest, "muted" if t.muted else "", t.waiting or "", t.failed or "",
         on_wall(t.last_sent_at, wall))
        for t in found
    ]  # fmt: skip
    print_table("Targets", ["name", "service", "digest", "", "waiting", "failed", "last told"], rows)
    for each in found:
        if each.last_error:
            rests = f" It rests until {on_wall(each.resting_until, wall)}." if each.resting_until else ""
            say(f"\n{each.label}: {each.last_error}{rests}")
    if not found:
        say("\nYou are told nowhere yet: run `imprint notice target add URL`.")


def digest(which: Which, every: Digest, *, as_json: AsJson = False) -> None:
    """Be told at once (off), every hour or every day."""
    _change(
        which, lambda d, t: targets.set_digest(d, OPERATOR, t, every), f"has the digest {every} now", as_json=as_json
    )


def mute(which: Which, *, as_json: AsJson = False) -> None:
    """Be told nothing there for now."""
    _change(which, lambda d, t: targets.mute(d, OPERATOR, t, muted=True), "is muted", as_json=as_json)


def unmute(which: Which, *, as_json: AsJson = False) -> None:
    """Be told there again."""
    _change(which, lambda d, t: targets.mute(d, OPERATOR, t, muted=False), "is heard again", as_json=as_json)


def try_out(which: Which, *, as_json: AsJson = False) -> None:
    """Send a message there now."""
    settings = session.begin()

    async def work() -> str:
        by = targets.courier(settings)
        try:
            async with session.ready_database(settings) as database:
                known = await _found(database, which)
                await targets.try_out(database, Vault.of(settings), by, OPERATOR, known.id)
                return known.label
        finally:
            await by.close()

    label = session.run(work())
    if as_json:
        print_json({"label": label, "sent": True})
    else:
        say(f"Sent a message to {label}.")


def remove(which: Which, *, as_json: AsJson = False) -> None:
    """Be told there no longer; the address is forgotten."""
    settings = session.begin()

    async def work() -> Target:
        async with session.ready_database(settings) as database:
            known = await _found(database, which)
            await targets.remove(database, OPERATOR, known.id)
            return known

    known = session.run(work())
    if as_json:
        print_json({"id": str(known.id), "removed": True})
    else:
        say(f"{known.label} is removed.")


def _change(which: str, act: Callable[[Database, UUID], Awaitable[Target]], done: str, *, as_json: bool) -> None:
    settings = session.begin()

    async def work() -> Target:
        async with session.ready_database(settings) as database:
            return await act(database, (await _found(database, which)).id)

    changed = session.run(work())
    if as_json:
        print_json(written(changed.as_data(), chosen(settings, None)))
    else:
        say(f"{changed.label} {done}.")


async def _found(database: Database, which: str) -> Target:
    async with database.connection() as connection:
        return await targets.show(connection, OPERATOR, await targets.find(connection, OPERATOR, which))


def address_of(given: str) -> SecretStr:
    """Take the address as it is, from a file, or by asking, so that it need not stand in a shell's history."""
    if given == "-":
        return SecretStr(typer.prompt("Address", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline())
    if given.startswith("@"):
        try:
            return SecretStr(Path(given[1:]).read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError):
            raise Problem("notice.unreadable_address", f"{given[1:]} cannot be read as text.") from None
    return SecretStr(given)
