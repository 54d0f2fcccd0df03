"""The newest key signs, all verify; the ring of a home is made once and kept to its user."""

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr

from imprint.blobs.ring import FILE, Ring, load
from imprint.problem import Problem


def test_older_keys_still_verify() -> None:
    """After a new key was made the old signatures hold; after three they no longer do."""
    first = Ring.new()
    signature = first.sign(b"message")
    second = Ring.new(first)
    third = Ring.new(second)
    fourth = Ring.new(third)
    assert all(ring.verifies(b"message", signature) for ring in (first, second, third))
    assert not fourth.verifies(b"message", signature)
    assert not first.verifies(b"message", second.sign(b"message"))
    assert len({ring.sign(b"message") for ring in (first, second, third, fourth)}) == 4


def test_written_and_read() -> None:
    """A ring is the same after it was written and read, with spaces, lines or commas between its keys."""
    ring = Ring.new(Ring.new(Ring.new()))
    text = ring.written().get_secret_value()
    for between in (" ", ",", ", ", "\n"):
        assert Ring.parse(SecretStr(text.replace(" ", between))) == ring


@pytest.mark.parametrize("text", ["", " ", "short", "A" * 42, "A" * 44, "A" * 42 + "+", "A" * 43 + " " + "é" * 43])
def test_what_is_no_ring(text: str) -> None:
    """Keys that could be guessed or misread are refused, and not shown."""
    with pytest.raises(Problem) as refused:
        Ring.parse(SecretStr(text))
    assert refused.value.code == "upload.bad_keys"
    assert "AAAA" not in refused.value.sentence


def test_keys_are_not_shown() -> None:
    """A ring in a log line shows nothing of its keys."""
    ring = Ring.new()
    assert repr(ring.keys[0]) not in repr(ring)
    assert "keys" not in repr(ring)


async def test_a_home_has_one_ring(home: Path) -> None:
    """Many processes that start at once go on with the same ring, which only its user can read."""
    rings = await asyncio.gather(*(asyncio.to_thread(load, home) for _ in range(20)))
    assert len({ring.keys for ring in rings}) == 1
    assert [each.name for each in home.iterdir()] == [FILE]
    assert (home / FILE).stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_used(home: Path) -> None:
    """A home that is not there, or a file that is not a ring, is one sentence."""
    with pytest.raises(Problem) as refused:
        load(home / "nowhere")
    assert refused.value.code == "upload.no_keys"
    (home / FILE).write_text("")
    with pytest.raises(Problem) as refused:
        load(home)
    assert refused.value.code == "upload.bad_keys"
