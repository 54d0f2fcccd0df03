"""The soak: its short form."""

import json
import os
import subprocess
import sys

from tests.conftest import quick_folder


def test_everything_at_once() -> None:
    """A third of a minute of everything, with a kill, a stop and faults: nothing is lost, twice, or left undone."""
    command = [sys.executable, "-m", "imprint", "prove", "soak", "--minutes", "0.3", "--seed", "5", "--json"]
    quick = {**os.environ, "TMPDIR": str(quick_folder())}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=quick)
    assert ran.stdout, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["wrong"], ran.returncode) == ([], 0)
    assert [told[name] for name in ("duplicates", "lost", "stuck", "early", "missing")] == [0, 0, 0, 0, 0]
    assert told["published"] + told["unknown"] == told["did"]["publications"]
    assert told["kills"] >= 1
    assert told["stops"] >= 1
    assert all(count > 0 for count in told["did"].values())
    assert told["worker_mb"]["end"] > 0
