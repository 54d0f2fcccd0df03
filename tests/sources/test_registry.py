"""The registry: every source by its own name."""

import pytest

from imprint.problem import Problem
from imprint.sources.registry import SOURCES, source


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_is_found_by_its_name(name: str) -> None:
    """The line in the registry and the source agree on the name, with a base of its own or without."""
    assert source(name).name == source(name, "http://127.0.0.1:1/x").name == name


def test_a_source_that_is_not_there_is_a_problem_with_a_way_out() -> None:
    """The sentence names those that are."""
    with pytest.raises(Problem, match="feed, mangadex, mangapark"):
        source("mangasee")
