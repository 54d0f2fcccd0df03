"""A store that speaks S3 (Amazon S3, Cloudflare R2, MinIO and others), through obstore.

Written once, as far as the server helps: an object of up to one part is one request with `If-None-Match: *`; a
larger one is uploaded in parts, whose completion obstore cannot make conditional, so its writer first claims the key
by such a request for a small marker. A server that does not know the condition (`refuses_second_writers` tells)
leaves a check before the write, and an order among the writers of one process. Keys are random and used for one
write, so two writers of one key are a mistake in the first place.

A request whose answer is lost may have worked all the same: its object then belongs to no row, and is collected.
"""

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4
from weakref import WeakValueDictionary

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store
from pydantic import SecretStr

from imprint.blobs.key import checked, checked_prefix, is_key
from imprint.blobs.settled import settled
from imprint.blobs.store import CHUNK, Exists, Found, Leftover, Missing, gathered, slice_of, verified
from imprint.blobs.tally import NOTHING_PROMISED, Broken, Promise, Stored, Tally
from imprint.problem import Busy, Problem, Unavailable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config, S3Credential, S3CredentialProvider  # types only, says obstore

_OBJECTS = "objects/"
_TEMPORARY = "temporary/"
_INCOMING = f"{_TEMPORARY}incoming/"
_CLAIMS = f"{_TEMPORARY}claims/"
_PART = 8 * 1024 * 1024
_MOST_PARTS = 9_000  # S3 takes 10,000; the last one may be small
_AT_ONCE = 3  # parts on their way together: memory is this many parts, whatever the size of the object
_CODE = re.compile(r"<Code>(\w+)</Code>")
_DENIED = {
    *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"),
    *("AuthorizationHeaderMalformed", "RequestTimeTooSkewed"),  # of another region, or by a wrong clock
}


@dataclass(frozen=True)
class S3Place:
    """Where a bucket is and how to get in; without keys, those of the environment or of the machine are used."""

    bucket: str
    endpoint: str | None = None
    region: str = "us-east-1"
    access_key_id: str | None = None
    secret_access_key: SecretStr | None = field(default=None, repr=False)
    prefix: str = ""
    path_style: bool = True
    allow_http: bool = False
    # How long a connection may be silent; a part that is being sent is silence too, so slow lines need much.
    patience: timedelta = timedelta(minutes=2)
    retries: int = 3


class S3Blobs:
    """Keeps objects in a bucket, under `objects/`, and what is on its way under `temporary/`."""

    def __init__(self, place: S3Place) -> None:
        self._place = place
        self._store = _store(place)
        self._writing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def put(self, key: str, chunks: AsyncIterable[bytes], promise: Promise = NOTHING_PROMISED) -> Stored:
        """Send what fits into one part as one request, and anything larger in parts."""
        path = _OBJECTS + checked(key)
        tally = Tally(promise)
        async with self._alone(key), aclosing(gathered(chunks)) as pieces:
            await self._must_be_free(path)
            head: list[bytes] = []
            async for piece in pieces:
                tally.add(piece)
                head.append(piece)
                if tally.size > _PART:
                    return await self._put_parts(key, head, pieces, tally, promise)
            stored = tally.stored(key)
            with self._explained():
                await settled(
                    obstore.put_async(self._store, path, b"".join(head), mode="create", use_multipart=False),
                    undo=lambda _: self._drop(path),
                )
            return stored

    async def _put_parts(
        self, key: str, head: list[bytes], pieces: AsyncIterable[bytes], tally: Tally, promise: Promise
    ) -> Stored:
        path = _OBJECTS + key
        await self._claim(key)
        parts = _Parts(self._store, path, promise.size or 0)
        try:
            while head:
                await self._give(parts, head.pop(0))
            async for piece in pieces:
                tally.add(piece)
                await self._give(parts, piece)
            stored = tally.stored(key)
            await self._must_be_free(path)  # somebody with a small object may have been faster meanwhile
            # Together with the claim: one who is told "cancelled" after this must find nothing there.
            await settled(self._finish(parts, key), undo=lambda _: self._drop(path))
        except BaseException:
            await parts.abandon()
            await self._unclaim(key)
            raise
        return stored

    async def _finish(self, parts: "_Parts", key: str) -> None:
        with self._explained():
            await parts.finish()
        await self._unclaim(key)

    async def _give(self, parts: "_Parts", piece: bytes) -> None:
        with self._explained():  # around this alone: what the source of the bytes raises is not the store's fault
            await parts.give(piece)

    async def accept(self, key: str, promise: Promise) -> Stored:
        """Copy what came by a signed URL to where no URL was ever signed for, then read the copy through.

        The copy first: whoever has the URL can use it again until it expires, also right after a check.
        """
        incoming, path = _INCOMING + checked(key), _OBJECTS + key
        async with self._alone(key):
            if await self._head(path):
                stored = await verified(self, key, promise)
                await self._drop(incoming)
                return stored
            found = await self._head(incoming)
            if not found:
                raise Missing
            try:
                promise.check_size(found.size)  # before a costly copy
                with self._explained():
                    await obstore.copy_async(self._store, incoming, path)
                stored = await verified(self, key, promise)
            except Broken:
                await self._drop(path)
                await self._drop(incoming)
                raise
            await self._drop(incoming)
            return stored

    async def upload_url(self, key: str, lifetime: timedelta) -> str:
        """Sign a URL by which a client can PUT; what comes is an object only once it was accepted."""
        with self._explained():
            return await obstore.sign_async(self._store, "PUT", _INCOMING + checked(key), lifetime)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Stream the answer to one request."""
        path = _OBJECTS + checked(key)
        with self._explained():
            if not start and end is None:
                answer = await obstore.get_async(self._store, path)
                async for chunk in answer.stream(min_chunk_size=CHUNK):
                    yield bytes(chunk)
                return
            # The size first: servers answer a range that ends behind the object in different ways.
            found = await self._head(path)
            if not found:
                raise Missing
            first, stop = slice_of(found.size, start, end)
            if first < stop:
                async for chunk in self._range(path, first, stop):
                    yield chunk

    async def _range(self, path: str, first: int, stop: int) -> AsyncIterator[bytes]:
        try:
            answer = await obstore.get_async(self._store, path, options={"range": (first, stop)})
        except GenericError as error:
            if "NotPartial" not in str(error):
                raise
            # Some servers (rclone 1.75, lakeFS) answer a range with 200 instead of 206, and obstore then rightly
            # trusts nothing. What is left is to begin at the beginning and to skip: slow, and never wrong.
            answer = await obstore.get_async(self._store, path)
        at, _ = answer.range
        async for chunk in answer.stream(min_chunk_size=CHUNK):
            if wanted := bytes(chunk[max(first - at, 0) : stop - at]):
                yield wanted
            at += len(chunk)
            if at >= stop:
                return

    async def stat(self, key: str) -> Found | None:
        """Ask for the head of it."""
        return await self._head(_OBJECTS + checked(key))

    async def delete(self, key: str) -> None:
        """Ask for its removal; S3 itself does not mind when there is none."""
        await self._drop(_OBJECTS + checked(key))

    async def walk(self, prefix: str = "") -> AsyncIterator[Found]:
        """Page through the listing."""
        async for found in self._listed(_OBJECTS + checked_prefix(prefix), _OBJECTS):
            if is_key(found.key):
                yield found

    async def leftovers(self, before: datetime) -> AsyncIterator[Leftover]:
        """Give uploads nobody has confirmed and claims of writers who are dead.

        The parts such a writer has sent are hidden, and obstore cannot list them: a rule of the bucket that aborts
        incomplete multipart uploads after a day removes them (R2 and MinIO have one from the start).
        """
        async for found in self._listed(_TEMPORARY, _TEMPORARY):
            if found.modified < before:
                yield Leftover(found.key, found.size, found.modified)

    async def reap(self, before: datetime) -> int:
        """Remove them."""
        count = 0
        async for leftover in self.leftovers(before):
            await self._drop(_TEMPORARY + leftover.name)
            count += 1
        return count

    async def check(self) -> None:
        """Ask for a listing: unlike the head of an object, it tells a wrong bucket from an empty one."""
        async for _ in self._listed(_TEMPORARY, _TEMPORARY):
            return

    async def refuses_second_writers(self) -> bool:
        """Say whether the server itself holds "written once", by trying."""
        path = f"{_TEMPORARY}probes/{uuid4().hex}"
        with self._explained():
            await obstore.put_async(self._store, path, b"1", mode="create", use_multipart=False)
            try:
                await obstore.put_async(self._store, path, b"2", mode="create", use_multipart=False)
            except AlreadyExistsError:
                return True
            finally:
                await self._drop(path)
        return False

    def local_path(self, key: str) -> Path | None:
        """Give nothing: it is not on this disk."""
        checked(key)
        return None

    def _alone(self, key: str) -> asyncio.Lock:
        """Give the lock that puts this process's writers of one key in order."""
        return self._writing.setdefault(key, asyncio.Lock())

    async def _claim(self, key: str) -> None:
        path = _CLAIMS + key
        try:
            with self._explained():
                await settled(
                    obstore.put_async(self._store, path, b"", mode="create", use_multipart=False),
                    undo=lambda _: self._drop(path),
                )
        except Exists:
            raise Busy("blob.busy", "Somebody else is writing an object with this key.") from None
        try:
            # Again, now that nobody else can begin: the one who had the claim before may have finished.
            await self._must_be_free(_OBJECTS + key)
        except BaseException:
            await self._unclaim(key)
            raise

    async def _unclaim(self, key: str) -> None:
        with suppress(Unavailable):  # what cannot be removed now is a leftover, and reaped like one
            await settled(self._drop(_CLAIMS + key))

    async def _must_be_free(self, path: str) -> None:
        if await self._head(path):
            raise Exists

    async def _head(self, path: str) -> Found | None:
        with self._explained():
            try:
                meta = await obstore.head_async(self._store, path)
            except FileNotFoundError:
                return None
        return Found(path.removeprefix(_OBJECTS), meta["size"], meta["last_modified"], meta["e_tag"])

    async def _drop(self, path: str) -> None:
        with self._explained(), suppress(FileNotFoundError):
            await obstore.delete_async(self._store, path)

    async def _listed(self, prefix: str, top: str) -> AsyncIterator[Found]:
        with self._explained():
            async for page in obstore.list(self._store, prefix, chunk_size=1000):
                for meta in page:
                    yield Found(meta["path"].removeprefix(top), meta["size"], meta["last_modified"], meta["e_tag"])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what obstore says into a sentence; its own words run over pages and name what nobody asked for."""
        try:
            yield
        except AlreadyExistsError:
            raise Exists from None
        except (BaseError, OSError) as error:
            raise self._explanation(error) from error

    def _explanation(self, error: Exception) -> Problem:
        # The protocol's own code, where there is an answer with one: obstore keeps it nowhere but in its text.
        code = _CODE.search(str(error))
        what = f"the bucket {self._place.bucket} at {self._place.endpoint or f'Amazon S3 in {self._place.region}'}"
        if code and code[1] == "NoSuchBucket":
            return Unavailable("blob.no_bucket", f"There is no such bucket as {what.removeprefix('the bucket ')}.")
        if isinstance(error, FileNotFoundError):
            return Missing()
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or (code and code[1] in _DENIED):
            return Unavailable("blob.denied", f"These keys, from here and now, do not open {what}.")
        return Unavailable("blob.unreachable", f"There is no useful answer from {what}.")


class _Abandoned(Exception):  # noqa: N818 - nobody outside ever sees it
    """Tells obstore that no more bytes come and that those it has are not wanted."""


class _Parts:
    """An upload in parts, fed a piece at a time, so that the source of the bytes waits for the network."""

    def __init__(self, store: S3Store, path: str, size: int) -> None:
        self._pieces: asyncio.Queue[bytes | _Abandoned | None] = asyncio.Queue(1)
        self._sending = asyncio.ensure_future(
            obstore.put_async(
                store,
                path,
                self._feed(),
                use_multipart=True,
                chunk_size=max(_PART, -(-size // _MOST_PARTS)),
                max_concurrency=_AT_ONCE,
            )
        )
        # Nobody takes pieces any more: let the one who is about to give one go on, and see why.
        self._sending.add_done_callback(lambda _: self._clear())

    async def give(self, piece: bytes | None) -> None:
        if self._sending.done():
            self._sending.result()
        await self._pieces.put(piece)

    async def finish(self) -> None:
        await self.give(None)
        await self._sending

    async def abandon(self) -> None:
        # Not cancelled but fed a failure: only then does obstore tell the server to throw the parts away.
        self._clear()
        self._pieces.put_nowait(_Abandoned())
        with suppress(Exception):
            await settled(self._sending)

    def _clear(self) -> None:
        while not self._pieces.empty():
            self._pieces.get_nowait()

    async def _feed(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            if isinstance(piece, _Abandoned):
                raise piece
            yield piece


def _store(place: S3Place) -> S3Store:
    client: ClientConfig = {
        "allow_http": place.allow_http,
        "connect_timeout": timedelta(seconds=5),
        "read_timeout": place.patience,
        # The whole of a request includes reading a large answer: only silence is a fault, not length.
        "timeout": timedelta(days=1),
    }
    config: S3Config = {"region": place.region, "virtual_hosted_style_request": not place.path_style}
    if place.endpoint:
        # Both names: the second wins over the first, and would otherwise be taken from the environment.
        config["endpoint"] = config["aws_endpoint_url_s3"] = _endpoint(place)
    return S3Store(
        place.bucket,
        prefix=place.prefix or None,
        config=config,
        client_options=client,
        retry_config={
            "max_retries": place.retries,
            "retry_timeout": timedelta(seconds=30),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5)},
        },
        credential_provider=_credentials(place),
    )


def _endpoint(place: S3Place) -> str:
    """Give the address; with the bucket as part of the host's name when that is the style, as obstore wants it."""
    endpoint = place.endpoint or ""
    if place.path_style:
        return endpoint
    parts = urlsplit(endpoint)
    return parts._replace(netloc=f"{place.bucket}.{parts.netloc}").geturl()


def _credentials(place: S3Place) -> "S3CredentialProvider | None":
    # Handed over by a call and not as configuration: that would be mixed with a session's token of the environment.
    identity, secret = place.access_key_id, place.secret_access_key
    if identity is None or secret is None:
        return None

    def give() -> "S3Credential":
        return {
            "access_key_id": identity,
            "secret_access_key": secret.get_secret_value(),
            "token": None,
            "expires_at": None,
        }

    return give
