"""The commands about the keys that seal sign-ins."""

from typing import Annotated

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, say
from imprint.problem import Exit
from imprint.work.person import OPERATOR
from imprint.work.rotate import Rotated
from imprint.work.rotate import rotate as rotate_keys
from imprint.work.vault import Vault


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Look after the keys that seal sign-ins.", no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keys)
    group.command()(rotate)
    app.add_typer(group, name="keys")


def _keys() -> None:
    """Look after the keys that seal sign-ins."""


def rotate(
    *,
    forget_old: Annotated[
        bool, typer.Option("--forget-old", help="Forget the old keys; sign-ins in older backups stay sealed for good.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a new key and seal every sign-in with it.

    Imprint may go on meanwhile, and this may be stopped at any moment.
    """
    settings = session.begin()

    async def work() -> Rotated:
        async with session.ready_database(settings) as database:
            return await rotate_keys(database, Vault.of(settings), OPERATOR, forget=forget_old)

    done = session.run(work())
    if as_json:
        print_json({"resealed": done.resealed, "unopenable": done.unopenable, "keys": done.keys})
    else:
        say(f"Sealed {done.resealed} sign-ins with a new key; {done.keys} keys are kept.")
        if done.unopenable:
            say(f"{done.unopenable} could not be opened and were left as they are; `imprint doctor` says more.")
    if done.unopenable:
        raise typer.Exit(Exit.ATTENTION)
