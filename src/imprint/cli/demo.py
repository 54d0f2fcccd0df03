"""The demo: Imprint's story in a minute, on a database of its own that is gone afterwards."""

import shutil
import tempfile
from pathlib import Path
from time import monotonic

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, say
from imprint.settings import Settings
from imprint.store.db import open_database
from imprint.store.embedded import running
from imprint.store.migrate import migrate
from imprint.work.demo import Told, tell


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def demo(*, as_json: AsJson = False) -> None:
        """Tell Imprint's story in a minute.

        On a database of its own, which is gone afterwards.
        """
        settings = session.begin()
        began = monotonic()
        told = session.run(_demo(settings, quiet=as_json))
        seconds = round(monotonic() - began, 1)
        if as_json:
            print_json(told.as_data() | {"seconds": seconds})
            return
        say("\nThe audit, which nobody can change:")
        for line in told.audit:
            moved = f"{line.source} → {line.target}" if line.source else line.target
            say(f"  {line.at:%H:%M:%S.%f}"[:-3] + f"  {line.lifecycle:<12} {line.move:<9} {moved:<23} {line.actor}")
        say(f"\nThe post is {told.status}. That took {seconds} seconds; the demo's database is gone again.")


async def _demo(settings: Settings, *, quiet: bool) -> Told:
    home = Path(tempfile.mkdtemp(prefix="imprint-demo-"))
    home.chmod(0o711)  # the database's own user must be able to pass
    tell_person = (lambda _: None) if quiet else say
    tell_person("Starting an embedded PostgreSQL…")
    try:
        async with running(home, start_seconds=settings.database_start_seconds) as server:
            await migrate(server.url)
            async with open_database(server.url) as database:
                return await tell(database, tell_person)
    finally:
        shutil.rmtree(home, ignore_errors=True)
