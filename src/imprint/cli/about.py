"""The commands that tell about Imprint itself: lifecycles, settings, version."""

from typing import Annotated

import typer

from imprint import __version__
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.lifecycles.registry import LIFECYCLES
from imprint.settings import Settings, described


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (lifecycles, settings, version):
        app.command()(command)


def lifecycles(
    *,
    as_json: AsJson = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print Mermaid state diagrams.")] = False,
) -> None:
    """Show the states of everything and the moves."""
    if as_json:
        print_json([lifecycle.as_data() for lifecycle in LIFECYCLES])
        return
    if mermaid:
        typer.echo("\n\n".join(f"%% {lifecycle.table}\n{lifecycle.mermaid()}" for lifecycle in LIFECYCLES))
        return
    for lifecycle in LIFECYCLES:
        rows = [(arrow.name, arrow.source, arrow.target, arrow.why) for arrow in lifecycle.arrows]
        print_table(f"\n{lifecycle.table} (begins as {lifecycle.initial})", ["move", "from", "to", "when"], rows)


def settings(*, as_json: AsJson = False) -> None:
    """Show what can be set, and how."""
    if as_json:
        print_json([entry._asdict() for entry in described(Settings)])
        return
    for entry in described(Settings):
        say(f"{entry.variable}  (default: {entry.default})\n    {entry.sentence}")


def version(*, as_json: AsJson = False) -> None:
    """Show which Imprint this is."""
    if as_json:
        print_json({"version": __version__})
    else:
        say(f"Imprint {__version__}")
