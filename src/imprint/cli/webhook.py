"""The commands about webhooks: which of your own programs are told of what happens."""

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

import typer

from imprint.cli import session
from imprint.cli.notice import address_of
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import chosen, on_wall, written
from imprint.engine.wire import Wire
from imprint.store.db import Database
from imprint.work import webhook as webhooks
from imprint.work.person import OPERATOR
from imprint.work.vault import Vault
from imprint.work.webhook import EVENTS, Made, Rotated, Webhook

Which = Annotated[str, typer.Argument(help="The webhook's name or id.", metavar="WEBHOOK")]
Events = Annotated[
    list[str] | None, typer.Option("--event", help=f"What it hears of: {', '.join(EVENTS)}; all unless you say.")
]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(
        help="Have your own programs told of what happens.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command()(add)
    group.command("list")(list_)
    group.command()(events)
    group.command()(disable)
    group.command()(enable)
    group.command("test")(try_out)
    group.command()(rotate)
    group.command()(remove)
    app.add_typer(group, name="webhook")


def add(
    url: Annotated[str, typer.Argument(help="The address; @FILE takes it from a file, - asks for it.", metavar="URL")],
    *,
    name: Annotated[str | None, typer.Option("--name", help="What you call it.", metavar="NAME")] = None,
    event: Events = None,
    as_json: AsJson = False,
) -> None:
    """Have an address called when something happens, as Standard Webhooks says; its secret is shown this once."""
    settings = session.begin()
    address = address_of(url)

    async def work() -> Made:
        async with session.ready_database(settings, create=True) as database:
            vault = Vault.of(settings)
            return await webhooks.add(database, vault, Wire(), OPERATOR, address, label=name, events=event or EVENTS)

    made = session.run(work())
    if as_json:
        print_json({**written(made.webhook.as_data(), chosen(settings, None)), "secret": made.secret})
    else:
        say(f"{made.webhook.label} will be told of {', '.join(made.webhook.events)}.")
        say(f"Its secret, shown this once: {made.secret}")


def list_(*, as_json: AsJson = False) -> None:
    """List your webhooks, without addresses and secrets."""
    settings = session.begin()
    wall = chosen(settings, None)

    async def work() -> list[Webhook]:
        async with session.ready_database(settings) as database, database.connection() as connection:
            return await webhooks.listed(connection, OPERATOR)

    found = session.run(work())
    if as_json:
        print_json(written([each.as_data() for each in found], wall))
        return
    if not found:
        say("There is no webhook; `imprint webhook add URL` makes one.")
        return
    rows = [
        (
            each.label,
            each.host,
            ", ".join(each.events),
            "disabled" if each.disabled else "",
            each.waiting,
            each.failed,
            on_wall(each.last_sent_at, wall) if each.last_sent_at else "",
            each.last_error or "",
        )
        for each in found
    ]
    print_table("Webhooks", ["name", "host", "hears of", "", "waiting", "dead", "last called", "last error"], rows)


def events(
    which: Which,
    event: Annotated[list[str], typer.Argument(help=", ".join(EVENTS), metavar="EVENT…")],
    *,
    as_json: AsJson = False,
) -> None:
    """Let a webhook hear of other events from now on."""
    _change(which, lambda d, w: webhooks.change(d, OPERATOR, w, event), f"hears of {', '.join(event)}", as_json=as_json)


def disable(which: Which, *, as_json: AsJson = False) -> None:
    """Have a webhook called no more for now; what waits for it is let go."""
    _change(which, lambda d, w: webhooks.disable(d, OPERATOR, w, disabled=True), "is disabled", as_json=as_json)


def enable(which: Which, *, as_json: AsJson = False) -> None:
    """Have a webhook called again; what it missed is not made up for."""
    _change(which, lambda d, w: webhooks.disable(d, OPERATOR, w, disabled=False), "is called again", as_json=as_json)


def try_out(which: Which, *, as_json: AsJson = False) -> None:
    """Call a webhook now with an event of type `test`, and say whether it was taken."""
    settings = session.begin()

    async def act(database: Database, known: Webhook) -> None:
        await webhooks.try_out(database, Vault.of(settings), Wire(), OPERATOR, known.id)

    known = _with(which, act)
    if as_json:
        print_json({"label": known.label, "sent": True})
    else:
        say(f"{known.label} has taken it.")


def rotate(which: Which, *, as_json: AsJson = False) -> None:
    """Give a webhook a new secret, shown this once; for a day the old one signs as well."""
    settings = session.begin()
    made: list[Rotated] = []

    async def act(database: Database, known: Webhook) -> None:
        made.append(await webhooks.rotate(database, Vault.of(settings), OPERATOR, known.id))

    _with(which, act)
    rotated, wall = made[0], chosen(settings, None)
    if as_json:
        data = {**rotated.webhook.as_data(), "oldUntil": rotated.old_until}
        print_json({**written(data, wall), "secret": rotated.secret})
    else:
        say(f"The old secret of {rotated.webhook.label} signs until {on_wall(rotated.old_until, wall)} as well.")
        say(f"Its new secret, shown this once: {rotated.secret}")


def remove(which: Which, *, as_json: AsJson = False) -> None:
    """Remove a webhook and forget its address and secret."""

    async def act(database: Database, known: Webhook) -> None:
        await webhooks.remove(database, OPERATOR, known.id)

    known = _with(which, act)
    if as_json:
        print_json({"id": str(known.id), "removed": True})
    else:
        say(f"{known.label} is removed.")


def _change(which: str, act: Callable[[Database, UUID], Awaitable[Webhook]], done: str, *, as_json: bool) -> None:
    settings = session.begin()
    changed: list[Webhook] = []

    async def change(database: Database, known: Webhook) -> None:
        changed.append(await act(database, known.id))

    _with(which, change)
    if as_json:
        print_json(written(changed[0].as_data(), chosen(settings, None)))
    else:
        say(f"{changed[0].label} {done}.")


def _with(which: str, act: Callable[[Database, Webhook], Awaitable[None]]) -> Webhook:
    settings = session.begin()

    async def work() -> Webhook:
        async with session.ready_database(settings) as database:
            async with database.connection() as connection:
                webhook = await webhooks.find(connection, OPERATOR, which)
                known = await webhooks.show(connection, OPERATOR, webhook)
            await act(database, known)
            return known

    return session.run(work())
