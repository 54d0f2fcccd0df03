"""What only a store that speaks S3 has to cope with: servers that are away, wrong keys, URLs in clients' hands."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import httpx2
import obstore
import pytest
from pydantic import SecretStr

from imprint.blobs.key import new_key
from imprint.blobs.s3 import S3Blobs, S3Place, _endpoint
from imprint.blobs.signing import Grant, S3Uploads
from imprint.blobs.store import Missing, verified
from imprint.blobs.tally import Broken, Promise
from imprint.problem import Exit, Problem, Unavailable
from tests.blobs.conftest import Kind
from tests.blobs.rclone import Server, serving
from tests.blobs.stream import MB, cut, endless, noise, stream, whole

REFUSED = {400, 403}
LATER = timedelta(minutes=5)


@pytest.fixture
def s3(s3_kind: Kind) -> S3Blobs:
    """Give the store as what it is."""
    assert isinstance(s3_kind.blobs, S3Blobs)
    return s3_kind.blobs


async def everything_fails(blobs: S3Blobs, code: str) -> None:
    """See that every operation says the same one sentence."""

    async def listing() -> None:
        assert [found async for found in blobs.walk()] == []

    sentences = set()
    for operation in (
        blobs.put(new_key(), stream(b"bytes")),
        blobs.put(new_key(), cut(noise(9 * MB))),
        blobs.stat(new_key()),
        blobs.delete(new_key()),
        blobs.accept(new_key(), Promise()),
        whole(blobs, new_key()),
        whole(blobs, new_key(), 1, 2),
        listing(),
        blobs.reap(datetime.now(UTC)),
        blobs.check(),
        blobs.refuses_second_writers(),
    ):
        with pytest.raises(Unavailable) as refused:
            await operation
        assert refused.value.code == code
        assert refused.value.exit is Exit.UNAVAILABLE
        sentences.add(refused.value.sentence)
    (sentence,) = sentences
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 120


async def test_a_server_that_is_away() -> None:
    """A server that was stopped is one sentence, soon, whatever was asked of it."""
    with serving() as server:
        blobs = S3Blobs(server.place())
        await blobs.check()
    began = asyncio.get_running_loop().time()
    await everything_fails(blobs, "blob.unreachable")
    assert asyncio.get_running_loop().time() - began < 30


async def test_a_server_that_goes_away_in_the_middle() -> None:
    """A server that stops while it is sent an object ends the put; nobody waits for ever."""
    with serving() as server:
        blobs, begun = S3Blobs(server.place()), asyncio.Event()
        putting = asyncio.create_task(blobs.put(new_key(), cut(bytes(200 * MB), MB)))
        stuck = asyncio.create_task(blobs.put(new_key(), endless(begun, 20)))
        await begun.wait()
        await asyncio.sleep(0.1)
    with pytest.raises(Unavailable) as refused:
        await asyncio.wait_for(putting, 30)
    assert refused.value.code == "blob.unreachable"
    stuck.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(stuck, 30)


async def test_keys_that_do_not_open_it(s3_server: Server) -> None:
    """Wrong keys are told apart from a server that is away, and nobody sees them in what is said."""
    wrong = replace(s3_server.place(), secret_access_key=SecretStr("not-the-secret-of-anybody"))
    await everything_fails(S3Blobs(wrong), "blob.denied")
    assert "not-the-secret" not in repr(wrong)


async def test_a_bucket_that_is_not_there(s3_server: Server) -> None:
    """A bucket's name with a mistake in it is found by the check, and never taken for an empty store."""
    blobs = S3Blobs(replace(s3_server.place(), bucket="imprnt"))
    for operation in (blobs.check(), blobs.put(new_key(), stream(b"x")), blobs.reap(datetime.now(UTC))):
        with pytest.raises(Unavailable) as refused:
            await operation
        assert refused.value.code == "blob.no_bucket"
        assert "imprnt" in refused.value.sentence


async def test_plain_http_must_be_allowed(s3_server: Server) -> None:
    """Bytes and signatures do not travel in the open unless somebody has said so."""
    blobs = S3Blobs(replace(s3_server.place(), allow_http=False))
    with pytest.raises(Unavailable):
        await blobs.check()


async def test_the_environment_does_not_mix_in(
    s3_kind: Kind, s3_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other programs have set for Amazon does not change where our bytes go, or with which keys."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIASOMEBODYELSE0000",
        "AWS_SECRET_ACCESS_KEY": "theirs",
        "AWS_SESSION_TOKEN": "theirs",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_REGION": "eu-central-1",
        "AWS_BUCKET": "theirs",
        "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
    }.items():
        monkeypatch.setenv(name, value)
    assert s3_kind.address
    blobs = S3Blobs(s3_server.place(s3_kind.address[-1]))
    key = new_key()
    await blobs.put(key, stream(b"bytes"))
    monkeypatch.undo()
    assert await whole(s3_kind.blobs, key) == b"bytes"


async def test_it_is_known_when_a_server_takes_second_writers(s3: S3Blobs, s3_kind: Kind) -> None:
    """This server does not know `If-None-Match`, and the store finds out and says so."""
    assert await s3.refuses_second_writers() is False
    assert s3_kind.files() == []


def test_the_bucket_in_the_name_of_the_host() -> None:
    """Both styles of address are made from the same endpoint."""
    place = S3Place("mine", endpoint="https://s3.example.org:9000")
    assert _endpoint(place) == "https://s3.example.org:9000"
    assert _endpoint(replace(place, path_style=False)) == "https://mine.s3.example.org:9000"


def test_secrets_are_not_shown(s3_server: Server) -> None:
    """Neither the place nor the store shows the secret."""
    place = s3_server.place()
    assert place.secret_access_key
    secret = place.secret_access_key.get_secret_value()
    assert secret not in f"{place!r} {place} {S3Blobs(place)!r}"


def granted(key: str, data: bytes, expires: datetime) -> Grant:
    """Grant the upload of these bytes."""
    return Grant(key=key, size=len(data), content_type="image/png", owner="somebody", expires=expires)


@pytest.mark.parametrize("size", [0, 1000, 20 * MB])
async def test_a_client_uploads_and_is_accepted(s3: S3Blobs, s3_kind: Kind, size: int) -> None:
    """What a client PUTs is not an object until it was accepted; then it is, and nothing else stays."""
    now, data, key = datetime.now(UTC).replace(microsecond=0), noise(size), new_key()
    promise = Promise(size, sha256(data).hexdigest())
    url = await S3Uploads(s3).url(granted(key, data, now + LATER), now)
    with pytest.raises(Missing):
        await s3.accept(key, promise)
    async with httpx2.AsyncClient() as client:
        assert (await client.put(url, content=data)).status_code == 200
        assert await s3.stat(key) is None
        assert [found async for found in s3.walk()] == []
        assert len([left async for left in s3.leftovers(now + LATER)]) == 1
        stored = await s3.accept(key, promise)
        assert stored.size == size
        assert await whole(s3, key) == data
        assert len(s3_kind.files()) == 1
        assert await s3.accept(key, promise) == stored
        # The URL still works, and no longer reaches the object.
        assert (await client.put(url, content=b"something else")).status_code == 200
        assert await whole(s3, key) == data
        assert await s3.accept(key, promise) == stored
        assert len(s3_kind.files()) == 1


async def test_a_client_who_breaks_the_promise(s3: S3Blobs, s3_kind: Kind) -> None:
    """Other bytes than those that were promised are thrown away, and the client may try again."""
    now, data, key = datetime.now(UTC).replace(microsecond=0), noise(5000), new_key()
    promise = Promise(len(data), sha256(data).hexdigest())
    url = await s3.upload_url(key, LATER)
    async with httpx2.AsyncClient() as client:
        for wrong, code in (
            (data + b"x", "blob.wrong_size"),
            (data[1:], "blob.wrong_size"),
            (b"\0" + data[1:], "blob.wrong_hash"),
        ):
            assert (await client.put(url, content=wrong)).status_code == 200
            with pytest.raises(Broken) as refused:
                await s3.accept(key, promise)
            assert refused.value.code == code
            assert s3_kind.files() == []
        assert (await client.put(url, content=data)).status_code == 200
        assert (await s3.accept(key, promise)).sha256 == promise.sha256
    assert await s3.reap(now + LATER) == 0


async def test_an_object_survives_a_wrong_promise(s3: S3Blobs) -> None:
    """An object that was accepted before is not thrown away because somebody now expects another one."""
    stored = await s3.put(new_key(), stream(b"bytes"))
    with pytest.raises(Broken):
        await s3.accept(stored.key, Promise(size=4))
    assert await verified(s3, stored.key) == stored


async def test_accepting_goes_on_after_a_crash(s3: S3Blobs, s3_kind: Kind) -> None:
    """Killed between the copy and the end, the next one finishes the work."""
    key = new_key()
    async with httpx2.AsyncClient() as client:
        await client.put(await s3.upload_url(key, LATER), content=b"bytes")
    await obstore.copy_async(s3._store, f"temporary/incoming/{key}", f"objects/{key}")
    assert len(s3_kind.files()) == 2
    assert (await s3.accept(key, Promise(size=5))).size == 5
    assert len(s3_kind.files()) == 1


async def test_a_url_is_for_one_key_and_one_method(s3: S3Blobs, s3_kind: Kind) -> None:
    """The server refuses the URL for another key, another method or without its signature."""
    key, other = new_key(), new_key()
    url = await s3.upload_url(key, LATER)
    async with httpx2.AsyncClient() as client:
        assert (await client.put(url.replace(key, other), content=b"x")).status_code in REFUSED
        assert (await client.get(url)).status_code in REFUSED
        assert (await client.delete(url)).status_code in REFUSED
        assert (await client.put(url.partition("?")[0], content=b"x")).status_code in REFUSED
        assert (
            await client.put(url.replace("X-Amz-Expires=300", "X-Amz-Expires=3000"), content=b"x")
        ).status_code in REFUSED
    assert s3_kind.files() == []


async def test_a_url_expires(s3: S3Blobs) -> None:
    """After its time a URL is worth nothing; one whose time is over is not made."""
    url = await s3.upload_url(new_key(), timedelta(seconds=1))
    await asyncio.sleep(2.1)
    async with httpx2.AsyncClient() as client:
        assert (await client.put(url, content=b"x")).status_code in REFUSED
    now = datetime.now(UTC).replace(microsecond=0)
    with pytest.raises(Problem) as refused:
        await S3Uploads(s3).url(granted(new_key(), b"", now), now)
    assert refused.value.code == "upload.expired"
