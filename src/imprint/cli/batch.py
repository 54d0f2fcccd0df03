"""The commands about batches: posts in order, one after the other with an interval between them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from imprint.cli import session
from imprint.cli.consent import Yes, consent
from imprint.cli.length import read_length
from imprint.cli.output import AsJson, print_json, print_table, say, short
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.decisions.schedule import parse
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work import batch as batches
from imprint.work import post as posts
from imprint.work import schedule as schedules
from imprint.work.batch import Batch, Member, Shown
from imprint.work.fitting import Fitting
from imprint.work.person import OPERATOR
from imprint.work.schedule import Changed
from imprint.work.vault import Vault

Which = Annotated[str, typer.Argument(help="The batch's id, or the first letters of it.", metavar="BATCH")]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(
        help="Let posts go out one after the other.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command()(create)
    group.command("list")(list_)
    for command in (show, pause, resume, arrange, stop, delete):
        group.command()(command)
    app.add_typer(group, name="batch")


def create(
    named: Annotated[list[str], typer.Argument(help="Posts in their order, by their ids.", metavar="POST…")],
    *,
    every: Annotated[
        str,
        typer.Option("--every", help="How long after the end of the one before, such as 30m or 2h.", metavar="TIME"),
    ],
    on: Annotated[
        list[str] | None,
        typer.Option("--account", help="On this account; may be repeated. The default one if none.", metavar="ACCOUNT"),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="When the first goes, such as 2030-05-01T18:00; now if not given.", metavar="TIME"),
    ] = None,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Plan posts in this order, each on each account.

    The interval is 0 to 24 hours and counts from the end of the attempt before. One that has to be tried again does not
    hold up the next.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    interval = read_length(every, "batch.bad_interval")
    moment = parse(at, wall) if at else None

    async def work() -> Shown:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                wanted = [await posts.find(connection, OPERATOR, each) for each in named]
                where = [await accounts.find(connection, OPERATOR, each) for each in on or []]
            limits = schedules.bounds(settings)
            return await batches.create(
                database,
                limits,
                OPERATOR,
                wanted,
                every=interval,
                accounts=where,
                at=moment,
                zone=wall.key,
                fitting=Fitting(Vault.of(settings)),
            )

    shown = session.run(work())
    _tell(
        shown, f"Planned {shown.batch.publications} publications in the batch {shown.batch.id}.", wall, as_json=as_json
    )


def list_(
    *,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.", metavar="N")] = 100,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """List batches, the newest first."""
    settings = session.begin()
    wall = chosen(settings, zone)

    async def work() -> list[Batch]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await batches.listed(connection, OPERATOR, limit=limit)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    if not found:
        say("There are no batches.")
        return
    rows = [(short(b.id), b.state, _length(b.every), *_counts(b), on_wall(b.next_at, wall)) for b in found]
    print_table("Batches", ["id", "state", "every", "all", "out", "waiting", "failed", "next"], rows)


def show(which: Which, *, zone: Zone = None, as_json: AsJson = False) -> None:
    """Show one batch, and when each of its publications went or goes.

    For those that wait for their turn the time is what can be told now.
    """
    settings = session.begin()

    async def look(database: Database, batch: UUID) -> Shown:
        async with database.connection() as connection:
            return await batches.show(connection, OPERATOR, batch)

    _tell(_on(settings, which, look), "", chosen(settings, zone), as_json=as_json)


def pause(which: Which, *, as_json: AsJson = False) -> None:
    """Let nothing more of a batch go; what is on its way goes on."""
    settings = session.begin()
    shown = _on(settings, which, lambda database, batch: batches.pause(database, OPERATOR, batch))
    _tell(shown, "Paused.", chosen(settings, None), as_json=as_json)


def resume(which: Which, *, as_json: AsJson = False) -> None:
    """Let a batch go on.

    The next one goes at its time, or now if that is over.
    """
    settings = session.begin()
    shown = _on(settings, which, lambda database, batch: batches.resume(database, OPERATOR, batch))
    _tell(shown, "It goes on.", chosen(settings, None), as_json=as_json)


def arrange(
    which: Which,
    order: Annotated[
        list[int], typer.Argument(min=1, help="The places that wait for their turn, as wanted.", metavar="PLACE…")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Put what waits for its turn into another order.

    `imprint batch arrange BATCH 4 2 3` lets the fourth go next.
    """
    settings = session.begin()
    shown = _on(settings, which, lambda database, batch: batches.arrange(database, OPERATOR, batch, order))
    _tell(shown, "In this order:", chosen(settings, None), as_json=as_json)


def stop(which: Which, *, as_json: AsJson = False) -> None:
    """Cancel everything of a batch that has not left."""
    settings = session.begin()
    changed = _on(settings, which, lambda database, batch: batches.stop(database, OPERATOR, batch))
    _cancelled(changed, "Stopped", chosen(settings, None), as_json=as_json)


def delete(which: Which, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a batch and free its posts; what is out stays out."""
    consent(f"Delete the batch {which} and cancel what waits of it?", yes=yes)
    settings = session.begin()
    changed = _on(settings, which, lambda database, batch: batches.delete(database, OPERATOR, batch))
    _cancelled(changed, "Deleted", chosen(settings, None), as_json=as_json)


def _on(settings: Settings, which: str, act: Callable[[Database, UUID], Awaitable[session.Result]]) -> session.Result:
    async def work() -> session.Result:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                batch = await batches.find(connection, OPERATOR, which)
            return await act(database, batch)

    return session.run(work())


def _tell(shown: Shown, done: str, zone: ZoneInfo, *, as_json: bool) -> None:
    if as_json:
        print_json(written(shown.as_data(), zone))
        return
    batch = shown.batch
    if done:
        say(done)
    next_ = f", the next at {on_wall(batch.next_at, zone)}" if batch.next_at and not batch.paused else ""
    say(f"{short(batch.id)} {batch.state}, one every {_length(batch.every)}{next_}")
    rows = [
        (
            each.place,
            short(each.id),
            each.title,
            each.label or each.name or each.platform,
            _state(each),
            ("about " if each.estimated else "") + on_wall(each.goes_at, zone),
            each.error_code or each.url or "",
        )
        for each in shown.members
    ]
    print_table("\nPublications", ["place", "id", "post", "account", "state", "when", ""], rows)


def _cancelled(changed: Sequence[Changed], done: str, zone: ZoneInfo, *, as_json: bool) -> None:
    if as_json:
        print_json(written({"cancelled": [each.as_data() for each in changed]}, zone))
        return
    say(f"{done}; cancelled {len(changed)}.")


def _state(member: Member) -> str:
    if member.status == "pending":
        return {"behind": "behind", "front": "next", "over": "again"}[member.turn]
    return member.status


def _counts(batch: Batch) -> tuple[int, int, int, int]:
    return batch.publications, batch.out, batch.waiting + batch.running, batch.failed + batch.unknown


def _length(every: timedelta) -> str:
    return f"{every / timedelta(minutes=1):g} min"
