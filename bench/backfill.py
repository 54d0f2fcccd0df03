"""`python -m bench.backfill`: contents verified per second, and memory, at two sizes: the cost of a row must not grow.

Every content has an original and three variants, small files of random bytes; all of them are read and hashed. The rows
are written by SQL and the files without flushing, since what is measured is the looking and not the making.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from uuid import uuid4

import asyncpg
import psutil
import uvloop

from bench.cluster import DISK, cluster
from bench.machine import machine
from imprint.images.recipes import RECIPES
from imprint.settings import load
from imprint.store.db import open_database
from imprint.store.migrate import migrate
from imprint.work.backfill import Options, backfill
from imprint.work.stores import open_stores

BYTES = 512
BATCH = 5000
OBJECT = ["id", "content_id", "variant", "status", "store", "key", "sha256", "size", "content_type"]
DERIVATION = ["parent_id", "variant", "recipe_version", "status", "object_id"]


def write(folder: Path, count: int) -> list[tuple[str, str]]:
    """Write objects, and give their keys and hashes."""
    made = []
    for _ in range(count):
        name, data = uuid4().hex, os.urandom(BYTES)
        key = f"{name[:2]}/{name[2:4]}/{name}"
        try:
            (folder / key).write_bytes(data)
        except FileNotFoundError:
            (folder / key).parent.mkdir(parents=True)
            (folder / key).write_bytes(data)
        made.append((key, sha256(data).hexdigest()))
    return made


async def fill(url: str, home: Path, rows: int) -> None:
    """Add contents that are processed, with their bytes, past the triggers."""
    connection = await asyncpg.connect(url)
    names = [(recipe.variant, recipe.version) for recipe in RECIPES.values()]
    try:
        for table in ("content", "object", "derivation"):
            await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        for at in range(0, rows, BATCH):
            count = min(BATCH, rows - at)
            contents = [uuid4() for _ in range(count)]
            await connection.copy_records_to_table(
                "content", records=[(each, "a", "processed") for each in contents], columns=["id", "name", "status"]
            )
            objects: list[tuple[object, ...]] = []
            derivations: list[tuple[object, ...]] = []
            files = iter(write(home / "blobs" / "objects", count * (1 + len(names))))
            for content in contents:
                objects.append((uuid4(), content, None, "processed", "local", *next(files), BYTES, "image/webp"))
                for variant, version in names:
                    made = uuid4()
                    objects.append((made, content, variant, "uploaded", "local", *next(files), BYTES, "image/webp"))
                    derivations.append((content, variant, version, "processed", made))
            await connection.copy_records_to_table("object", records=objects, columns=OBJECT)
            await connection.copy_records_to_table("derivation", records=derivations, columns=DERIVATION)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def measure(url: str, home: Path) -> dict[str, object]:
    """Verify everything twice, in this process, and say how long it took and how much memory there was."""
    settings = load({"IMPRINT_HOME": str(home), "IMPRINT_DATABASE_URL": url})
    stores = open_stores(settings)
    process = psutil.Process()
    rounds = []
    async with open_database(url) as database:
        before, peak = process.memory_info().rss, 0

        def look(*_: int) -> None:
            nonlocal peak
            peak = max(peak, process.memory_info().rss)

        for _ in range(2):
            began = perf_counter()
            report = await backfill(database, stores, settings, Options(fix_status=True), progress=look)
            rounds.append(perf_counter() - began)
            if report.found:
                raise RuntimeError(f"there should be nothing to find: {report}")
    return {
        "contents": report.contents,
        "objects": report.objects,
        "contents_per_s": round(report.contents / min(rounds)),
        "contents_per_s_first": round(report.contents / rounds[0]),
        "objects_per_s": round(report.objects / min(rounds)),
        "us_per_content": round(min(rounds) / report.contents * 1e6, 1),
        "memory_mb": round(peak / 2**20, 1),
        "memory_grown_mb": round((peak - before) / 2**20, 1),
    }


async def run(sizes: list[int]) -> None:
    """Measure each size in a database, a folder and a process of its own."""
    figures: dict[str, dict[str, object]] = {}
    async with cluster() as postgres:
        for rows in sizes:
            home = Path(tempfile.mkdtemp(prefix="imprint-bench-", dir=DISK))
            try:
                url = await postgres.database(f"backfill_{rows}")
                await migrate(url)
                await fill(url, home, rows)
                said = await asyncio.to_thread(
                    subprocess.run,
                    [sys.executable, "-m", "bench.backfill", "--measure", str(home)],
                    capture_output=True,
                    text=True,
                    check=True,
                    env={**os.environ, "BENCH_URL": url},
                )
                figures[f"{rows}"] = json.loads(said.stdout)
            finally:
                shutil.rmtree(home, ignore_errors=True)
    costs = [float(str(each["us_per_content"])) for each in figures.values()]
    result = {**figures, "cost_growth": round(costs[-1] / costs[0], 2)}
    print(json.dumps({"imprint": result, "machine": machine()}, indent=2))


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.backfill", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000], help="how many contents")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(uvloop.run(measure(os.environ["BENCH_URL"], asked.measure))))
    else:
        uvloop.run(run(asked.rows))


if __name__ == "__main__":
    main()
