"""A confined process has lost what a hostile image could use."""

import json
import socket
import subprocess
import sys

import pytest

from imprint.images.bounds import Bounds
from imprint.images.process import ChildProcess

# Runs in a process of its own, which is confined and then tries what it must not.
SCRIPT = """
import json, os, resource, socket, subprocess, sys
from imprint.images.bounds import Bounds
from imprint.images.confine import allow_time, confine, leave_network
walls = leave_network()
walls += confine(Bounds(memory_bytes=256 << 20, cpu_seconds=7))
allow_time(Bounds(cpu_seconds=7))

def outcome(act):
    try:
        act()
    except (OSError, MemoryError) as error:
        return type(error).__name__
    return "done"

def connect():
    with socket.socket() as link:
        link.settimeout(1)
        link.connect(("127.0.0.1", int(sys.argv[1])))

print(json.dumps({
    "walls": walls,
    "read": outcome(lambda: open("/etc/passwd").close()),
    "write": outcome(lambda: open("/tmp/imprint-escaped", "w").close()),
    "run": outcome(lambda: subprocess.run(["/bin/true"], check=True)),
    "connect": outcome(connect),
    "signal": outcome(lambda: os.kill(os.getppid(), 0)),
    "memory": outcome(lambda: bytearray(300 << 20)),
    "uid": os.getuid(),
    "cpu": resource.getrlimit(resource.RLIMIT_CPU)[0],
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "nice": os.nice(0),
}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")
def test_confined_process() -> None:
    """It reads no file, writes none, runs nothing, reaches nobody, and is nobody."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = subprocess.run([sys.executable, "-c", SCRIPT, str(port)], capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    assert found["memory"] == "MemoryError"
    assert 7 <= found["cpu"] <= 9
    assert found["core"] == [0, 0]
    assert found["nice"] >= Bounds().nice
    assert "privileges" in found["walls"]
    if "files" in found["walls"]:
        assert {found["read"], found["write"], found["run"]} == {"PermissionError"}
    if {"network", "files"} & set(found["walls"]):
        assert found["connect"] != "done"
    if "user" in found["walls"]:
        assert found["uid"] == 65534
        assert found["signal"] == "PermissionError"


async def test_child_is_confined() -> None:
    """The child that gets images says which walls stand; some always do on Linux."""
    child = await ChildProcess.start(Bounds())
    try:
        assert "privileges" in child.walls or sys.platform != "linux"
    finally:
        await child.end()
