"""The program: every command, in one place."""

from typing import Annotated

import typer

from imprint import __version__
from imprint.cli import processes

# The commands that run for long, and so carry nothing they do not need.
LONG = {"up", "worker", "api"}


def program(entrypoints: processes.Entrypoints, serve: processes.Serve, *, command: str | None = None) -> typer.Typer:
    """Put the command line together; the caller says what a worker can do and who answers HTTP.

    `command` is the one that will be run, if that is known: a process that runs for long loads no other.
    """
    app = typer.Typer(
        name="imprint",
        help="Publishes creative work on schedule, exactly once.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def options(
        *,
        version: Annotated[
            bool, typer.Option("--version", help="Show which Imprint this is.", is_eager=True, callback=_version)
        ] = False,
    ) -> None:
        """Publish creative work on schedule, exactly once."""

    processes.register(app, entrypoints, serve)
    if command not in LONG:
        _add_the_rest(app)
    return app


def _add_the_rest(app: typer.Typer) -> None:
    from imprint.cli import about, account, backfill, content, demo, keys, post, upkeep  # noqa: PLC0415 - see LONG

    for group in (post, account, content, backfill, keys, upkeep, about, demo):
        group.register(app)


def _version(asked: bool) -> None:  # noqa: FBT001 - the signature Typer calls
    if asked:
        typer.echo(f"Imprint {__version__}")
        raise typer.Exit
