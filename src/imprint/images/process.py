"""A child process as its parent sees it: started, asked, ended; never trusted."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil
import structlog

from imprint.images.bounds import Bounds
from imprint.problem import Unavailable

log = structlog.get_logger()

START_SECONDS = 30
MESSAGE_BYTES = 1 << 16
LONGEST_ANSWER = 1 << 20
LAST_WORDS = 2000
WATCH_SECONDS = 0.1
# All it gets: our own environment holds secrets. To keep freed memory for the next image, in one heap, spares the
# system from clearing it anew each time: 5 % of all time, for 10 MB.
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
}
TIME_OVER = frozenset({-signal.SIGXCPU, -signal.SIGALRM})
# GLib ends the process when memory is refused to it, and says so only in words.
OUT_OF_MEMORY = ("failed to allocate", "bad_alloc", "memoryerror", "out of memory")
# Only Linux holds a process to its limit of memory; elsewhere it is watched from here.
WATCHED = sys.platform != "linux"


class Gone(Exception):  # noqa: N818 - what happened to it, not an error of ours
    """The child died or was ended before it answered; the code says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class ChildProcess:
    """One child and the socket to it."""

    bounds: Bounds
    watched: bool
    _process: asyncio.subprocess.Process
    _link: socket.socket
    _listening: "asyncio.Task[None]"
    _last_words: bytearray
    asked: int = 0
    # What it gave up for good: network, user, privileges, files.
    walls: frozenset[str] = field(default=frozenset())

    @classmethod
    async def start(cls, bounds: Bounds, *, watched: bool = WATCHED) -> "ChildProcess":
        """Start a child and wait until it is confined; raise Unavailable when it does not come up."""
        ours, its = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003
        try:
            with its:
                process = await asyncio.create_subprocess_exec(
                    *(
                        sys.executable,
                        "-I",
                        "-m",
                        "imprint.images.child",
                        str(its.fileno()),
                        json.dumps(asdict(bounds)),
                    ),
                    pass_fds=[its.fileno()],
                    env={**ENVIRONMENT, "VIPS_CONCURRENCY": str(bounds.threads)},
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise Unavailable("image.no_child", "The process that works on images cannot be started.") from error
        words = bytearray()
        child = cls(bounds, watched, process, ours, asyncio.create_task(_listen(process, words)), words)
        try:
            async with asyncio.timeout(START_SECONDS):
                child.walls = frozenset((await child._hear())["walls"])
        except (TimeoutError, Gone) as error:
            await child.end()
            said = words.decode(errors="replace").strip()
            log.warning("a process for images did not start", exit_code=process.returncode, said=said)
            raise Unavailable("image.no_child", "The process that works on images does not start.") from error
        except BaseException:
            await child.end()
            raise
        return child

    @property
    def pid(self) -> int:
        """Give its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Say whether it was alive when we last heard."""
        return self._process.returncode is None

    async def ask(self, asked: dict[str, Any], files: Sequence[int]) -> dict[str, Any]:
        """Hand over a request with open files and wait for the answer; raise Gone when none comes."""
        self.asked += 1
        watch = asyncio.create_task(self._watch()) if self.watched else None
        try:
            async with asyncio.timeout(self.bounds.wall_seconds):
                # A request is far smaller than the socket's buffer, which is empty: this does not block.
                socket.send_fds(self._link, [json.dumps(asked).encode() + b"\n"], list(files))
                return await self._hear()
        except TimeoutError:
            raise Gone("image.too_slow") from None
        except (OSError, Gone) as error:
            raise Gone(await self._why(over_memory=watch is not None and watch.done())) from error
        finally:
            if watch is not None:
                watch.cancel()

    async def end(self) -> None:
        """End it at once; it has nothing of its own to save."""
        self._link.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._listening

    async def _hear(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        heard = b""
        while not heard.endswith(b"\n"):
            part = await loop.sock_recv(self._link, MESSAGE_BYTES)
            heard += part
            if not part or len(heard) > LONGEST_ANSWER:
                raise Gone("image.crashed")
        answer = json.loads(heard)
        if not isinstance(answer, dict):
            raise TypeError("an answer is an object")
        return answer

    async def _why(self, *, over_memory: bool) -> str:
        """Tell from how it died what the image did to it."""
        with suppress(ProcessLookupError):  # it may have closed the socket and live on
            if self._process.returncode is None:
                await asyncio.wait_for(self._process.wait(), 1)
        await self._listening
        said = self._last_words.decode(errors="replace")
        if over_memory or any(words in said.lower() for words in OUT_OF_MEMORY):
            return "image.too_much_memory"
        if self._process.returncode in TIME_OVER:
            return "image.too_slow"
        log.warning("a process for images died", exit_code=self._process.returncode, said=said.strip())
        return "image.crashed"

    async def _watch(self) -> None:
        """Kill it when it has more memory than it may."""
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            while True:
                await asyncio.sleep(WATCH_SECONDS)
                if process.memory_info().rss > self.bounds.memory_bytes:
                    self._process.kill()
                    return


async def _listen(process: asyncio.subprocess.Process, words: bytearray) -> None:
    """Keep the last of what it says on standard error, so that it never waits for a reader."""
    if process.stderr is None:
        return
    while part := await process.stderr.read(MESSAGE_BYTES):
        words += part
        del words[:-LAST_WORDS]
