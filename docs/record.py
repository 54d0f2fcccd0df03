"""Runs a proof and keeps its report: `python -m docs.record kills prove kills --publishes 10000`, then `make docs`.

A report is kept whatever it says; docs/reliability.md shows the last of each, with its seed and commit.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parent.parent
RUNS = Path(__file__).parent / "runs"


def commit() -> str:
    """Name the commit that runs, and say when files are not as they are in it."""
    git = ("git", "-C", str(ROOT))
    try:
        head, changed = (
            subprocess.run([*git, *what], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - ours
            for what in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "src"))
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + (" with changes" if changed else "")


def main(arguments: Sequence[str]) -> int:
    """Run the command, keep what it reports, and end as it ended."""
    if len(arguments) < 2:  # noqa: PLR2004 - a name and a command
        sys.stderr.write("usage: python -m docs.record NAME prove …\n")
        return 2
    name, *command = arguments
    began, at = monotonic(), commit()
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "imprint", *command, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if not ran.stdout:
        return ran.returncode or 1
    told = {
        "command": " ".join(["imprint", *command]),
        "commit": at,
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "minutes": round((monotonic() - began) / 60, 1),
        "report": json.loads(ran.stdout),
    }
    RUNS.mkdir(exist_ok=True)
    (RUNS / f"{name}.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{told['command']}: {'right' if ran.returncode == 0 else 'WRONG'}, {told['minutes']} minutes\n")
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
