"""The sandbox on the command line: platforms and sources imitated on this machine, until Ctrl-C."""

import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Protocol

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, say
from imprint.engine.address import listen
from imprint.problem import Unavailable

PORT = 7700
WIDTH = 12


class Sign(Protocol):
    """Something a person may want to know."""

    @property
    def name(self) -> str:
        """Say what it is."""
        ...

    @property
    def text(self) -> str:
        """Give the command or the address."""
        ...


class Town(Protocol):
    """A running sandbox, as far as the command line sees it."""

    @property
    def url(self) -> str:
        """Say where it listens."""
        ...

    @property
    def signs(self) -> Sequence[Sign]:
        """Say how to get to what is in it."""
        ...


class Open(Protocol):
    """Starts a sandbox on an open socket; who that is decides the caller, since doors do not see each other."""

    def __call__(
        self, opened: socket.socket, *, log: Path | None, seed: int, faults: Sequence[str]
    ) -> AbstractAsyncContextManager[Town]:
        """Start it; it ends with the block."""
        ...


def register(app: typer.Typer, open_town: Open) -> None:
    """Add the command."""

    @app.command()
    def sandbox(
        *,
        host: Annotated[str, typer.Option("--host", help="The address to listen on.", metavar="HOST")] = "127.0.0.1",
        port: Annotated[
            int, typer.Option("--port", min=0, max=65535, help="0 takes any free one.", metavar="N")
        ] = PORT,
        log: Annotated[
            Path | None, typer.Option("--log", help="Keep what arrives in this file, too.", metavar="FILE")
        ] = None,
        seed: Annotated[int, typer.Option("--seed", help="Let chance be the same each time.", metavar="N")] = 0,
        faults: Annotated[
            list[str] | None,
            typer.Option(
                "--fault",
                help="What goes wrong, such as rate_limit,times=3 or reset_after,path=*/stash/publish,chance=0.1; "
                "may be repeated.",
                metavar="RULE",
            ),
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Run platforms and sources imitated on this machine.

        A real HTTP server with a DeviantArt, a webhook receiver, MangaDex, MangaPark and feeds, which keeps its own
        log of everything that arrives. Nothing leaves the machine. Ctrl-C stops it.
        """
        session.begin()
        session.run(_sandbox(_opened(host, port), open_town, log, seed, faults or [], _told(as_json=as_json)))
        if not as_json:
            say("The sandbox has stopped.")


async def _sandbox(
    opened: socket.socket,
    open_town: Open,
    log: Path | None,
    seed: int,
    faults: Sequence[str],
    tell: Callable[[Town], None],
) -> None:
    stop = session.stop_on_signals()
    with opened:
        async with open_town(opened, log=log, seed=seed, faults=faults) as town:
            tell(town)
            await stop.wait()


def _opened(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except Unavailable as taken:
        raise Unavailable(
            taken.code, f"The sandbox cannot listen on {host} port {port}; choose another with --port, or 0 for any."
        ) from taken


def _told(*, as_json: bool) -> Callable[[Town], None]:
    def tell(town: Town) -> None:
        if as_json:
            print_json({"url": town.url, **{sign.name: sign.text for sign in town.signs}})
            return
        say(f"The sandbox listens at {town.url}; Ctrl-C stops it.\n")
        for sign in town.signs:
            say(f"  {sign.name:<{WIDTH}}{sign.text}")

    return tell
