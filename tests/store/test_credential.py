"""Sealed sign-ins open for their own row with their own key and for nothing else; the key file is always whole."""

import asyncio
import os
import stat
import traceback
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from imprint.problem import Unavailable
from imprint.store.credential import MissingKey, Sealed, Unopenable, seal, unseal
from imprint.store.key_ring import Key, KeyRing, grow, load, shrink

CANARY = SecretStr("canary-of-the-vault")
RING = KeyRing((Key.of(b"1" * 32), Key.of(b"2" * 32)))
ROW = UUID(int=7)


@given(text=st.text(), row=st.uuids(), purpose=st.sampled_from(["credential", "errand"]))
def test_what_was_sealed_opens(text: str, row: UUID, purpose: str) -> None:
    """For its row and purpose; with the ring it was sealed with, however it has grown since."""
    text = text.encode(errors="replace").decode()
    sealed = seal(RING, row, purpose, SecretStr(text))
    assert sealed.key_id == RING.newest.id
    grown = KeyRing((Key.of(b"3" * 32), *RING.keys))
    assert unseal(grown, row, purpose, sealed).get_secret_value() == text


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_changed_bit_is_noticed(place: int, bit: int) -> None:
    """Anywhere in the sealed text or its nonce."""
    sealed = seal(RING, ROW, "credential", CANARY)
    whole = bytearray(sealed.nonce + sealed.sealed)
    whole[place % len(whole)] ^= 1 << bit
    with pytest.raises(Unopenable) as refused:
        unseal(RING, ROW, "credential", Sealed(sealed.key_id, bytes(whole[:12]), bytes(whole[12:])))
    assert refused.value.code == "credential.changed"


def test_a_sealed_text_belongs_to_its_row_its_purpose_and_its_key() -> None:
    """Swapped rows, another purpose, another key under the same name, a key that is gone: each is refused."""
    sealed = seal(RING, ROW, "credential", CANARY)
    for row, purpose in ((uuid4(), "credential"), (ROW, "errand")):
        with pytest.raises(Unopenable):
            unseal(RING, row, purpose, sealed)
    wrong = KeyRing((replace(RING.newest, secret=b"9" * 32),))
    with pytest.raises(Unopenable):
        unseal(wrong, ROW, "credential", sealed)
    with pytest.raises(MissingKey, match="not in the key file"):
        unseal(KeyRing((Key.of(b"4" * 32),)), ROW, "credential", sealed)
    with pytest.raises(Unopenable):
        unseal(RING, ROW, "credential", replace(sealed, sealed=sealed.sealed[:-1]))


def test_the_same_secret_never_looks_the_same() -> None:
    """The nonce is new each time."""
    assert len({seal(RING, ROW, "credential", CANARY).sealed for _ in range(100)}) == 100


def test_nothing_shows_the_secret() -> None:
    """Neither what is sealed, nor a ring, nor an error."""
    sealed = seal(RING, ROW, "credential", CANARY)
    try:
        unseal(RING, uuid4(), "credential", sealed)
    except Unopenable as error:
        told = "".join(traceback.format_exception(error))
    shown = repr((sealed, RING, RING.newest, CANARY)) + told + str(sealed)
    assert CANARY.get_secret_value() not in shown
    assert "1111" not in shown


def test_the_ring_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    """At the first need; a second look finds the same."""
    file = tmp_path / "home" / "keys"
    made = load(file)
    assert load(file) == made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == ["keys"]


async def test_two_that_start_at_once_share_one_ring(tmp_path: Path) -> None:
    """Whoever comes second goes on with the other's."""
    file = tmp_path / "keys"
    rings = await asyncio.gather(*(asyncio.to_thread(load, file) for _ in range(16)))
    assert len(set(rings)) == 1


def test_a_ring_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """With the command that mends it."""
    file = tmp_path / "keys"
    load(file)
    file.chmod(0o644)
    with pytest.raises(Unavailable, match="chmod 600"):
        load(file)


@pytest.mark.parametrize("text", ["", "short", "x" * 43 + "\n" + "y" * 42, "ä" * 43])
def test_a_damaged_file_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    """What is in it may be most of a key."""
    file = tmp_path / "keys"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(Unavailable) as refused:
        load(file)
    assert refused.value.code == "keys.damaged"
    assert not text or text[:20] not in refused.value.sentence


def test_grow_and_shrink(tmp_path: Path) -> None:
    """A new key comes first; only what is neither newest nor needed goes."""
    file = tmp_path / "keys"
    first = load(file)
    second = grow(file)
    third = grow(file)
    assert [key.id for key in third.keys[1:]] == [key.id for key in second.keys]
    assert len({key.id for key in third.keys}) == 3
    left = shrink(file, {first.newest.id})
    assert left == load(file) == KeyRing((third.newest, first.newest))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_write_that_is_cut_off_leaves_the_old_ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is written aside first."""
    file = tmp_path / "keys"
    before = load(file)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("imprint.store.key_ring.os.fsync", full)
    with pytest.raises(Unavailable):
        grow(file)
    monkeypatch.undo()
    assert load(file) == before
    assert os.listdir(tmp_path) == ["keys"]  # noqa: PTH208 - names are enough
