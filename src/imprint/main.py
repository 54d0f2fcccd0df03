"""The only place that wires: what a worker can do, who answers HTTP, and what a problem becomes."""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import typer

from imprint.cli.program import program
from imprint.engine.queue import Entrypoint, Job
from imprint.log import hide_in_text
from imprint.problem import Exit, Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work.clean import clean


def entrypoints(database: Database, settings: Settings) -> tuple[Entrypoint, ...]:
    """Everything a worker can do: the name, who does it, how many at once, how often and how long."""
    chores: dict[str, Callable[[], Awaitable[object]]] = {"clean": partial(clean, database, settings)}

    async def run_chore(job: Job) -> None:
        await chores[job.key]()

    return (Entrypoint("chore", run_chore, concurrency=1, attempts=3, timeout=timedelta(minutes=10)),)


async def serve(database: Database, key: str, opened: socket.socket, stop: asyncio.Event) -> None:
    """Answer HTTP on an open socket until `stop`."""
    from imprint.api import server  # noqa: PLC0415 - a worker would carry the web framework for nothing

    await server.serve(database, key, opened, stop)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code; what goes wrong is one sentence on standard error."""
    app = program(entrypoints, serve)
    try:
        return int(app(arguments or ["--help"], prog_name="imprint", standalone_mode=False) or Exit.OK)
    except Problem as problem:
        return _complain(arguments, problem.exit, problem.code, problem.sentence)
    except typer.TyperException as error:
        return _complain(arguments, Exit.USAGE, "usage", error.format_message())
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        return Exit.OK  # whoever read our output has seen enough
    except Exception as error:
        # The last door: a bug is a sentence too, its traceback for those who ask for it.
        if logging.getLogger().isEnabledFor(logging.DEBUG):
            logging.getLogger("imprint").exception("a bug")
        sentence = f"This is a bug in Imprint: {type(error).__name__}: {error}. IMPRINT_LOG_LEVEL=debug shows where."
        return _complain(arguments, Exit.FAILED, "bug", sentence)


def _complain(arguments: list[str], code: Exit, name: str, sentence: str) -> int:
    sentence = hide_in_text(sentence)
    text = json.dumps({"code": name, "error": sentence}) if "--json" in arguments else f"imprint: {sentence}"
    print(text, file=sys.stderr)  # noqa: T201 - this is what a command line says when it fails
    return code
