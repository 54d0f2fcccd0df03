"""`imprint up` as a person lives with it: start, look, crash, stop."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from time import monotonic

import httpx2
import psutil
import pytest

from imprint.problem import Exit
from tests.waiting import until

PROGRAM = [sys.executable, "-m", "imprint"]


def command(process: psutil.Process) -> str:
    """Give the command line of a process; nothing if it has just ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def alive(process: psutil.Process) -> bool:
    """Say whether a process runs, also when it ends while we look."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Up:
    """A running `imprint up` and what it has printed."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.environment = {**os.environ, "IMPRINT_HOME": str(home), "IMPRINT_PORT": "0", **environment}
        with (home / "out").open("w") as out, (home / "err").open("w") as err:
            self.process = subprocess.Popen([*PROGRAM, "up"], env=self.environment, stdout=out, stderr=err)

    @property
    def printed(self) -> list[str]:
        """What it said to the person."""
        return (self.home / "out").read_text().splitlines()

    @property
    def logged(self) -> str:
        """What it said in its log."""
        return (self.home / "err").read_text()

    async def ready(self) -> bool:
        """Say whether it has said that it is ready."""
        assert self.process.poll() is None, self.logged
        return any("Stop" in line for line in self.printed)

    @property
    def address(self) -> str:
        """Where it listens."""
        return next(line.split()[1].partition("/first#")[0] for line in self.printed if "Open" in line)

    @property
    def code(self) -> str:
        """The code that makes the first account."""
        return next(line.split()[1] for line in self.printed if "Code" in line)

    @cached_property
    def key(self) -> str:
        """The key of the first person's program; made when it is first wanted."""
        return first_key(self.address, self.code)

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Ask it for a page."""
        request = urllib.request.Request(self.address + path, headers=headers)  # noqa: S310 - our own server
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def children(self, name: str) -> list[psutil.Process]:
        """Find the processes it has started by a word of their command line."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [p for p in found if name in command(p)]

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run another command on the same home."""
        return subprocess.run(
            [*PROGRAM, *arguments], env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )


def first_key(at: str, code: str) -> str:
    """Make the first account as a browser does, and a key that may see the status."""
    with httpx2.Client(base_url=at, trust_env=False, timeout=20) as http:
        given = {"code": code, "name": "ada", "password": "correct horse battery staple"}
        signed = http.post("/api/people/first", json=given).json()
        wanted = {"label": "a journey", "scopes": ["system:read"]}
        made = http.post("/api/api-keys", json=wanted, headers={"X-CSRF-Token": signed["csrfToken"]})
        return str(made.json()["secret"])


@contextmanager
def up(home: Path, **environment: str) -> Iterator[Up]:
    """Start it, and leave nothing of it behind whatever happens."""
    started = Up(home, **environment)
    family: list[psutil.Process] = []
    try:
        yield started
    finally:
        if started.process.poll() is None:
            family = psutil.Process(started.process.pid).children(recursive=True)
            started.process.terminate()
            try:
                started.process.wait(30)
            except subprocess.TimeoutExpired:
                started.process.kill()
                for process in family:
                    process.kill()


def postmaster(home: Path) -> int | None:
    """Give the process of the embedded database, None when there is none."""
    try:
        return int((home / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


async def test_from_the_first_start_to_the_last_goodbye(home: Path) -> None:
    """It says where it listens and how to sign in, answers, refuses a second one, and stops cleanly on Ctrl-C."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        assert it.get("/healthz")[0] == it.get("/readyz")[0] == 200
        assert it.get("/api/status")[0] == it.get("/api/status", Authorization="Bearer wrong")[0] == 401
        assert "first account" in it.get("/")[1]
        code, body = it.get("/api/status", Authorization=f"Bearer {it.key}")
        assert (code, len(json.loads(body)["workers"])) == (200, 1)
        assert "Sign in" in it.get("/")[1]
        assert it.key not in it.logged + "".join(it.printed)
        assert it.command("code").returncode == Exit.FAILED  # somebody is here: the code has done its work
        second = it.command("up")
        assert (second.returncode, second.stdout) == (Exit.BUSY, "")
        assert f"process {it.process.pid}" in second.stderr
        assert len(json.loads(it.command("status", "--json").stdout)["workers"]) == 1
        family = psutil.Process(it.process.pid).children(recursive=True)
        it.process.send_signal(signal.SIGINT)
        assert it.process.wait(30) == 0
        assert "Imprint has stopped." in it.printed[-1]
        assert not [p for p in family if alive(p)]
    assert postmaster(home) is None


async def test_whatever_is_killed_comes_back(home: Path) -> None:
    """A killed worker, a killed HTTP server and a killed database are each back at work within seconds."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        key = it.key
        old = {name: it.children(f"imprint {name}")[0] for name in ("worker", "api")}
        for process in old.values():
            process.kill()
        database = postmaster(home)
        assert database is not None
        os.kill(database, signal.SIGKILL)
        began = monotonic()

        async def back() -> bool:
            if postmaster(home) in (None, database):
                return False
            fresh = [p for name in old for p in it.children(f"imprint {name}") if p != old[name]]
            try:
                code, body = it.get("/api/status", Authorization=f"Bearer {key}")
            except OSError:
                return False
            alive = (
                [w for w in json.loads(body).get("workers", []) if w["name"].endswith(f":{fresh[0].pid}")]
                if fresh
                else []
            )
            return len(fresh) == 2 and code == 200 and bool(alive)

        await until(back, seconds=30)
        assert monotonic() - began < 30
        assert it.process.poll() is None


async def test_kill_9_of_it_leaves_nothing_running_and_nothing_broken(home: Path) -> None:
    """When `imprint up` itself is killed its children stop, the last one stops the database, and it starts again."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        family = psutil.Process(it.process.pid).children(recursive=True)
        it.process.kill()
        it.process.wait()

        async def gone() -> bool:
            return postmaster(home) is None and not any(alive(p) for p in family)

        await until(gone, seconds=30)
    with up(home) as again:
        await until(again.ready, seconds=60)
        assert json.loads(again.command("incarnation", "--json").stdout)["sendsHeld"] is None


async def test_a_port_that_is_taken_is_one_sentence(home: Path) -> None:
    """It does not start halfway: the address is asked for before anything is promised."""
    with up(home) as it:
        await until(it.ready, seconds=60)
        port = it.address.rpartition(":")[2]
        other = home / "other"
        other.mkdir()
        other.chmod(0o711)
        refused = subprocess.run(
            [*PROGRAM, "up"],
            env={**it.environment, "IMPRINT_HOME": str(other), "IMPRINT_PORT": port},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert refused.returncode == Exit.UNAVAILABLE
        assert "IMPRINT_PORT to a free port" in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGHUP])
async def test_it_stops_however_it_is_asked(home: Path, signal_number: signal.Signals) -> None:
    """A service manager's SIGTERM and a closed terminal's SIGHUP end it as cleanly as Ctrl-C."""
    with up(home, IMPRINT_WORKERS="2") as it:
        await until(it.ready, seconds=60)
        assert len(it.children("imprint worker")) == 2
        it.process.send_signal(signal_number)
        assert it.process.wait(30) == 0
    assert postmaster(home) is None
