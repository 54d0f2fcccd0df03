"""The proof by outages: its short form."""

import json
import os
import subprocess
import sys

from tests.conftest import quick_folder


def test_the_database_is_stopped_hard() -> None:
    """Killed once and stopped at once once, under load: everything that was answered is there, all goes on."""
    command = [sys.executable, "-m", "imprint", "prove", "database", "--stops", "2", "--seed", "3", "--json"]
    quick = {**os.environ, "TMPDIR": str(quick_folder())}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=quick)
    assert ran.stdout, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["wrong"], ran.returncode) == ([], 0)
    assert told["kinds"] == {"SIGKILL": 1, "SIGQUIT": 1}
    assert [told[name] for name in ("missing", "duplicates", "lost", "stuck", "early")] == [0, 0, 0, 0, 0]
    assert all(count > 0 for count in told["acknowledged"].values())
    assert told["published"] == told["acknowledged"]["publications"]
