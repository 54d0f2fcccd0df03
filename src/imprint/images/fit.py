"""Fit: a rendition within limits of bytes, pixels and types; made only when the original is not.

Pure: what decides and what searches is here, what encodes is handed in.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from imprint.images.facts import Facts
from imprint.images.sniff import GIF, JPEG, PNG, TIFF, WEBP

VERSION = 1

# The best quality is one that people do not tell from the original; below the least, fewer pixels look better.
BEST, LEAST = 90, 70
FINER_ENCODES = 2
SMALLER_ENCODES = 8
# Look for a larger one only while what fits leaves so much of the allowed bytes unused, and there is room between
# what fitted and what did not.
GOOD_ENOUGH = 0.85
CLOSE_ENOUGH = 0.05
# Bytes grow a little slower than pixels, so aim below the limit.
AIM = 0.93
LONGEST_EDGE = {WEBP: 16_383, JPEG: 65_500, PNG: 65_535, GIF: 65_535}
LOSSY = frozenset({WEBP, JPEG})
LOSSLESS = frozenset({PNG, GIF, TIFF})
ANIMATED = (WEBP, GIF)


@dataclass(frozen=True)
class Limits:
    """What a place takes; None is no limit."""

    types: frozenset[str]
    bytes: int | None = None
    edge: int | None = None
    pixels: int | None = None

    @property
    def variant(self) -> str:
        """Name the variant these limits ask for: the same limits, the same name."""
        said = json.dumps([sorted(self.types), self.bytes, self.edge, self.pixels])
        return f"fit-{hashlib.sha256(said.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Way:
    """One way to try: a type, how large at most, and whether all frames come along."""

    type: str
    width: int
    height: int
    animated: bool
    # Only at the full size and only once: there is another way that suits better than to shrink this one.
    once: bool = False


@dataclass(frozen=True)
class Found:
    """An encoding that fits."""

    width: int
    height: int
    data: bytes


Encode = Callable[[int, int, int], bytes]


def fits(facts: Facts, limits: Limits) -> bool:
    """Say whether an original is within limits as it is."""
    return (
        facts.type in limits.types
        and (limits.bytes is None or facts.size <= limits.bytes)
        and (limits.edge is None or facts.edge <= limits.edge)
        and (limits.pixels is None or facts.pixels <= limits.pixels)
    )


def largest(facts: Facts, limits: Limits, kind: str) -> tuple[int, int] | None:
    """Give the largest size of the same shape that a type and the limits allow; None when there is none."""
    edge = min(LONGEST_EDGE[kind], facts.edge if limits.edge is None else limits.edge)
    pixels = facts.pixels if limits.pixels is None else limits.pixels
    if edge < 1 or pixels < 1:
        return None
    width, height = _scaled(facts.width, facts.height, min(1.0, edge / facts.edge))
    if width * height > pixels:
        width, height = _within(facts.width, facts.height, pixels)
    return width, height


def ways(facts: Facts, limits: Limits, animated_pixels: int) -> list[Way]:
    """List the ways to try, the best first."""
    kind = _kind(facts, limits)
    size = None if kind is None else largest(facts, limits, kind)
    if kind is None or size is None:
        return []
    moving = facts.frames > 1 and kind in ANIMATED and size[0] * size[1] * facts.frames <= animated_pixels
    found = [Way(kind, *size, animated=moving)]
    exact = largest(facts, limits, PNG)
    # What was drawn without loss stays so if its bytes, guessed from the original's, may well fit.
    if not moving and facts.type in LOSSLESS and kind != PNG and PNG in limits.types and exact is not None:
        guess = facts.size * exact[0] * exact[1] / facts.pixels
        shrinks = exact != (facts.width, facts.height) or facts.type != PNG
        if shrinks and (limits.bytes is None or guess <= limits.bytes):
            found.insert(0, Way(PNG, *exact, animated=False, once=True))
    return found


def _kind(facts: Facts, limits: Limits) -> str | None:
    """Choose the type that loses least and can still be made smaller."""
    if facts.frames > 1:
        moving = [kind for kind in ANIMATED if kind in limits.types]
        if moving:
            return moving[0]
    if facts.has_alpha:
        order = [WEBP, PNG, GIF, JPEG]
    elif facts.type in (JPEG, WEBP):
        order = [facts.type, WEBP, JPEG, PNG, GIF]
    else:
        order = [WEBP, JPEG, PNG, GIF]
    return next((kind for kind in order if kind in limits.types), None)


def search(way: Way, limit: int | None, encode: Encode) -> Found | None:
    """Find the largest encoding within a number of bytes with few encodes; encode(width, height, quality).

    Pixels go before quality: quality falls to the least that looks good, only then the size shrinks.
    """
    data = encode(way.width, way.height, BEST)
    if limit is None or len(data) <= limit:
        return Found(way.width, way.height, data)
    if way.once:
        return None
    if way.type in LOSSY:
        data = encode(way.width, way.height, LEAST)
        if len(data) <= limit:
            return _finer(Found(way.width, way.height, data), limit, encode)
    return _smaller(way, limit, len(data), encode)


def _finer(found: Found, limit: int, encode: Encode) -> Found:
    """Raise the quality of what fits at the least one, by halving what lies between."""
    low, high = LEAST, BEST
    for _ in range(FINER_ENCODES):
        middle = (low + high) // 2
        data = encode(found.width, found.height, middle)
        if len(data) <= limit:
            low, found = middle, Found(found.width, found.height, data)
        else:
            high = middle
    return found


def _smaller(way: Way, limit: int, size: int, encode: Encode) -> Found | None:
    """Shrink until it fits: guess from the bytes of the last try, between what fitted and what did not."""
    found: Found | None = None
    fitted, failed, scale = 0.0, 1.0, 1.0
    for turn in range(SMALLER_ENCODES):
        room = failed - fitted
        guess = scale * sqrt(limit * AIM / size)
        scale = min(max(guess, fitted + room / 10), failed - room / 10)
        if found is None and turn > SMALLER_ENCODES // 2:
            scale = failed / 4  # bytes no longer follow pixels: a file has parts that do not shrink
        width, height = _scaled(way.width, way.height, scale)
        data = encode(width, height, LEAST)
        size = len(data)
        if size <= limit:
            fitted, found = scale, Found(width, height, data)
            if size >= limit * GOOD_ENOUGH:
                break
        else:
            failed = scale
            if (width, height) == (1, 1):
                break
        if found is not None and failed - fitted < CLOSE_ENOUGH * failed:
            break
    return found


def _scaled(width: int, height: int, scale: float) -> tuple[int, int]:
    return max(1, int(width * scale + 1e-9)), max(1, int(height * scale + 1e-9))


def _within(width: int, height: int, pixels: int) -> tuple[int, int]:
    """Shrink to a number of pixels; an edge that is down to one pixel leaves the rest to the other."""
    across, down = _scaled(width, height, sqrt(pixels / (width * height)))
    if across >= down:
        return min(across, pixels // down), down
    return across, min(down, pixels // across)
