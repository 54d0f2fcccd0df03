"""The program: every command, in one place."""

from importlib import import_module
from typing import Annotated

import typer

from imprint import __version__
from imprint.cli import processes, prove, sandbox

# The commands that run for long, and so carry nothing they do not need.
LONG = {"up", "worker", "api"}
# The others, by module, as help shows them. One that has the name of its module is loaded alone: a third less to wait.
GROUPS = (
    "post",
    "batch",
    "dry_run",
    "explain",
    "simulate",
    "resolve",
    "platforms",
    "account",
    "content",
    "backfill",
    "person",
    "api_key",
    "keys",
    "series",
    "source",
    "notice",
    "webhook",
    "rule",
    "dead_letters",
    "audit",
    "figures",
    "upkeep",
    "about",
)


def program(
    entrypoints: processes.Entrypoints,
    serve: processes.Serve,
    town: sandbox.Open,
    proofs: prove.Open,
    *,
    command: str | None = None,
) -> typer.Typer:
    """Put the command line together; the caller says what a worker can do, who answers, who imitates and who proves.

    `command` is the one that will be run, if that is known: no other has to be loaded.
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
        _add_the_rest(app, town, command)
        sandbox.register(app, town)
        prove.register(app, proofs)
    return app


def _add_the_rest(app: typer.Typer, town: sandbox.Open, command: str | None) -> None:
    named = (command or "").replace("-", "_")
    for group in [named] if named in GROUPS else GROUPS:
        import_module(f"imprint.cli.{group}").register(app)
    if named not in GROUPS:
        from imprint.cli import demo  # noqa: PLC0415 - see LONG

        demo.register(app, town)


def _version(asked: bool) -> None:  # noqa: FBT001 - the signature Typer calls
    if asked:
        typer.echo(f"Imprint {__version__}")
        raise typer.Exit
