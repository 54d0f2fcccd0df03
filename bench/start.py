"""`python -m bench.start`: how long until Imprint is ready, at first and later, and what the idle whole weighs."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil

from bench.cluster import DISK
from bench.figures import show

READY = "is ready"
SETTLE_SECONDS = 3.0


def measure(rounds: int) -> None:
    """Start `imprint up` on new and on known homes, and print what it took."""
    first: list[float] = []
    warm: list[float] = []
    memory: list[float] = []
    for _ in range(rounds):
        home = Path(tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK))
        home.chmod(0o711)
        try:
            first.append(_start(home)[0])
            for _ in range(2):
                seconds, megabytes = _start(home)
                warm.append(seconds)
                memory.append(megabytes)
        finally:
            shutil.rmtree(home, ignore_errors=True)
    show(
        {
            "first_start_s": round(median(first), 2),
            "warm_start_s": round(median(warm), 2),
            "idle_pss_mb": round(median(memory), 1),
            "first_start_range": [round(min(first), 2), round(max(first), 2)],
            "warm_start_range": [round(min(warm), 2), round(max(warm), 2)],
        },
        {},
    )


def _start(home: Path) -> tuple[float, float]:
    """Start it, wait until it says that it is ready, weigh it, stop it."""
    environment = {**os.environ, "IMPRINT_HOME": str(home), "IMPRINT_PORT": "0"}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "imprint", "up"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            for line in process.stdout or ():
                if READY in line:
                    break
            seconds = time.perf_counter() - began
            time.sleep(SETTLE_SECONDS)
            return seconds, _weigh(home, process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _weigh(home: Path, pid: int) -> float:
    """Add up the memory of every process of it in MB; what they share counts once (PSS)."""
    whole = psutil.Process(pid)
    database = psutil.Process(int((home / "postgres" / "data" / "postmaster.pid").read_text().split()[0]))
    family = {*[whole, *whole.children(recursive=True)], *[database, *database.children(recursive=True)]}
    return sum(getattr(p.memory_full_info(), "pss", 0) or p.memory_info().rss for p in family) / 1e6


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    measure(parser.parse_args().rounds)


if __name__ == "__main__":
    main()
