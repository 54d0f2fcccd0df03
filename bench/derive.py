"""`python -m bench.derive`: originals a second through the maker, beside Pillow, sharp and vipsthumbnail.

The whole path for us: the bytes are spooled and hashed, three variants made in confined children, their bytes hashed.
The peers read files and write files, with as many workers, the same sizes, quality, effort and niceness. All take
turns in the same run. `pillow` and `sharp` work as their documentation says, `…_tuned` as fast as we could make them.
"""

import argparse
import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import psutil

from bench.cluster import DISK
from bench.machine import machine
from bench.peers.imaging import Peer, Took, Vipsthumbnail, pillow, sharp, vipsthumbnail
from bench.pictures import originals
from imprint.images.bounds import Bounds
from imprint.images.maker import Maker, open_maker
from imprint.images.recipes import RECIPES, Recipe
from imprint.images.spool import spooled

CHUNK = 1 << 20


class Imprint:
    """The maker as a worker uses it."""

    def __init__(self, maker: Maker) -> None:
        self.maker = maker

    async def work(self, files: Sequence[Path], recipes: Sequence[Recipe], folder: Path) -> Took:
        """Take each original from a stream to three variants."""
        room = asyncio.Semaphore(2 * self.maker.children)  # one at work and one being read, for each child

        async def one(file: Path) -> None:
            async with room, spooled(_chunks(file), folder) as spool:
                await self.maker.make(spool.path, recipes, folder)

        began, before = perf_counter(), _cpu_seconds()
        async with asyncio.TaskGroup() as group:
            for file in files:
                group.create_task(one(file))
        return Took(perf_counter() - began, _cpu_seconds() - before)

    async def end(self) -> None:
        """Nothing: whoever opened the maker closes it."""


async def _chunks(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb", buffering=0) as stream:
        while chunk := await asyncio.to_thread(stream.read, CHUNK):
            yield chunk


def _cpu_seconds() -> float:
    children = [child.cpu_times() for child in psutil.Process().children() if "imprint.images.child" in child.cmdline()]
    return process_time() + sum(times.user + times.system for times in children)


async def measure(count: int, rounds: int, effort: int | None) -> dict[str, object]:
    """Let everybody do the same, in turns."""
    recipes = [r if effort is None else Recipe(**{**vars(r), "effort": effort}) for r in RECIPES.values()]
    bounds = Bounds()
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="imprint-bench-", dir=DISK) as home:
        files = originals(Path(home), count)
        async with open_maker(bounds, workers) as maker:
            contenders: dict[str, Imprint | Peer | Vipsthumbnail | str] = {
                "imprint": Imprint(maker),
                "pillow": await pillow("plain", workers, bounds.nice),
                "pillow_tuned": await pillow("tuned", workers, bounds.nice),
                "vipsthumbnail": await vipsthumbnail(workers),
                "sharp": await sharp("plain", workers, bounds.nice),
                "sharp_tuned": await sharp("tuned", workers, bounds.nice),
            }
            ready = {name: peer for name, peer in contenders.items() if not isinstance(peer, str)}
            took: dict[str, list[Took]] = {name: [] for name in ready}
            bytes_made: dict[str, int] = {}
            try:
                for turn in range(rounds + 1):
                    for name, peer in ready.items():
                        folder = Path(home) / name
                        folder.mkdir()
                        # The first turn only warms up, on one of each kind.
                        spent = await peer.work(files if turn else files[:3], recipes, folder)
                        bytes_made[name] = sum(file.stat().st_size for file in folder.iterdir())
                        shutil.rmtree(folder)
                        if turn:
                            took[name].append(spent)
            finally:
                for peer in ready.values():
                    await peer.end()
            figures: dict[str, object] = {
                name: _figures(count, took[name], bytes_made[name]) if name in took else str(peer)
                for name, peer in contenders.items()
            }
            figures["imprint"] = {
                **_figures(count, took["imprint"], bytes_made["imprint"]),
                "child_peak_mb": round(maker.peak_bytes / 2**20),
                "originals": count,
                "rounds": rounds,
                "workers": workers,
                "effort": recipes[0].effort,
            }
    rates = {name: median(count / each.seconds for each in spent) for name, spent in took.items()}
    ratio = {name: round(rates["imprint"] / rate, 2) for name, rate in rates.items() if name != "imprint"}
    # Whatever else runs on the machine takes from one contender more than from another; of their own time it does not.
    cpu = {name: median(each.cpu_seconds or 0 for each in spent) for name, spent in took.items()}
    ratio_cpu = {name: round(spent / cpu["imprint"], 2) for name, spent in cpu.items() if name != "imprint" and spent}
    return {**figures, "ratio": ratio, "ratio_cpu": ratio_cpu, "machine": machine()}


def _figures(count: int, took: Sequence[Took], made: int) -> dict[str, object]:
    each = sorted(count / spent.seconds for spent in took)
    figures: dict[str, object] = {"per_s": round(median(each), 2), "range": [round(each[0], 2), round(each[-1], 2)]}
    # What does not change when the machine has other things to do.
    spent = [one.cpu_seconds for one in took if one.cpu_seconds is not None]
    if spent:
        figures["cpu_ms_each"] = round(median(spent) / count * 1000)
    return {**figures, "made_kb_each": round(made / count / 1024)}


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.derive", description=__doc__)
    parser.add_argument("--count", type=int, default=12, help="originals, a third each of JPEG, PNG and WebP")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--effort", type=int, help="everybody's effort of the WebP encoder instead of the recipes'")
    asked = parser.parse_args()
    print(json.dumps(asyncio.run(measure(asked.count, asked.rounds, asked.effort)), indent=2))


if __name__ == "__main__":
    main()
