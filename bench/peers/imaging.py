"""Pillow, sharp and vipsthumbnail as peers; `python -m bench.peers.imaging` installs the first two."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

from imprint.images.recipes import Recipe

Way = Literal["plain", "tuned"]

PEERS = Path(__file__).parent
PILLOW = PEERS.parent / ".peers" / "pillow"
SHARP = PEERS / "sharp"
PILLOW_VERSION = "13.0.0"


@dataclass(frozen=True)
class Took:
    """How long a round took, and what the processor spent on it where that is known."""

    seconds: float
    cpu_seconds: float | None


@dataclass
class Peer:
    """A program that stays up and does rounds of work."""

    name: str
    way: Way
    _process: asyncio.subprocess.Process

    async def work(self, files: Sequence[Path], recipes: Sequence[Recipe], folder: Path) -> Took:
        """Let it make all variants of all files."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("a peer is spoken to by pipes")
        asked: dict[str, object] = {"way": self.way, "folder": str(folder), "files": [str(file) for file in files]}
        asked["recipes"] = [asdict(recipe) for recipe in recipes]
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} could not be measured; what it said stands above")
        return Took(**json.loads(line))

    async def end(self) -> None:
        """End it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 5)
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


@dataclass
class Vipsthumbnail:
    """The command of libvips: one process for each variant of each file."""

    name: str
    workers: int

    async def work(self, files: Sequence[Path], recipes: Sequence[Recipe], folder: Path) -> Took:
        """Let it make all variants of all files."""
        room = asyncio.Semaphore(self.workers)

        async def one(file: Path, recipe: Recipe) -> None:
            target = folder / f"{file.stem}-{recipe.variant}.webp"
            save = f"{target}[Q={recipe.quality},effort={recipe.effort},strip]"
            async with room:
                made = await asyncio.create_subprocess_exec(
                    *("vipsthumbnail", str(file), "--size", f"{recipe.edge}x{recipe.edge}>"),
                    *("--export-profile", "srgb", "-o", save),
                    env={**os.environ, "VIPS_CONCURRENCY": "1"},
                )
                if await made.wait() != 0:
                    raise RuntimeError("vipsthumbnail could not be measured; what it said stands above")

        began = perf_counter()
        await asyncio.gather(*(one(file, recipe) for file in files for recipe in recipes))
        return Took(perf_counter() - began, None)

    async def end(self) -> None:
        """Nothing of it is left running."""


async def pillow(way: Way, workers: int, nice: int) -> Peer | str:
    """Start Pillow, in processes of its own, or say that it is not installed."""
    if not (PILLOW / "PIL").is_dir():
        return "not installed: Pillow (python -m bench.peers.imaging)"
    command = (sys.executable, str(PEERS / "pillow.py"), str(workers))
    return Peer("Pillow", way, await _start(command, nice, {"PYTHONPATH": str(PILLOW)}))


async def sharp(way: Way, workers: int, nice: int) -> Peer | str:
    """Start sharp, with a thread for each worker and each of its three variants, or say that it is not installed."""
    if shutil.which("node") is None:
        return "not installed: node 20 or newer (Debian: apt-get install nodejs npm)"
    if not (SHARP / "node_modules" / "sharp").is_dir():
        return "not installed: npm's sharp (python -m bench.peers.imaging)"
    threads = {"UV_THREADPOOL_SIZE": str(max(4, 3 * workers))}
    return Peer("sharp", way, await _start(("node", str(SHARP / "measure.js"), str(workers)), nice, threads))


async def vipsthumbnail(workers: int) -> Vipsthumbnail | str:
    """Give the command, or say that it is not installed."""
    if shutil.which("vipsthumbnail") is None:
        return "not installed: vipsthumbnail (Debian: apt-get install libvips-tools)"
    return Vipsthumbnail("vipsthumbnail", workers)


async def _start(command: Sequence[str], nice: int, environment: dict[str, str]) -> asyncio.subprocess.Process:
    # As nice as our own children are: otherwise whatever else runs on the machine would favour one side.
    return await asyncio.create_subprocess_exec(
        *("nice", "-n", str(nice), *command),
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # as our children have; Linux shares the processor out between sessions
    )


async def install() -> None:
    """Install the pinned versions, each into a folder of its own."""
    PILLOW.parent.mkdir(exist_ok=True)
    (PILLOW.parent / ".gitignore").write_text("*\n")  # what is installed there is nobody's source
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade")
    await _run((*pip, "--target", str(PILLOW), f"pillow=={PILLOW_VERSION}"), PEERS)
    if shutil.which("npm") is None:
        print("sharp needs npm; on Debian: apt-get install nodejs npm")
    else:
        await _run(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"), SHARP)
    for name, found in {"pillow": await pillow("plain", 1, 0), "sharp": await sharp("plain", 1, 0)}.items():
        print(f"{name}: {found if isinstance(found, str) else 'ready'}")
        if isinstance(found, Peer):
            await found.end()


async def _run(command: Sequence[str], folder: Path) -> None:
    ran = await asyncio.create_subprocess_exec(*command, cwd=folder)
    if await ran.wait() != 0:
        raise RuntimeError(f"{command[0]} failed; what it said stands above")


if __name__ == "__main__":
    asyncio.run(install())
