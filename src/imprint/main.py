"""The only place that wires: which entrypoints there are, and what a problem becomes on the command line."""

import json
import logging
import sys
from datetime import timedelta

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

    async def run_clean(_: Job) -> None:
        await clean(database, settings)

    return (Entrypoint("clean", run_clean, concurrency=1, attempts=3, timeout=timedelta(minutes=10)),)


def main() -> None:
    """Run the command line; whatever goes wrong is one sentence on standard error and an exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code."""
    app = program(entrypoints)
    try:
        return int(app(arguments, prog_name="imprint", standalone_mode=False) or Exit.OK)
    except Problem as problem:
        return _complain(arguments, problem.exit, problem.code, problem.sentence)
    except typer.TyperException as error:
        return _complain(arguments, Exit.USAGE, "usage", error.format_message())
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        return Exit.OK  # whoever read our output has seen enough
    except Exception as error:  # noqa: BLE001 - the last door: a bug is a sentence too, its traceback for those who ask
        if logging.getLogger().isEnabledFor(logging.DEBUG):
            logging.getLogger("imprint").exception("a bug")
        sentence = f"This is a bug in Imprint: {type(error).__name__}: {error}. IMPRINT_LOG_LEVEL=debug shows where."
        return _complain(arguments, Exit.FAILED, "bug", sentence)


def _complain(arguments: list[str], code: Exit, name: str, sentence: str) -> int:
    sentence = hide_in_text(sentence)
    text = json.dumps({"code": name, "error": sentence}) if "--json" in arguments else f"imprint: {sentence}"
    print(text, file=sys.stderr)  # noqa: T201 - this is what a command line says when it fails
    return code


if __name__ == "__main__":
    main()
