"""The operator's key is made once, is private, and is never empty."""

from pathlib import Path

import pytest

from imprint.store.operator_key import FILE, LEAST_LENGTH, operator_key


def test_the_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    """Two calls give the same key, and nobody else can read it."""
    key = operator_key(tmp_path)
    assert operator_key(tmp_path) == key
    assert len(key) >= LEAST_LENGTH
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("left", ["", "\n", "short"])
def test_what_a_power_cut_has_left_is_no_key(tmp_path: Path, left: str) -> None:
    """An empty or cut key is replaced: it would let everybody in."""
    (tmp_path / FILE).write_text(left)
    key = operator_key(tmp_path)
    assert len(key) >= LEAST_LENGTH
    assert operator_key(tmp_path) == key
