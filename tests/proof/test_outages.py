"""The proof by outages: its short form, on the server it brings and on one that is lent."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import imprint
from tests.conftest import quick_folder
from tests.proof import outside

ROOT = Path(imprint.__file__).parents[2]


def stopped(*options: str) -> dict[str, Any]:
    """Stop a database twice under load, and give the report, of which everything must be right."""
    command = [sys.executable, "-m", "imprint", "prove", "database", "--stops", "2", "--seed", "3", "--json", *options]
    quick = {**os.environ, "TMPDIR": str(quick_folder())}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=quick, cwd=ROOT)
    assert ran.stdout, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    assert (told["wrong"], ran.returncode) == ([], 0)
    assert [told[name] for name in ("missing", "duplicates", "lost", "stuck", "early")] == [0, 0, 0, 0, 0]
    assert all(count > 0 for count in told["acknowledged"].values())
    assert told["published"] == told["acknowledged"]["publications"]
    return told


def test_the_database_is_stopped_hard() -> None:
    """Killed once and stopped at once once, under load: everything that was answered is there, all goes on."""
    assert stopped()["kinds"] == {"SIGKILL": 1, "SIGQUIT": 1}


def test_a_lent_server_is_stopped_hard(home: Path) -> None:
    """The same on a server of others, with their commands; the database that was made there is gone in the end."""
    url = outside.make(home)
    here = [sys.executable, "-m", "tests.proof.outside"]
    kills, quits, starts = (shlex.join([*here, what, str(home)]) for what in ("SIGKILL", "SIGQUIT", "start"))
    subprocess.run(shlex.split(starts), check=True, timeout=60, cwd=ROOT)
    try:
        told = stopped("--server", url, "--stop", kills, "--stop", quits, "--start", starts)
        assert (told["server"], told["kinds"]) == ("lent", {"stop 1": 1, "stop 2": 1})
        assert asyncio.run(outside.databases(url)) == {"postgres", "template0", "template1"}
    finally:
        outside.stop(home, signal.SIGINT)
