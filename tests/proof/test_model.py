"""The model: no interleaving breaks the promise, and every ablation is found to break it."""

import pytest

from imprint.proof.exploration import ABLATIONS, PLATFORMS, explore


@pytest.mark.parametrize("name", PLATFORMS)
def test_every_interleaving_keeps_the_promise(name: str) -> None:
    """Never twice, never stuck, never called out or over when it is not."""
    found = explore(PLATFORMS[name])
    assert found.states > 5000
    assert (found.duplicates, found.stuck, found.false_ends, found.example) == (0, 0, 0, ())


@pytest.mark.parametrize("name", ABLATIONS)
def test_the_model_can_fail(name: str) -> None:
    """Without one part of the protocol something comes out twice, and the model shows the way there."""
    found = explore(ABLATIONS[name])
    assert found.duplicates
    assert found.example[0] == "a worker claims"
    assert found.example[-1] == "a worker has its request taken"
