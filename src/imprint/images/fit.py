"""Fit: a rendition within limits of bytes, pixels and types; made only when the original is not.

Pure: what decides and what searches is here, what encodes is handed in.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt, sqrt

from imprint.images.facts import Facts
from imprint.images.sniff import GIF, JPEG, PNG, TIFF, WEBP

VERSION = 1

# The best quality is one that people do not tell from the original; below the least, fewer pixels look better.
BEST, LEAST = 90, 70
MOST_ENCODES = 12
# Refine what fits only while this much of the allowed bytes is unused.
GOOD_ENOUGH = 0.85
# Bytes grow a little slower than pixels, so aim below the limit.
AIM = 0.93
LONGEST_EDGE = {WEBP: 16_383, JPEG: 65_500, PNG: 65_535, GIF: 65_535}
LOSSLESS = frozenset({PNG, GIF, TIFF})
ANIMATED = (WEBP, GIF)
TRANSPARENT = frozenset({WEBP, PNG, GIF})


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
    """Find the largest encoding within a number of bytes, in a dozen encodes at most; encode(width, height, quality).

    Pixels go before quality: quality falls to the least that looks good, only then the size shrinks.
    """
    lossy = way.type in (WEBP, JPEG)
    width, height, quality = way.width, way.height, BEST
    found: Found | None = None
    too_large = 1.0  # the scale known not to fit
    scale = 1.0
    for turn in range(MOST_ENCODES):
        data = encode(width, height, quality)
        if limit is None or len(data) <= limit:
            found = Found(width, height, data)
            if limit is None or turn == 0 or len(data) >= limit * GOOD_ENOUGH:
                return found
            if scale == 1.0:
                return _better(found, limit, encode)
            low, high = scale, too_large
            scale = min(low * sqrt(limit * AIM / len(data)), (low + high) / 2)
        elif way.once:
            return None
        elif lossy and turn == 0:
            quality = LEAST
        else:
            too_large = scale
            if found is not None:
                return found  # it was refined once too often; what fitted before is near enough
            if (width, height) == (1, 1):
                return None
            # Halved at least when bytes no longer follow pixels: a file has parts that do not shrink.
            scale *= min(0.97, max(0.1, sqrt(limit * AIM / len(data))) if turn < MOST_ENCODES // 2 else 0.25)
        width, height = _scaled(way.width, way.height, scale)
    return found


def _better(found: Found, limit: int, encode: Encode) -> Found:
    """Raise the quality of what fits at the least one, by halving what lies between."""
    low, high = LEAST, BEST
    for _ in range(2):
        middle = (low + high) // 2
        data = encode(found.width, found.height, middle)
        if len(data) <= limit:
            low, found = middle, Found(found.width, found.height, data)
        else:
            high = middle
    return found


def _scaled(width: int, height: int, scale: float) -> tuple[int, int]:
    return max(1, int(width * scale + 1e-9)), max(1, int(height * scale + 1e-9))


def _within(width: int, height: int, pixels: int) -> tuple[int, int]:
    """Shrink to a number of pixels; an edge that is already one pixel leaves all of it to the other."""
    narrow, wide = _scaled(width, height, sqrt(pixels / (width * height)))
    if narrow * wide > pixels:
        narrow, wide = min(narrow, pixels // wide or 1), min(wide, pixels // min(narrow, pixels // wide or 1) or 1)
    if narrow * wide > pixels:
        narrow = wide = max(1, isqrt(pixels))
    return narrow, wide
