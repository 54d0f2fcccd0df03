"""Pillow does the same work; reads one request per line, answers with the seconds it took.

`plain` is how its documentation does it: open, turn upright, a thumbnail of a copy for each size.
`tuned` is the fastest that was found: the JPEG decoder shrinks, each size comes from the next larger one.
"""

import io
import json
import sys
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from PIL import Image, ImageCms, ImageOps  # type: ignore[import-not-found,unused-ignore] # in a folder of its own

SRGB = ImageCms.createProfile("sRGB")


def work(task: tuple[str, str, list[dict[str, Any]], str]) -> float:
    """Make all variants of one original; give the processor's seconds."""
    name, way, recipes, folder = task
    began = process_time()
    opened = Image.open(name)
    largest = max(recipe["edge"] for recipe in recipes)
    if way == "tuned":
        opened.draft("RGB", (largest, largest))
    image = ImageOps.exif_transpose(opened)
    for recipe in sorted(recipes, key=lambda recipe: -int(recipe["edge"])):
        edge = recipe["edge"]
        small = image.copy() if way == "plain" else image
        if max(small.size) > edge:
            small.thumbnail((edge, edge), Image.Resampling.LANCZOS)
        if way == "tuned":
            image = small
        save(_in_srgb(small), recipe, Path(folder) / f"{Path(name).stem}-{recipe['variant']}.webp")
    return process_time() - began


def save(image: Any, recipe: dict[str, Any], path: Path) -> None:
    """Encode without metadata."""
    image.save(path, "WEBP", quality=recipe["quality"], method=recipe["effort"], icc_profile=None, exif=b"")


def _in_srgb(image: Any) -> Any:
    profile = image.info.pop("icc_profile", None)
    if profile is None:
        return image
    return ImageCms.profileToProfile(image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), SRGB, inPlace=True) or image


def main() -> None:
    """Answer requests until there are no more."""
    with get_context("forkserver").Pool(int(sys.argv[1])) as pool:
        pool.map(abs, range(int(sys.argv[1])))  # all are up before the clock starts
        for line in sys.stdin:
            asked = json.loads(line)
            tasks = [(name, asked["way"], asked["recipes"], asked["folder"]) for name in asked["files"]]
            began = perf_counter()
            cpu = sum(pool.imap_unordered(work, tasks))
            print(json.dumps({"seconds": perf_counter() - began, "cpu_seconds": cpu}), flush=True)


if __name__ == "__main__":
    main()
