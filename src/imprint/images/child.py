"""The child: a process that knows one image at a time and nothing else, `python -m imprint.images.child`.

It gets requests and open files over a socket, and answers there; it opens nothing by itself.
"""

import json
import os
import resource
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from imprint.images.bounds import Bounds
from imprint.images.confine import allow_time, confine, end_time, leave_network
from imprint.images.facts import Facts
from imprint.images.fit import Found, Limits, Way, fits, search, ways
from imprint.images.recipes import FULL, Recipe
from imprint.images.refusal import Refusal

if TYPE_CHECKING:
    from imprint.images.vips import Original, Picture

MOST_FILES = 16
MESSAGE_BYTES = 1 << 16


def main() -> None:
    """Serve images over the socket whose descriptor is handed in, until its other end is closed."""
    link = socket.socket(fileno=int(sys.argv[1]))
    bounds = Bounds(**json.loads(sys.argv[2]))
    walls = leave_network()  # before vips, whose threads would make it impossible
    from imprint.images import vips  # noqa: PLC0415

    vips.allow_only_known_types()
    peak = _Peak()
    walls += confine(bounds)
    _send(link, {"walls": walls})
    while request := _receive(link):
        asked, files = request
        allow_time(bounds)
        try:
            answer = _answer(asked, vips.Original(files[0], bounds), files[1:])
        except Refusal as refusal:
            answer = {"refused": refusal.code}
        except MemoryError:
            answer = {"refused": "image.too_much_memory"}
        finally:
            end_time()
            for file in files:
                os.close(file)
        _send(link, {**answer, "peak_bytes": peak.bytes()})


def _answer(asked: dict[str, Any], original: "Original", files: Sequence[int]) -> dict[str, Any]:
    match asked["do"]:
        case "look":
            return {"facts": asdict(original.facts)}
        case "make":
            return {"made": _make(original, [Recipe(**recipe) for recipe in asked["recipes"]], files)}
        case _:
            limits = Limits(**{**asked["limits"], "types": frozenset(asked["limits"]["types"])})
            return {"facts": asdict(original.facts), "made": _fit(original, limits, files[0])}


def _make(original: "Original", recipes: Sequence[Recipe], files: Sequence[int]) -> list[dict[str, Any]]:
    """Decode once for all stills and once for all animations, each size from the next larger one."""
    made: dict[int, dict[str, Any]] = {}
    pictures: dict[bool, Picture] = {}
    for at in sorted(range(len(recipes)), key=lambda at: -recipes[at].edge):
        recipe = recipes[at]
        animated = recipe.animates(original.facts)
        picture = (
            pictures[animated].within(recipe.edge)
            if animated in pictures
            else original.picture(recipe.edge, recipe.edge, exactly=False, animated=animated)
        )
        pictures[animated] = picture
        data = picture.encoded(recipe.type, recipe.quality, recipe.effort)
        made[at] = _written(files[at], data, _facts(recipe.type, picture, len(data)))
    return [made[at] for at in range(len(recipes))]


def _fit(original: "Original", limits: Limits, file: int) -> dict[str, Any] | None:
    """Write the largest rendition within limits; None when the original is."""
    if fits(original.facts, limits):
        return None
    for way in ways(original.facts, limits, FULL.animated_pixels):
        largest = original.picture(way.width, way.height, exactly=True, animated=way.animated)
        found = _search(way, limits.bytes, largest)
        if found is not None:
            smallest = largest.exactly(found.width, found.height)
            return _written(file, found.data, _facts(way.type, smallest, len(found.data)))
    raise Refusal("image.cannot_fit")


def _search(way: Way, limit: int | None, largest: "Picture") -> Found | None:
    def encode(width: int, height: int, quality: int) -> bytes:
        return largest.exactly(width, height).encoded(way.type, quality, FULL.effort)

    return search(way, limit, encode)


def _facts(kind: str, picture: "Picture", size: int) -> Facts:
    has_alpha = picture.has_alpha and kind != "image/jpeg"
    return Facts(kind, picture.width, picture.height, picture.frames, has_alpha, 1, size)


def _written(file: int, data: bytes, facts: Facts) -> dict[str, Any]:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
    return asdict(facts)


class _Peak:
    """The most memory this process ever had; its file is opened while files can be."""

    def __init__(self) -> None:
        try:
            self._status: int | None = os.open("/proc/self/status", os.O_RDONLY)
        except OSError:
            self._status = None

    def bytes(self) -> int:
        """Read it; ru_maxrss would tell the parent's, where that was larger."""
        if self._status is None:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _, _, after = os.pread(self._status, MESSAGE_BYTES, 0).partition(b"VmHWM:")
        return int(after.split(maxsplit=1)[0]) * 1024


def _receive(link: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    said, files, _, _ = socket.recv_fds(link, MESSAGE_BYTES, MOST_FILES)
    while said and not said.endswith(b"\n"):
        said += link.recv(MESSAGE_BYTES)
    return (json.loads(said), files) if said else None


def _send(link: socket.socket, message: dict[str, Any]) -> None:
    link.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main()
