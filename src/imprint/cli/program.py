"""The program: every command, in one place."""

import typer

from imprint.cli import about, demo, processes, upkeep


def program(entrypoints: processes.Entrypoints) -> typer.Typer:
    """Put the command line together; the entrypoints are what a worker can do."""
    app = typer.Typer(
        name="imprint",
        help="Publishes creative work on schedule, exactly once.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    processes.register(app, entrypoints)
    upkeep.register(app)
    about.register(app)
    demo.register(app)
    return app
