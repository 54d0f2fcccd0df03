"""The program: every command, in one place."""

from typing import Annotated

import typer

from imprint import __version__
from imprint.cli import processes, prove, sandbox

# The commands that run for long, and so carry nothing they do not need.
LONG = {"up", "worker", "api"}


def program(
    entrypoints: processes.Entrypoints,
    serve: processes.Serve,
    town: sandbox.Open,
    proofs: prove.Open,
    *,
    command: str | None = None,
) -> typer.Typer:
    """Put the command line together; the caller says what a worker can do, who answers, who imitates and who proves.

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
        _add_the_rest(app, town)
        sandbox.register(app, town)
        prove.register(app, proofs)
    return app


def _add_the_rest(app: typer.Typer, town: sandbox.Open) -> None:
    from imprint.cli import (  # noqa: PLC0415 - see LONG
        about,
        account,
        api_key,
        audit,
        backfill,
        batch,
        content,
        dead_letters,
        demo,
        dry_run,
        explain,
        figures,
        keys,
        notice,
        person,
        platforms,
        post,
        resolve,
        rule,
        series,
        simulate,
        source,
        upkeep,
        webhook,
    )

    for group in (
        post,
        batch,
        dry_run,
        explain,
        simulate,
        resolve,
        platforms,
        account,
        content,
        backfill,
        person,
        api_key,
        keys,
        series,
        source,
        notice,
        webhook,
        rule,
        dead_letters,
        audit,
        figures,
        upkeep,
        about,
    ):
        group.register(app)
    demo.register(app, town)


def _version(asked: bool) -> None:  # noqa: FBT001 - the signature Typer calls
    if asked:
        typer.echo(f"Imprint {__version__}")
        raise typer.Exit
