"""A platform is a name: nobody outside its own files knows it but the registry."""

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "imprint"
# The sandbox that stands beside Imprint is a blog, and says so.
BESIDES = {"wordpress": {"sandbox/standing.py"}}


@pytest.mark.parametrize("name", ["bluesky", "mastodon", "wordpress"])
def test_nobody_else_knows_a_platform(name: str) -> None:
    """It can be added, and taken away, with its own files, one line and one page."""
    imported = re.compile(rf"imprint\.(?:platforms|sandbox)(?:\.| import .*\b){name}")
    own = {path for room in ("platforms", "sandbox") for path in (SOURCE / room).glob(f"{name}*.py")}
    allowed = own | {SOURCE / "platforms" / "registry.py"} | {SOURCE / each for each in BESIDES.get(name, ())}
    text = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    # What the program does never asks for a name; its proofs and its examples may.
    acts = {path for room in ("work", "engine", "decisions", "store") for path in (SOURCE / room).rglob("*.py")}
    found = {path for path in text if imported.search(text[path]) or (path in acts and f'"{name}"' in text[path])}
    assert {str(path.relative_to(SOURCE)) for path in found - allowed} == set()
