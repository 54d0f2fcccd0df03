"""The only place that wires: what a worker can do, who answers HTTP, and what a problem becomes."""

import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import typer

from imprint.api.app import Application
from imprint.cli.program import program
from imprint.cli.prove import Proofs
from imprint.cli.sandbox import Town
from imprint.log import hide_in_text
from imprint.problem import Exit, Problem
from imprint.settings import Settings
from imprint.store.db import GONE, Database

if TYPE_CHECKING:
    from imprint.engine.queue import Entrypoint
    from imprint.work.sandbox_account import Sandbox  # the use cases weigh, and only some commands need them


def entrypoints(database: Database, settings: Settings) -> "tuple[Entrypoint, ...]":
    """Everything a worker can do."""
    from imprint.entrypoints import entrypoints as table  # noqa: PLC0415 - only a worker needs what it can do

    return table(database, settings)


async def serve(database: Database, settings: Settings, opened: socket.socket, stop: asyncio.Event) -> None:
    """Answer HTTP on an open socket until `stop`."""
    from imprint.api import server  # noqa: PLC0415 - a worker would carry the server for nothing
    from imprint.sandbox.standing import Standing  # noqa: PLC0415

    sandbox = Standing(settings.home, settings.sandbox_port)
    try:
        await sandbox.resume()
        await server.serve(
            database,
            lambda: house(database, settings, sandbox),
            opened,
            stop,
            grace_seconds=settings.shutdown_seconds,
        )
    finally:
        await sandbox.close()


def house(database: Database, settings: Settings, sandbox: "Sandbox | None" = None) -> Application:
    """Put the API and the pages together."""
    from imprint.web.house import build  # noqa: PLC0415 - an Imprint that nobody looks at carries no web framework

    return build(database, settings, sandbox)


def town(
    opened: socket.socket, *, log: Path | None, seed: int, faults: Sequence[str]
) -> AbstractAsyncContextManager[Town]:
    """Run the simulated platforms and sources on an open socket."""
    from imprint.sandbox import town as sandbox  # noqa: PLC0415 - only those who want one load it

    return sandbox.town(opened, log=log, seed=seed, faults=faults)


def proofs() -> Proofs:
    """Give what can be proved; its workers run commands of this program."""
    import imprint.entrypoints  # noqa: F401, PLC0415 - once here, and not in each of a thousand workers that are forked
    from imprint.proof.proofs import Proofs as Ours  # noqa: PLC0415 - only those who want one load it

    return Ours(run)


def run(arguments: list[str]) -> int:  # noqa: C901, PLR0911 - a table of what can go wrong
    """Run one command and give its exit code; what goes wrong is one sentence on standard error."""
    app = program(entrypoints, serve, town, proofs, command=next(iter(arguments), None))
    try:
        return int(app(arguments or ["--help"], prog_name="imprint", standalone_mode=False) or Exit.OK)
    except Problem as problem:
        return _complain(arguments, problem.exit, problem.code, problem.sentence)
    except typer.TyperException as error:
        return _complain(arguments, Exit.USAGE, "usage", error.format_message())
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK  # whoever read our output has seen enough
    except asyncpg.PostgresError as error:
        return _complain(arguments, Exit.UNAVAILABLE, "database.refused", f"The database refused: {error.args[0]}.")
    except OSError as error:
        return _complain(arguments, Exit.UNAVAILABLE, "system", f"The system refused: {error.strerror or error}.")
    except asyncio.CancelledError:
        return 143  # told to stop by a signal
    except Exception as error:
        inner: BaseException = error
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]  # what went wrong inside is what a person can use
        if isinstance(inner, GONE):  # a transaction whose connection was cut under it says so in its own way
            return _complain(arguments, Exit.UNAVAILABLE, "database.lost", "The connection to the database was lost.")
        # The last door: a bug is a sentence too, its traceback for those who ask for it.
        if logging.getLogger().isEnabledFor(logging.DEBUG):
            logging.getLogger("imprint").exception("a bug")
        sentence = f"This is a bug in Imprint: {type(inner).__name__}: {inner}. IMPRINT_LOG_LEVEL=debug shows where."
        return _complain(arguments, Exit.FAILED, "bug", sentence)


def _complain(arguments: list[str], code: Exit, name: str, sentence: str) -> int:
    sentence = hide_in_text(sentence)
    text = json.dumps({"code": name, "error": sentence}) if "--json" in arguments else f"imprint: {sentence}"
    print(text, file=sys.stderr)  # noqa: T201 - this is what a command line says when it fails
    return code
