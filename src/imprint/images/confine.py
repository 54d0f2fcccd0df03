"""Confine: what a process gives up for good before it touches a stranger's bytes.

The limits of memory and time always hold; the walls are put up where the system has them, and named.
"""

import ctypes
import os
import resource
import signal
import sys
from math import ceil

from imprint.images.bounds import Bounds

NOBODY = 65534
OPEN_FILES = 64

_LINUX = sys.platform == "linux"
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
# The same numbers on every architecture.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_ASK_VERSION = 1


def leave_network() -> list[str]:
    """Move into a network of its own that has nothing in it; only possible while there is one thread."""
    if not _LINUX:
        return []
    libc = ctypes.CDLL(None, use_errno=True)
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    return ["network"] if libc.unshare(flags) == 0 else []


def confine(bounds: Bounds) -> list[str]:
    """Give up memory, files, rights and priority; everything that is to be imported must be by now."""
    os.nice(bounds.nice)
    memory = resource.RLIMIT_DATA if _LINUX else resource.RLIMIT_AS
    _limit(memory, bounds.memory_bytes)
    _limit(resource.RLIMIT_FSIZE, bounds.memory_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    walls = []
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        walls.append("user")
    if _LINUX:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after setuid, which would clear it
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            walls.append("privileges")
            walls += _landlock(libc)
    return walls


def allow_time(bounds: Bounds) -> None:
    """Allow the next image its seconds: the process dies of SIGXCPU or SIGALRM when they are over."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = ceil(used.ru_utime + used.ru_stime) + bounds.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    # The parent's clock comes first; this one is for a child whose parent is gone.
    signal.alarm(ceil(bounds.wall_seconds) + 1)


def end_time() -> None:
    """Stop the clock: to wait for the next image costs nothing."""
    signal.alarm(0)


def _limit(which: int, value: int) -> None:
    try:
        resource.setrlimit(which, (value, value))
    except (ValueError, OSError):  # macOS refuses some; there the parent watches the memory
        if _LINUX:
            raise


def _landlock(libc: ctypes.CDLL) -> list[str]:
    """Forbid to open any file, any TCP connection and any signal to others; what is open stays so."""
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_ASK_VERSION)
    if version < 1:
        return []
    files = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):
        files |= (1 << bit) if version >= since else 0
    rules = [files]
    if version >= 4:  # noqa: PLR2004 - TCP bind and connect came with version 4
        rules.append(0b11)
    if version >= 6:  # noqa: PLR2004 - abstract sockets and signals came with version 6
        rules.append(0b11)
    attributes = (ctypes.c_uint64 * len(rules))(*rules)
    ruleset = libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, ctypes.sizeof(attributes), 0)
    if ruleset < 0:
        return []
    held = libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return ["files"] if held else []
