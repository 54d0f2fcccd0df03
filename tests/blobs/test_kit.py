"""The behaviour kit: what every store of bytes does, local disk, S3 and the twin in memory alike."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from imprint.blobs.key import BadKey, new_key
from imprint.blobs.store import Blobs, Exists, Missing, verified
from imprint.blobs.tally import Broken, Promise, Stored
from imprint.problem import Problem
from tests.blobs.conftest import Kind
from tests.blobs.family import child
from tests.blobs.stream import MB, cut, endless, noise, stream, whole

SOON = timedelta(minutes=5)
LARGE = 20 * MB  # more than one part, on S3


def future() -> datetime:
    """Give a time that everything is older than."""
    return datetime.now(UTC) + SOON


async def nothing_left(kind: Kind, key: str) -> None:
    """See that neither the store nor the disk behind it knows of anything."""
    assert await kind.blobs.stat(key) is None
    assert [found async for found in kind.blobs.walk()] == []
    assert [leftover async for leftover in kind.blobs.leftovers(future())] == []
    assert kind.files() == []


@pytest.mark.parametrize("size", [0, 1, 65_536, MB, 8 * MB, 8 * MB + 1, LARGE])
async def test_what_was_put_comes_back(blobs: Blobs, size: int) -> None:
    """An object of any size comes back as it was, and the store says what it is."""
    data = noise(size)
    key = new_key()
    stored = await blobs.put(key, cut(data), Promise(size, sha256(data).hexdigest()))
    assert stored == Stored(key, size, sha256(data).hexdigest())
    assert await whole(blobs, key) == data
    found = await blobs.stat(key)
    assert found
    assert (found.key, found.size) == (key, size)
    assert abs(found.modified - datetime.now(UTC)) < SOON
    assert found.etag
    assert await verified(blobs, key, Promise(size, stored.sha256)) == stored
    assert await blobs.accept(key, Promise(size, stored.sha256)) == stored


async def test_an_object_is_written_once(blobs: Blobs) -> None:
    """A second put is refused, whatever its size, and changes nothing."""
    key = new_key()
    await blobs.put(key, stream(b"first"))
    for second in (b"second", b"", noise(LARGE)):
        with pytest.raises(Exists) as refused:
            await blobs.put(key, cut(second))
        assert refused.value.code == "blob.exists"
    assert await whole(blobs, key) == b"first"


@pytest.mark.parametrize("size", [300_000, 9 * MB])
async def test_one_of_twenty_wins(blobs: Blobs, size: int) -> None:
    """Of twenty puts with one key at once, one wins, and the object is that one's, whole."""
    key = new_key()
    tries = await asyncio.gather(
        *(blobs.put(key, cut(noise(size + each, each))) for each in range(20)), return_exceptions=True
    )
    (won,) = [one for one in tries if isinstance(one, Stored)]
    lost = [one for one in tries if isinstance(one, Problem)]
    assert [one.code for one in lost] == ["blob.exists"] * 19
    assert await verified(blobs, key) == won
    assert [leftover async for leftover in blobs.leftovers(future())] == []


@pytest.mark.parametrize("size", [0, 1, 1000, LARGE])
async def test_a_broken_promise_leaves_nothing(kind: Kind, size: int) -> None:
    """Bytes that are too few, too many or not the ones that were promised are refused and not seen."""
    data, key = noise(size), new_key()
    right = sha256(data).hexdigest()
    for promise, code in (
        (Promise(size=size + 1), "blob.wrong_size"),
        (Promise(size + 1, right), "blob.wrong_size"),
        (Promise(sha256="0" * 64), "blob.wrong_hash"),
        (Promise(size, "f" * 64), "blob.wrong_hash"),
        *([(Promise(size=size - 1), "blob.wrong_size")] if size else []),
    ):
        with pytest.raises(Broken) as refused:
            await kind.blobs.put(key, cut(data), promise)
        assert refused.value.code == code
        await nothing_left(kind, key)
    assert (await kind.blobs.put(key, cut(data), Promise(size, right))).size == size


async def test_too_many_bytes_are_refused_as_they_come(blobs: Blobs) -> None:
    """Somebody who sends for ever is stopped a little after what was promised, not when the disk is full."""
    taken = 0

    async def forever() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += MB
            yield bytes(MB)

    with pytest.raises(Broken):
        await blobs.put(new_key(), forever(), Promise(size=3 * MB))
    assert taken < 10 * MB


@pytest.mark.parametrize("size", [1, LARGE])
async def test_a_source_that_fails_leaves_nothing(kind: Kind, size: int) -> None:
    """What the source of the bytes raises comes through as it is, also an OSError, which is not the store's."""

    async def failing() -> AsyncIterator[bytes]:
        yield noise(size)
        raise ConnectionResetError("the client has gone")

    key = new_key()
    with pytest.raises(ConnectionResetError, match="the client has gone"):
        await kind.blobs.put(key, failing())
    await nothing_left(kind, key)


@pytest.mark.parametrize("megabytes", [1, 30])
async def test_a_cancelled_put_leaves_nothing(kind: Kind, megabytes: int) -> None:
    """A put that is cancelled while it waits for bytes leaves neither an object nor anything to reap."""
    key, begun = new_key(), asyncio.Event()
    putting = asyncio.create_task(kind.blobs.put(key, endless(begun, megabytes)))
    await begun.wait()
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    await nothing_left(kind, key)


@pytest.mark.parametrize("size", [MB, LARGE])
async def test_a_put_is_cancelled_or_done(kind: Kind, size: int) -> None:
    """Cancelled at any moment, a put has either happened, and says so, or has not happened at all."""
    data = noise(size)
    for moment in range(24):
        key = new_key()
        putting = asyncio.create_task(kind.blobs.put(key, cut(data, MB)))
        await asyncio.sleep(moment * size / LARGE / 100)
        putting.cancel()
        try:
            stored = await putting
        except asyncio.CancelledError:
            await nothing_left(kind, key)
        else:
            assert await verified(kind.blobs, key) == stored
            await kind.blobs.delete(key)


async def test_a_killed_put_is_never_seen(kind: Kind) -> None:
    """After kill -9 in the middle of a put nothing is seen, and what was left can be found and reaped."""
    if not kind.address:
        pytest.skip("the twin dies with its process")
    key = new_key()
    async with child("hang", key, *kind.address) as other:
        assert await other.heard() == "begun"
        assert await kind.blobs.stat(key) is None
        await other.kill()
    assert await kind.blobs.stat(key) is None
    assert [found async for found in kind.blobs.walk()] == []
    assert [left async for left in kind.blobs.leftovers(datetime.now(UTC) - SOON)] == []
    assert await kind.blobs.reap(datetime.now(UTC) - SOON) == 0
    (leftover,) = [left async for left in kind.blobs.leftovers(future())]
    assert abs(leftover.modified - datetime.now(UTC)) < SOON
    assert await kind.blobs.reap(future()) == 1
    assert [left async for left in kind.blobs.leftovers(future())] == []
    assert (await kind.blobs.put(key, stream(b"again"))).size == 5


async def test_memory_does_not_grow_with_the_object(kind: Kind) -> None:
    """Writing and reading 200 MB takes no more memory than a few parts of it."""
    if not kind.address:
        pytest.skip("the twin keeps its objects in memory; that is what it is")
    async with child("measure", "200", *kind.address) as other:
        assert (await other.heard())["grown_mb"] < (24 if kind.name == "local" else 90)


async def test_ranges(blobs: Blobs) -> None:
    """A range is what a slice would be, also at and behind the end."""
    data, key = noise(3 * MB + 7), new_key()
    await blobs.put(key, cut(data))
    size = len(data)
    for start, end in (
        *((0, None), (0, 1), (5, 5), (1, None), (MB, MB + 1), (MB - 1, 2 * MB + 1)),
        *((size - 1, size), (size - 1, size + 10), (size, None), (size, size + 5), (size + 5, None), (0, size * 2)),
    ):
        assert await whole(blobs, key, start, end) == data[start:end]
    for start, end in ((-1, None), (5, 4)):
        with pytest.raises(Problem) as refused:
            await whole(blobs, key, start, end)
        assert refused.value.code == "blob.bad_range"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=2000), where=st.tuples(st.floats(0, 1.1), st.floats(0, 1.1)))
async def test_any_range_of_any_object(blobs: Blobs, data: bytes, where: tuple[float, float]) -> None:
    """Whatever the bytes and the range: as a slice."""
    key = new_key()
    await blobs.put(key, stream(data))
    start, end = sorted(round(each * len(data)) for each in where)
    assert await whole(blobs, key, start, end) == data[start:end]
    assert await whole(blobs, key) == data


async def test_a_chunk_is_never_the_whole(blobs: Blobs) -> None:
    """A large object is read in pieces of about a megabyte."""
    key = new_key()
    await blobs.put(key, cut(bytes(LARGE)))
    sizes = [len(chunk) async for chunk in blobs.read(key)]
    assert sum(sizes) == LARGE
    assert max(sizes) <= 2 * MB


async def test_a_reader_can_stop(blobs: Blobs) -> None:
    """Whoever has seen enough lets go, and nothing complains."""
    key = new_key()
    await blobs.put(key, cut(bytes(LARGE)))
    async for chunk in blobs.read(key):
        assert chunk
        break
    assert await whole(blobs, key, 0, 3) == b"\0\0\0"


async def test_what_is_not_there(blobs: Blobs) -> None:
    """An object that is not there is no error to ask for and to delete, and a clear one to read."""
    key = new_key()
    assert await blobs.stat(key) is None
    await blobs.delete(key)
    for start, end in ((0, None), (3, 7), (0, 0)):
        with pytest.raises(Missing) as refused:
            await whole(blobs, key, start, end)
        assert refused.value.code == "blob.missing"
    with pytest.raises(Missing):
        await verified(blobs, key)
    with pytest.raises(Missing):
        await blobs.accept(key, Promise())


async def test_delete(kind: Kind) -> None:
    """A deleted object is gone, twice if need be, and its bytes are too."""
    key, other = new_key(), new_key()
    await kind.blobs.put(key, stream(b"bytes"))
    await kind.blobs.put(other, stream(b"other"))
    await kind.blobs.delete(key)
    await kind.blobs.delete(key)
    assert await kind.blobs.stat(key) is None
    assert [found.key async for found in kind.blobs.walk()] == [other]
    assert len(kind.files()) == (0 if kind.name == "memory" else 1)


async def test_walk(blobs: Blobs) -> None:
    """Sixteen hundred objects are all found, each once, also by the folders of their keys."""
    keys = [new_key() for _ in range(1598)]
    keys += [f"00/00/0000{new_key()[-28:]}", f"00/0f/000f{new_key()[-28:]}"]
    gate = asyncio.Semaphore(16)

    async def one(key: str) -> None:
        async with gate:
            await blobs.put(key, stream(key.encode()))

    await asyncio.gather(*map(one, keys))
    found = [(each.key, each.size) async for each in blobs.walk()]
    assert sorted(found) == sorted((key, 38) for key in keys)
    for prefix in ("00", "00/00", "00/0f", keys[0][:2], keys[0][:5]):
        part = [each.key async for each in blobs.walk(prefix)]
        assert sorted(part) == sorted(key for key in keys if key.startswith(f"{prefix}/"))
    assert [each async for each in blobs.walk("zz"[:0])]


BAD = (
    *("", "/", ".", "..", "a", "ab/cd", "ab/cd/", "ab/cd/x", "../../etc/passwd", "/etc/passwd", "ab/cd/../../x"),
    *("objects/ab/cd/abcd" + "0" * 28, "ab/cd/abce" + "0" * 28, "AB/CD/ABCD" + "0" * 28),
    *(f"ab/cd/abcd{'0' * 28}{tail}" for tail in ("\n", "\0", "/", " ", "0", ".png", "%00", "\u200b")),
    *(f"ab/cd/abcd{'0' * 27}{digit}" for digit in ("\u0660", "\uff10", "\u00b2", "g", "\0", "/")),
    "a" * 100_000,
)


@pytest.mark.parametrize("key", BAD, ids=range(len(BAD)))
async def test_a_bad_key_is_refused(blobs: Blobs, key: str) -> None:
    """No operation takes a key that this program has not made."""
    with pytest.raises(BadKey) as refused:
        await blobs.put(key, stream(b"x"))
    assert refused.value.code == "blob.bad_key"
    with pytest.raises(BadKey):
        await blobs.stat(key)
    with pytest.raises(BadKey):
        await blobs.delete(key)
    with pytest.raises(BadKey):
        await whole(blobs, key)
    with pytest.raises(BadKey):
        await blobs.accept(key, Promise())
    with pytest.raises(BadKey):
        blobs.local_path(key)


@pytest.mark.parametrize(
    "prefix", ["/", "a", "abc", "ab/", "ab/c", "..", "ab/cd/", "ab/cd/ab", "AB", "ab\n", "objects"]
)
async def test_a_bad_prefix_is_refused(blobs: Blobs, prefix: str) -> None:
    """Listings go by the folders of keys and by nothing else."""
    with pytest.raises(BadKey):
        assert [found async for found in blobs.walk(prefix)]


async def test_a_usable_store_passes_its_check(kind: Kind) -> None:
    """A check finds nothing wrong with a store that is all right, and leaves nothing there."""
    await kind.blobs.check()
    assert kind.files() == []


async def test_every_flipped_bit_is_found(blobs: Blobs) -> None:
    """Bytes that differ from what was stored by one bit are told from it."""
    data = noise(5000)
    stored = await blobs.put(new_key(), stream(data))
    for bit in range(0, 40_000, 997):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        other = new_key()
        await blobs.put(other, stream(bytes(flipped)))
        with pytest.raises(Broken) as refused:
            await verified(blobs, other, Promise(stored.size, stored.sha256))
        assert refused.value.code == "blob.wrong_hash"
