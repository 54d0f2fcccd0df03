"""The program: every command, in one place."""

from typing import Annotated

import typer

from imprint.cli import about, account, backfill, content, demo, keys, post, processes, upkeep


def program(entrypoints: processes.Entrypoints, serve: processes.Serve) -> typer.Typer:
    """Put the command line together; the caller says what a worker can do and who answers HTTP."""
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
    post.register(app)
    account.register(app)
    content.register(app)
    backfill.register(app)
    keys.register(app)
    upkeep.register(app)
    about.register(app)
    demo.register(app)
    return app


def _version(asked: bool) -> None:  # noqa: FBT001 - the signature Typer calls
    if asked:
        about.version()
        raise typer.Exit
