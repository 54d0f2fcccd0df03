"""Figures: percentiles, ratios and the one JSON object every bench prints."""

import json
from collections.abc import Mapping, Sequence
from math import ceil
from statistics import median

from bench.machine import machine

Figures = Mapping[str, object]

LESS_IS_BETTER = ("_ms", "_s", "_mb", "_percent")
MORE_IS_BETTER = "_per_s"
# Enqueue and drain this often: one round of 10,000 jobs takes a second, and varies by a third on a shared machine.
ROUNDS = 5


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed (nearest rank)."""
    if not values:
        raise ValueError("no values, no percentile")
    return sorted(values)[max(ceil(share * len(values)), 1) - 1]


def latency(milliseconds: Sequence[float], name: str = "") -> dict[str, float]:
    """Sum up latencies as p50 and p99; a name goes in front of both keys."""
    return {
        f"{name}p50_ms": round(percentile(milliseconds, 0.50), 3),
        f"{name}p99_ms": round(percentile(milliseconds, 0.99), 3),
    }


def rate(count: int, rounds: Sequence[float], name: str) -> dict[str, object]:
    """Sum up how many a second, from the seconds each round took: the median, and the slowest and fastest round."""
    each = sorted(count / seconds for seconds in rounds)
    return {f"{name}_per_s": round(median(each)), f"{name}_range": [round(each[0]), round(each[-1])]}


def ratio(ours: Figures, theirs: Figures) -> dict[str, object]:
    """Compare every figure both have; above 1 = we are better, whichever way the figure counts.

    Figures within a peer's figures are the same peer, set up in another way: we are compared with those as well.
    """
    compared: dict[str, object] = {}
    for key, other in theirs.items():
        value = ours.get(key)
        if isinstance(other, Mapping):
            if within := ratio(ours, other):
                compared[key] = within
        elif isinstance(value, int | float) and isinstance(other, int | float) and value and other:
            if key.endswith(MORE_IS_BETTER):
                compared[key] = round(value / other, 2)
            elif key.endswith(LESS_IS_BETTER):
                compared[key] = round(other / value, 2)
    return compared


def show(imprint: Figures, peers: Mapping[str, Figures | str]) -> None:
    """Print the one object: our figures, each peer's (or why it has none), how they compare, and the machine."""
    compared = {name: ratio(imprint, peer) for name, peer in peers.items() if not isinstance(peer, str)}
    print(json.dumps({"imprint": imprint, **peers, "ratio": compared, "machine": machine()}, indent=2))
