"""Each platform has a page for people, which names all that it asks for, all that can be set, and what it promises."""

import re
from pathlib import Path

import pytest

from imprint.platforms.registry import PLATFORMS

PAGES = Path(__file__).parents[2] / "docs" / "platforms"


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_page_says_what_there_is_and_nothing_else(name: str) -> None:
    """Every question and option stands in a table, none is made up, and the promise is the one that is shipped."""
    platform, page = PLATFORMS[name], (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert f"imprint account add {name}" in page
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    told = {each for row in rows for each in re.findall(r"`(\w+)`", row)}
    options = {field.alias for field in platform.options.model_fields.values()}
    assert told == {ask.name for ask in platform.asks} | options
    assert platform.once.promise in " ".join(page.split())


def test_there_is_no_page_too_many() -> None:
    """A platform that is gone takes its page with it."""
    assert {page.stem for page in PAGES.glob("*.md")} == set(PLATFORMS)
