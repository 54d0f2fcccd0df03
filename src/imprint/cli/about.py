"""The commands that tell about Imprint itself: lifecycles, settings, version."""

from typing import Annotated

import typer

from imprint import __version__
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.lifecycles.registry import LIFECYCLES
from imprint.settings import Settings, described


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @app.command()
    def lifecycles(
        *,
        as_json: AsJson = False,
        mermaid: Annotated[bool, typer.Option("--mermaid", help="Print Mermaid state diagrams.")] = False,
    ) -> None:
        """Show the states of every thing and the moves between them."""
        if as_json:
            print_json([lifecycle.as_data() for lifecycle in LIFECYCLES])
        elif mermaid:
            typer.echo("\n\n".join(f"%% {lifecycle.table}\n{lifecycle.mermaid()}" for lifecycle in LIFECYCLES))
        else:
            for lifecycle in LIFECYCLES:
                rows = [(arrow.name, arrow.source, arrow.target, arrow.why) for arrow in lifecycle.arrows]
                print_table(f"\n{lifecycle.table} (begins as {lifecycle.initial})", ["move", "from", "to", "when"], rows)

    @app.command()
    def settings(*, as_json: AsJson = False) -> None:
        """Show what can be set, and how."""
        if as_json:
            print_json([entry._asdict() for entry in described(Settings)])
        else:
            print_table("", ["variable", "default", ""], described(Settings))

    @app.command()
    def version(*, as_json: AsJson = False) -> None:
        """Show which Imprint this is."""
        print_json({"version": __version__}) if as_json else say(f"Imprint {__version__}")
