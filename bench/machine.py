"""The machine a figure was measured on; nothing in it says whose machine it is."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import psutil

from bench.cluster import DISK
from imprint.store.binaries import binary

VERSION = re.compile(r"\d+(?:\.\d+)+")
FLUSHES = 50
PAGE = bytes(8192)


def machine() -> dict[str, object]:
    """Describe the machine: what a reader needs to judge a figure, and nothing private."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "cpu": _cpu(),
        "os": _os(),
        "python": platform.python_version(),
        "postgresql": _version(str(binary("postgres"))),
        "redis": _version("redis-server"),
        "node": _version("node"),
        # What one durable commit costs here at the very least; a disk that lies about flushing shows in it.
        "disk_flush_ms": round(_flush_ms(), 3),
        "load_1m": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _cpu() -> str:
    """Name the processor's model."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = re.findall(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
    else:
        asked = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        names = asked.stdout.splitlines()
    return names[0].strip() if names else platform.machine()


def _os() -> str:
    """Name the operating system and its kernel's version (not the kernel's full banner, which may name its builder)."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    kernel = VERSION.match(platform.release())
    return f"{name}, kernel {kernel[0]}" if kernel else name


def _version(program: str) -> str | None:
    """Ask a program for its version; None = it is not there."""
    if shutil.which(program) is None:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = VERSION.search(said)
    return found[0] if found else None


def _flush_ms() -> float:
    """Time writing one page and flushing it to the disk the databases of the benches live on (median)."""
    took = []
    with tempfile.TemporaryFile(dir=DISK) as file:
        for _ in range(FLUSHES):
            began = perf_counter()
            file.write(PAGE)
            file.flush()
            os.fsync(file.fileno())
            took.append((perf_counter() - began) * 1000)
    return median(took)
