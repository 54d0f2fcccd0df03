"""An upload URL is worth exactly what was granted, and every other URL is worth nothing."""

import string
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from imprint.blobs.key import new_key
from imprint.blobs.ring import Ring
from imprint.blobs.signing import _PURPOSE, BadUpload, Grant, LocalUploads, _letters, pack, unpack

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BASE = "https://imprint.example.org/api/uploads"
FOLDER = "/api/uploads/"
RING = Ring.new()
UPLOADS = LocalUploads(RING, BASE)

WORDS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=60)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "key": st.uuids().map(lambda one: f"{one.hex[:2]}/{one.hex[2:4]}/{one.hex}"),
    "size": st.integers(0, 5 * 1024**4),
    "content_type": st.tuples(WORDS, WORDS).map("/".join),
    "owner": WORDS,
    "expires": st.integers(1, 400_000_000).map(lambda seconds: NOW + timedelta(seconds=seconds)),
    "nonce": st.uuids().map(lambda one: one.hex),
    "method": st.sampled_from(["PUT", "POST", "GET", "PATCH"]),
}
GRANTS = st.builds(Grant, **FIELDS)


async def token(grant: Grant) -> str:
    """Sign, and give what comes after the folder."""
    url = await UPLOADS.url(grant, NOW)
    assert url.startswith(f"{BASE}/")
    return url.removeprefix(f"{BASE}/")


def refused(method: str, target: str, now: datetime = NOW) -> str:
    """See that a request is refused, and say with which code."""
    with pytest.raises(BadUpload) as found:
        UPLOADS.grant(method, target, now)
    return found.value.code


def some_grant() -> Grant:
    """Make an ordinary grant."""
    return Grant(new_key(), 1234, "image/png", "018f-owner", NOW + timedelta(hours=1))


def test_every_field_is_tried() -> None:
    """A field that is added to the grant is added to these tests."""
    assert set(FIELDS) == {each.name for each in fields(Grant)}


@given(GRANTS)
async def test_what_was_signed_is_read(grant: Grant) -> None:
    """Whatever was granted comes back the same, and the URL needs no escaping on its way."""
    signed = await token(grant)
    assert UPLOADS.grant(grant.method, FOLDER + signed, NOW) == grant
    assert set(signed) <= set(string.ascii_letters + string.digits + "-_.")


@given(GRANTS, st.sampled_from(sorted(FIELDS)), st.data())
async def test_no_field_can_be_changed(grant: Grant, name: str, data: st.DataObject) -> None:
    """Another grant, different in any one field, is refused with the signature of this one."""
    other = replace(grant, **{name: data.draw(FIELDS[name])})
    assume(other != grant)
    signature = (await token(grant)).partition(".")[2]
    assert refused(other.method, f"{FOLDER}{_letters(pack(other))}.{signature}") == "upload.refused"


@given(GRANTS, GRANTS)
def test_no_two_grants_are_written_the_same(one: Grant, other: Grant) -> None:
    """What is signed says one thing only: different grants are different bytes."""
    assert (pack(one) == pack(other)) == (one == other)
    assert unpack(pack(one)) == one


def test_letters_do_not_move_between_fields() -> None:
    """Two grants whose fields, one after the other, are the same letters differ in their bytes."""
    one = replace(some_grant(), content_type="a/bc", owner="d")
    other = replace(one, content_type="a/b", owner="cd")
    moved = replace(one, size=11, content_type="1a/b", owner="c")
    assert len({pack(one), pack(other), pack(moved)}) == 3


async def test_ten_thousand_mutated_urls() -> None:
    """Characters changed, added, removed, swapped and cut, ten thousand times: all refused."""
    random = Random(20301)  # noqa: S311 - repeatable, not secret
    letters = string.ascii_letters + string.digits + "-_./%?=&#+~ \0\n\u00e9\uff21"
    ways: list[Callable[[str, int], str]] = [
        lambda text, at: text[:at] + random.choice(letters) + text[at + 1 :],
        lambda text, at: text[:at] + random.choice(letters) + text[at:],
        lambda text, at: text[:at] + text[at + 1 :],
        lambda text, at: text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :],
        lambda text, at: text[:at] + text[at : at + 1].swapcase() + text[at + 1 :],
        lambda text, at: text[:at],
    ]
    tried = 0
    while tried < 10_000:
        target = mutated = FOLDER + await token(some_grant())
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            mutated = random.choice(ways)(mutated, random.randrange(len(mutated) + 1))
        if mutated != target:
            assert refused("PUT", mutated) == "upload.refused"
            tried += 1


async def test_every_last_letter_counts() -> None:
    """The last letter of a signature leaves two bits unused: only the one way to write it is accepted."""
    target = FOLDER + await token(some_grant())
    accepted = []
    for letter in string.ascii_letters + string.digits + "-_":
        try:
            UPLOADS.grant("PUT", target[:-1] + letter, NOW)
        except BadUpload:
            continue
        accepted.append(letter)
    assert accepted == [target[-1]]


@given(st.text())
def test_no_other_target_is_accepted(text: str) -> None:
    """Anything else that a server may be asked for is refused, and breaks nothing."""
    assert refused("PUT", text) == refused("PUT", FOLDER + text) == refused("PUT", f"{FOLDER}{text}.{'A' * 43}")


async def test_what_hangs_on_is_refused() -> None:
    """A query, a fragment, another folder or a slash more is another URL."""
    grant = some_grant()
    signed = await token(grant)
    for target in (
        *(f"{FOLDER}{signed}{tail}" for tail in ("?", "?a=b", "#", "/", "\n", "%20", "=", "==")),
        *(
            f"{folder}{signed}"
            for folder in ("/", "", "/api/uploads", "/api/Uploads/", "//api/uploads/", "/x/api/uploads/")
        ),
        f"{BASE}/{signed}",
        f"/api/uploads/../uploads/{signed}",
    ):
        assert refused("PUT", target) == "upload.refused"


async def test_time() -> None:
    """A URL is good until its time, by the clock of the caller, and a second later it is not."""
    grant = some_grant()
    target = FOLDER + await token(grant)
    assert UPLOADS.grant("PUT", target, grant.expires - timedelta(microseconds=1)) == grant
    assert refused("PUT", target, grant.expires) == "upload.expired"
    assert refused("PUT", target, grant.expires + timedelta(days=1)) == "upload.expired"
    with pytest.raises(BadUpload) as found:
        await UPLOADS.url(grant, grant.expires)
    assert found.value.code == "upload.expired"


async def test_method() -> None:
    """A URL for PUT is not one for anything else."""
    target = FOLDER + await token(some_grant())
    for method in ("GET", "POST", "DELETE", "HEAD", "put", "", "PUT "):
        assert refused(method, target) == "upload.refused"


async def test_keys_come_and_go() -> None:
    """URLs outlive the next key, and end with the key that signed them."""
    grant = some_grant()
    target = FOLDER + await token(grant)
    rings = [RING]
    for _ in range(3):
        rings.append(Ring.new(rings[-1]))
    assert LocalUploads(rings[2], BASE).grant("PUT", target, NOW) == grant
    for ring in (rings[3], Ring.new()):
        with pytest.raises(BadUpload):
            LocalUploads(ring, BASE).grant("PUT", target, NOW)


async def test_a_signature_for_something_else_does_not_fit() -> None:
    """The same bytes signed for another purpose, with the same key, are refused."""
    packed = pack(some_grant())
    for message in (packed, b"imprint session 1\0" + packed):
        assert refused("PUT", f"{FOLDER}{_letters(packed)}.{_letters(RING.sign(message))}") == "upload.refused"
    assert UPLOADS.grant("PUT", f"{FOLDER}{_letters(packed)}.{_letters(RING.sign(_PURPOSE + packed))}", NOW) == unpack(
        packed
    )


async def test_the_host_is_not_part_of_it() -> None:
    """Behind a proxy the same grant is reached under the folder the server sees."""
    grant = some_grant()
    for base in ("http://127.0.0.1:7600/api/uploads", "https://a.example/api/uploads/"):
        url = await LocalUploads(RING, base).url(grant, NOW)
        assert UPLOADS.grant("PUT", FOLDER + url.rpartition("/")[2], NOW) == grant


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "../../etc/passwd"},
        {"size": -1},
        {"size": 6 * 1024**4},
        {"content_type": "image"},
        {"content_type": "image/png\r\nX-Evil: 1"},
        {"content_type": "image/" + "x" * 101},
        {"content_type": "image/pñg"},
        {"owner": ""},
        {"owner": "a b"},
        {"owner": "x" * 201},
        {"nonce": "x" * 32},
        {"method": "put"},
        {"expires": datetime(2030, 1, 1)},  # noqa: DTZ001 - that is what is wrong with it
        {"expires": datetime(2030, 1, 1, 0, 0, 0, 1, tzinfo=UTC)},
    ],
)
def test_what_cannot_be_granted(wrong: dict[str, Any]) -> None:
    """What makes no sense, or could be read in two ways, is not signed in the first place."""
    with pytest.raises(BadUpload) as found:
        replace(some_grant(), **wrong)
    assert found.value.code == "upload.bad_request"


def test_no_two_grants_have_the_same_nonce() -> None:
    """Each grant is its own, also when the same is granted twice."""
    assert len({some_grant().nonce for _ in range(1000)}) == 1000
