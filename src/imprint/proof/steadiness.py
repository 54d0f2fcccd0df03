"""Steadiness: whether what a process holds stays as it is, by the slope of a line through samples of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The first part is spent on warming up: pools fill, modules load, caches find their size.
WARM = 0.4
# Shorter than this nobody can tell growth from chance; the slope is said all the same.
LONG_ENOUGH = 180.0
MINUTE = 60.0


@dataclass(frozen=True)
class Bound:
    """By how much something may grow from the warm state to the end: so many, or this part of what it was."""

    by: float
    part: float = 0.0


BOUNDS: Mapping[str, Bound] = {
    "worker_mb": Bound(4, 0.03),
    "api_mb": Bound(4, 0.03),
    "worker_files": Bound(4),
    "api_files": Bound(4),
    "connections": Bound(2),
}


@dataclass(frozen=True)
class Sample:
    """What was held at a moment, by its name; what could not be seen then is not in it."""

    at: float
    held: Mapping[str, float]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Give the slope of the line that fits points best, by least squares."""
    count = len(points)
    mean_x, mean_y = (sum(each) / count for each in zip(*points, strict=True))
    width = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / width if width else 0.0


def steadiness(samples: Sequence[Sample]) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Say of everything what it was when warm, what it was in the end, how it grew a minute; and what grew too much."""
    began, ended = samples[0].at, samples[-1].at
    warm = began + (ended - began) * WARM
    told: dict[str, dict[str, float]] = {}
    wrong: list[str] = []
    for name, bound in BOUNDS.items():
        points = [(each.at, each.held[name]) for each in samples if each.at >= warm and name in each.held]
        if len(points) < 2:  # noqa: PLR2004 - no line through one
            wrong.append(f"nobody saw {name}")
            continue
        steep = slope(points)
        seconds = points[-1][0] - points[0][0]
        middle = sum(y for _, y in points) / len(points)
        first, last = middle - steep * seconds / 2, middle + steep * seconds / 2
        told[name] = {"warm": round(first, 1), "end": round(last, 1), "per_minute": round(steep * MINUTE, 3)}
        if seconds >= LONG_ENOUGH and last - first > max(bound.by, bound.part * first):
            wrong.append(f"{name} grew from {first:.1f} to {last:.1f}")
    return told, wrong
