"""Keys are made by the server, in one form, and nothing else passes for one."""

from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from imprint.blobs.key import BadKey, checked, checked_prefix, is_key, new_key

KEYS = st.uuids().map(lambda one: f"{one.hex[:2]}/{one.hex[2:4]}/{one.hex}")


def test_new_keys_are_keys_and_differ() -> None:
    """Ten thousand keys are all keys, and no two are the same."""
    keys = {new_key() for _ in range(10_000)}
    assert len(keys) == 10_000
    assert all(is_key(key) for key in keys)


def test_keys_spread_over_the_folders() -> None:
    """A few thousand keys use every folder of the first level."""
    assert len({new_key()[:2] for _ in range(5_000)}) == 256


@given(KEYS)
def test_every_key_passes(key: str) -> None:
    """Whatever the random digits are, the key is one, and stays inside its folder."""
    assert checked(key) == key
    assert checked_prefix(key[:2]) == key[:2]
    assert checked_prefix(key[:5]) == key[:5]
    assert len(PurePosixPath(key).parts) == 3


@given(st.text())
@example("..")
@example("../" * 12)
@example("ab/cd/abcd" + "0" * 28 + "\n")
@example("\uff41\uff42/cd/abcd" + "0" * 28)
def test_no_other_text_passes(text: str) -> None:
    """Random text is not a key, however it was made."""
    assert not is_key(text)
    with pytest.raises(BadKey) as refused:
        checked(text)
    assert len(refused.value.sentence) < 100


@given(KEYS, st.data())
def test_no_key_with_one_character_changed_into_something_else_passes(key: str, data: st.DataObject) -> None:
    """One character that is not a digit in its place, one more or one less: refused."""
    at = data.draw(st.integers(0, len(key) - 1))
    other = data.draw(st.characters(exclude_characters="0123456789abcdef/"))
    assert not is_key(key[:at] + other + key[at + 1 :])
    assert not is_key(key[:at] + other + key[at:])
    assert not is_key(key[:at] + key[at + 1 :])
    assert not is_key(key + other)


@given(KEYS, st.integers(0, 4), st.sampled_from("0123456789abcdef"))
def test_the_folders_belong_to_the_name(key: str, at: int, digit: str) -> None:
    """A name in the folder of another is refused: one object has one place."""
    moved = key[:at] + digit + key[at + 1 :]
    assert is_key(moved) == (moved == key)
