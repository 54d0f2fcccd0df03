"""The wire: sends one request on a connection of its own and says from typed evidence how far it got.

There is no pool, so a request never goes out on a connection that the other side has already closed; no redirect is
followed, nothing is tried twice, nothing is read from the environment. Whether bytes of the request began to leave is
known from two witnesses: the trace of the HTTP library, and the stream it writes to. Up to the moment at which the
first of them says that it begins to write, nothing can have been published.
"""

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

from imprint.engine.guard import denied, own_addresses
from imprint.killpoint import here
from imprint.platforms.answer import Answer
from imprint.platforms.failure import Evidence, NoAnswer, NotYet, Refused, Stage
from imprint.platforms.login import Login
from imprint.platforms.request import Progress, Request

# More than any platform answers; who sends more is not to be understood.
LARGEST_ANSWER = 8 * 1024 * 1024
TOGETHER = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_FAILURES = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException, OSError, TimeoutError)

Resolve = Callable[[str, int], Awaitable[list[str]]]


async def resolve(host: str, port: int) -> list[str]:
    """Find the addresses of a host; a host that is an address needs no finding."""
    with suppress(ValueError):
        return [str(ip_address(host))]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def anywhere(address: str) -> bool:
    """Allow every address: a webhook on one's own machine or network is a good one.

    Where people must not reach into the server's network, `outside` goes here instead.
    """
    del address
    return True


def outside(address: str) -> bool:
    """Allow only what is on the public network: not this machine, nor what is beside it."""
    return denied(address) is None and address not in own_addresses()


@dataclass(frozen=True)
class Patience:
    """How many seconds each step may take at most; the deadline of the whole comes on top."""

    connect: float = 10
    write: float = 30
    read: float = 60


@dataclass(frozen=True)
class Wire:
    """How requests leave this machine; shared by all, since it holds no connection."""

    patience: Patience = Patience()
    resolve: Resolve = resolve
    allowed: Callable[[str], bool] = anywhere
    trust: ssl.SSLContext | None = None

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """Make the TLS context once: reading every certificate authority takes longer than a request."""
        return self.trust or httpx2.create_ssl_context(trust_env=False)

    @cached_property
    def outward(self) -> "Wire":
        """Give the same wire to public addresses alone; made once, for the sake of its TLS context."""
        return self if self.allowed is outside else replace(self, allowed=outside)

    def to(self, login: Login) -> "Wire":
        """Give the wire that may be used as an account: who has connected it decided once how far it reaches."""
        return self.outward if login.outside_only else self

    async def vet(self, host: str) -> None:
        """Refuse a host none of whose addresses may be called; one that cannot be found now may be there later."""
        name = urlsplit(f"//{host}").hostname or ""
        try:
            found = await self.resolve(name, 0)
        except (OSError, UnicodeError):
            return
        _refuse_all(name, found, [each for each in found if self.allowed(each)])

    def until(self, moment: float) -> "Sender":
        """Give a sender whose every exchange ends at a moment of the running loop's clock, whatever happens."""
        return Sender(self, moment)

    def within(self, seconds: float) -> "Sender":
        """Give a sender whose every exchange ends so many seconds from now."""
        return self.until(asyncio.get_running_loop().time() + seconds)


@dataclass(frozen=True)
class Sender:
    """A wire with a deadline; what a platform is handed as `http`."""

    wire: Wire
    deadline: float

    async def send(self, request: Request, progress: Progress = lambda _: None) -> Answer:
        """Send and give the whole answer, whatever its status; NotYet if nothing left, NoAnswer if something did."""
        exchange = _Exchange(self.wire, request, progress)
        if asyncio.get_running_loop().time() >= self.deadline:
            raise exchange.failure(TimeoutError())  # a process that was asleep must not send what is no longer its own
        try:
            async with asyncio.timeout_at(self.deadline):
                return await exchange.run()
        except _FAILURES as error:
            raise exchange.failure(error) from error


class _Exchange:
    """One request and its answer; `stage` moves as they do."""

    def __init__(self, wire: Wire, request: Request, progress: Progress) -> None:
        self.wire = wire
        self.request = request
        self.progress = progress
        self.stage = Stage.CONNECTING
        self.status: int | None = None
        self.url = _url(request.url)
        # Looked at before anything is done: the library would notice only when it is about to write.
        self.headers = _headers(self.url, request)

    async def run(self) -> Answer:
        backend = _Backend(self.wire, self._leaving)
        origin = httpcore2.Origin(self.url.raw_scheme, self.url.raw_host, self.url.port or _PORTS[self.url.scheme])
        connection = httpcore2.AsyncHTTPConnection(
            origin,
            # Only when it is needed: making one reads every certificate authority there is.
            ssl_context=self.wire.tls if self.url.scheme == "https" else None,
            retries=0,
            network_backend=backend,
        )
        try:
            return await self._exchanged(connection)
        finally:
            await connection.aclose()
            await backend.aclose()

    async def _exchanged(self, connection: httpcore2.AsyncHTTPConnection) -> Answer:
        response = await connection.handle_async_request(
            httpcore2.Request(
                self.request.method,
                httpcore2.URL(
                    scheme=self.url.raw_scheme, host=self.url.raw_host, port=self.url.port, target=self.url.raw_path
                ),
                headers=self.headers,
                content=self._body(),
                extensions={"timeout": vars(self.wire.patience), "trace": self._trace},
            )
        )
        self.status = response.status
        self.stage = Stage.READING
        fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        body = await self._read(response, fields.get("content-encoding", ""))
        self.stage = Stage.ANSWERED
        return Answer(response.status, fields, body)

    async def _trace(self, event: str, _info: dict[str, Any]) -> None:
        # Whatever is not about connecting counts as sending: an event that is renamed one day must not look like proof.
        if not event.startswith("connection."):
            self._leaving()
        if event == "http11.send_request_body.complete":
            self.stage = Stage.WAITING

    def _leaving(self) -> None:
        # A write that fails may have left some of it, so what counts is that one has begun.
        if self.stage is Stage.CONNECTING:
            self.stage = Stage.SENDING

    async def _body(self) -> AsyncIterator[bytes]:
        if self.request.body is not None:
            async for chunk in self.request.body.stream(self.progress):
                yield chunk

    async def _read(self, response: httpcore2.Response, encoding: str) -> bytes:
        unpack = zlib.decompressobj(_GZIP) if encoding.strip().lower() in {"gzip", "x-gzip"} else None
        parts: list[bytes] = []
        room = LARGEST_ANSWER
        async for chunk in response.aiter_stream():
            try:
                part = chunk if unpack is None else unpack.decompress(chunk, room + 1)
            except zlib.error as error:
                raise httpcore2.RemoteProtocolError("the answer cannot be unpacked") from error
            room -= len(part)
            if room < 0:
                raise httpcore2.RemoteProtocolError("the answer does not end")
            parts.append(part)
        if unpack is not None and parts and not unpack.eof:
            raise httpcore2.RemoteProtocolError("the answer was cut short")
        return b"".join(parts)

    def failure(self, error: Exception) -> NotYet | NoAnswer:
        """Classify what went wrong by how far the exchange got."""
        host = self.url.host
        evidence = Evidence(self.stage, self.status)
        late = isinstance(error, TimeoutError | httpcore2.TimeoutException)
        if not evidence.left:
            why = "did not answer in time" if late else "cannot be reached"
            return NotYet(
                "wire.late" if late else "wire.unreachable", f"{host} {why}; nothing was sent.", evidence=evidence
            )
        why = "gave no answer in time" if late else "broke the connection off"
        return NoAnswer(
            "wire.no_answer_in_time" if late else "wire.broken_off",
            f"{host} {why} after the request had begun to leave.",
            evidence,
        )


_PORTS = {"http": 80, "https": 443}
_LAST_PORT = 65_535
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|^\s|\s$")


@lru_cache(maxsize=256)
def _url(text: str) -> httpx2.URL:
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError, UnicodeError):
        raise _malformed() from None  # the text of the error would show an address that may be a secret
    if url.scheme not in _PORTS or not url.host or not 0 < (url.port or 1) <= _LAST_PORT:
        raise _malformed()
    return url


def _headers(url: httpx2.URL, request: Request) -> list[tuple[bytes, bytes]]:
    headers = [("Host", url.netloc.decode("ascii")), *request.sent_headers()]
    if any(_UNSENDABLE.search(name + value) for name, value in headers) or not request.method.isalpha():
        raise _malformed()
    return [(name.encode(), value.encode()) for name, value in headers]


def _refuse_all(host: str, found: Sequence[str], allowed: Sequence[str]) -> None:
    if found and not allowed:
        raise Refused("wire.address_not_allowed", f"{host} is at an address that Imprint may not call for you.")


def _malformed() -> Refused:
    return Refused("wire.malformed", "This request cannot be written down as HTTP; look at the account's address.")


class _Backend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that were looked at first; a name that changes its mind in between gains nothing."""

    def __init__(self, wire: Wire, leaving: Callable[[], None]) -> None:
        self._wire = wire
        self._leaving = leaving
        self._sockets = httpcore2.AnyIOBackend()
        self._opened: httpcore2.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that takes the call."""
        try:
            async with asyncio.timeout(timeout):
                found = await self._wire.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError("the name cannot be found") from error
        allowed = [each for each in found if self._wire.allowed(each)]
        _refuse_all(host, found, allowed)
        last: Exception = httpcore2.ConnectError("the name has no address")
        for each in allowed:
            try:
                self._opened = await self._sockets.connect_tcp(each, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
            else:
                return _Watched(self._opened, self._leaving)
        raise last

    async def aclose(self) -> None:
        """Close the socket: the library forgets it when a handshake is cancelled."""
        if self._opened is not None:
            await self._opened.aclose()


class _Watched(httpcore2.AsyncNetworkStream):
    """A stream that says when the request begins to leave; a TLS handshake goes beneath it and does not count.

    Small writes are put together: headers and body of a small request leave as one packet.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream, leaving: Callable[[], None]) -> None:
        self._stream = stream
        self._leaving = leaving
        self._held: list[bytes] = []
        self._size = 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Write what is held, then read; one who has closed already may still have answered before."""
        with suppress(httpcore2.WriteError):
            await self._flush(timeout)
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Say that something leaves, then write, or hold it until there is more."""
        self._leaving()
        self._held.append(buffer)
        self._size += len(buffer)
        if self._size >= TOGETHER:
            await self._flush(timeout)

    async def _flush(self, timeout: float | None) -> None:  # noqa: ASYNC109
        held, self._held, self._size = b"".join(self._held), [], 0
        if held:
            await self._stream.write(held, timeout)
            here("request_left")

    async def aclose(self) -> None:
        """Close."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """Begin TLS, and watch what is written into it."""
        return _Watched(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._leaving)

    def get_extra_info(self, info: str) -> Any:
        """Tell about the socket."""
        return self._stream.get_extra_info(info)
