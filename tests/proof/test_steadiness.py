"""Steadiness: a slope is what it is, growth is seen, and what only goes up and down is none."""

import math

import pytest

from imprint.proof.steadiness import BOUNDS, Sample, slope, steadiness

FLAT = {"worker_mb": 80.0, "api_mb": 90.0, "worker_files": 30.0, "api_files": 20.0, "connections": 25.0}


def samples(seconds: int, **growth: float) -> list[Sample]:
    """Sample once a second; what is named grows by so much a minute, everything goes up and down a little."""
    return [
        Sample(at, {name: held + growth.get(name, 0) * at / 60 + math.sin(at) for name, held in FLAT.items()})
        for at in range(seconds)
    ]


def test_the_slope_of_a_line_is_its_own() -> None:
    """Points on a line give its slope; a single moment gives none."""
    assert slope([(x, 3 * x + 7) for x in range(10)]) == pytest.approx(3)
    assert slope([(1, 5), (1, 9)]) == 0


def test_what_goes_up_and_down_is_flat() -> None:
    """Everything is told, with what it was when warm and what in the end."""
    told, wrong = steadiness(samples(600))
    assert wrong == []
    assert set(told) == set(BOUNDS)
    assert told["worker_mb"]["warm"] == pytest.approx(80, abs=0.5)
    assert told["worker_mb"]["per_minute"] == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("name", BOUNDS)
def test_what_grows_is_seen(name: str) -> None:
    """Two a minute of anything are too many in ten minutes, and only that is named."""
    told, wrong = steadiness(samples(600, **{name: 2.0}))
    assert [each.partition(" ")[0] for each in wrong] == [name]
    assert told[name]["per_minute"] == pytest.approx(2, abs=0.1)


def test_what_is_short_is_not_judged_and_what_nobody_saw_is_wrong() -> None:
    """A minute tells growth from chance badly; a process that was never there is no flat one."""
    assert steadiness(samples(60, worker_mb=2.0))[1] == []
    blind = [Sample(each.at, {**each.held, "api_mb": 1} if each.at < 2 else FLAT) for each in samples(60)]
    gone = [Sample(each.at, {name: held for name, held in each.held.items() if name != "api_mb"}) for each in blind]
    assert steadiness(gone)[1] == ["nobody saw api_mb"]
