"""`python -m bench`: every bench, one after the other, each in a process of its own; then the report.

Each prints our figures, the peers' and how they compare. What it printed is kept in `bench/results/`, or with `--quick`
in a folder that is nobody's source: figures of a first look are none to show.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from bench import report

RESULTS = Path(__file__).parent / "results"
QUICK_RESULTS = Path(__file__).parent / ".quick"
SECONDS = 3 * 3600.0


@dataclass(frozen=True)
class Bench:
    """A bench: its module, and what it is asked for in full and for a first look."""

    name: str
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] = ("--quick",)


BENCHES = (
    Bench("start", quick=("--rounds", "1")),
    Bench("engine", quick=("--jobs", "500")),
    Bench("drift", quick=("--future", "5000", "--due", "100", "--seconds", "5")),
    Bench("publish", ("--no-growth",), ("--quick", "--accounts", "150", "--no-growth")),
    Bench("derive", quick=("--count", "3", "--rounds", "1")),
    Bench("ingest"),
    Bench("backfill", quick=("--rows", "500", "2000")),
    Bench("growth", ("--rows", "10000", "100000", "1000000"), ("--rows", "2000", "10000", "50000", "--rounds", "100")),
    Bench("api"),
    Bench("events"),
    Bench("sign_in", quick=("--pairs", "20")),
)


def main() -> None:
    """Run them, or those that are named, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes, to see that everything works")
    parser.add_argument("names", nargs="*", help=f"only these: {', '.join(each.name for each in BENCHES)}")
    asked = parser.parse_args()
    if unknown := set(asked.names) - {each.name for each in BENCHES}:
        parser.error(f"there is no bench {min(unknown)}")
    folder = QUICK_RESULTS if asked.quick else RESULTS
    folder.mkdir(exist_ok=True)
    failed = [each.name for each in BENCHES if each.name in (asked.names or [each.name]) and not ran(each, folder)]
    print(f"wrote {report.write(folder).relative_to(RESULTS.parents[1])}")
    if failed:
        sys.exit(f"could not be measured: {', '.join(failed)}")


def ran(bench: Bench, folder: Path) -> bool:
    """Run one, keep what it printed, and say in a few lines how it went."""
    arguments = bench.quick if folder == QUICK_RESULTS else bench.full
    print(f"\n{bench.name}: python -m bench.{bench.name} {' '.join(arguments)}", flush=True)
    began = perf_counter()
    try:
        said = subprocess.run(
            [sys.executable, "-m", f"bench.{bench.name}", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=SECONDS,
        ).stdout
        told: dict[str, Any] = json.loads(said)
    except (subprocess.SubprocessError, ValueError) as error:
        print(f"  FAILED: {error}", flush=True)
        return False
    told["asked_for"] = " ".join(arguments)
    (folder / f"{bench.name}.json").write_text(json.dumps(told, indent=2) + "\n")
    for line in report.lines(told):
        print(f"  {line}")
    print(f"  ({perf_counter() - began:.0f} s)", flush=True)
    return True


if __name__ == "__main__":
    main()
