"""The guard: the one way to fetch what a stranger's URL points to.

Names are resolved here, every address is vetted, and the connection is made to the vetted address itself, so that a
name which means something else a moment later (DNS rebinding) changes nothing. Redirects are followed here as well,
each hop vetted like the first. Bytes, unpacked bytes and time are bounded over all hops together; nothing is taken from
the environment: no proxy, no netrc, no cookie. One request at a time goes to a host, at the host's rate: that of this
process, or a pace that all workers share. That several workers do not ask a host at once is the leases' doing.
"""

import asyncio
import ipaddress
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

import httpcore2
import httpx2
import psutil

Resolver: TypeAlias = Callable[[str, int], Awaitable[Collection[str]]]
Pace: TypeAlias = Callable[[str], Awaitable[None]]  # waits until this host may be asked

# IANA's special-purpose registries and what clouds keep behind other addresses. `ipaddress.is_global` of Python 3.11
# lets several of these through, so it is not asked.
_DENIED_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network; 0.0.0.0 reaches this very machine
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT; Alibaba's metadata
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's metadata
            "169.254.0.0/16",  # link-local; the metadata of AWS, Google, Azure and others
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments; Oracle's metadata
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_DENIED_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "::/96",  # unspecified, loopback, IPv4-compatible
            "::ffff:0:0/96",  # IPv4-mapped
            "::ffff:0:0:0/96",  # IPv4-translated
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",  # NAT64, local
            "100::/64",  # discard
            "100:0:0:1::/64",
            "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",
            "3fff::/20",  # documentation
            "5f00::/16",  # segment routing
            "fc00::/7",  # unique local; fd00:ec2::254 is AWS's metadata
            "fe80::/10",  # link-local
            "fec0::/10",  # site-local
            "ff00::/8",  # multicast
        ),
    )
)
_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that was ever given out; the rest means nothing good
_NAME = re.compile(r"(?=.{1,254}$)[a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_][a-z0-9_-]{0,62})*\.?")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|\d+)")
_REDIRECTS = {301, 302, 303, 307, 308}
_SECRETS = ("authorization", "cookie", "proxy-authorization")


class Forbidden(httpx2.RequestError):
    """A URL, or what it leads to, that is not to be fetched; asking again will not help."""


class TooLarge(httpx2.DecodingError):
    """An answer with more bytes than anybody wants, before or after unpacking."""


class TooSlow(httpx2.ReadTimeout):
    """An answer that is not complete in time, however busily it drips."""


@dataclass(frozen=True)
class Bounds:
    """How much of anything a fetch may take, over all its redirects."""

    bytes: int = 16 * 1024 * 1024  # unpacked
    seconds: float = 60.0
    redirects: int = 5
    connect: float = 10.0


@dataclass(frozen=True)
class Hosts:
    """Which private hosts may be asked (`host` or `host:port`, exactly), and how fast hosts may be asked."""

    allowed: frozenset[str] = frozenset()
    gap: timedelta = timedelta(0)  # between the beginnings of two requests to a host
    gaps: Mapping[str, timedelta] = field(default_factory=dict)  # the same for hosts that are known

    def allows(self, host: str, port: int) -> bool:
        """Say whether a host is one that the operator named."""
        bracketed = f"[{host}]" if ":" in host else host
        return not self.allowed.isdisjoint({host, bracketed, f"{bracketed}:{port}"})


def denied(address: str) -> str | None:
    """Say why an address is not to be connected to; None when it may be."""
    try:
        one = ipaddress.ip_address(address)
    except ValueError:
        return "it is not an address"
    network: object
    if isinstance(one, ipaddress.IPv4Address):
        network = next((network for network in _DENIED_V4 if one in network), None)
    elif one.scope_id is not None:
        return "it belongs to one link only"
    else:
        network = next((network for network in _DENIED_V6 if one in network), None)
        if network is None and one not in _UNICAST:
            return "it is not a public address"
    return f"it is in {network}, which is not public" if network else None


def vetted(url: httpx2.URL) -> tuple[str, int]:
    """Give host and port of a URL that may be looked up at all; raise Forbidden for any other."""
    if url.scheme not in {"http", "https"}:
        raise Forbidden(f"only http and https are fetched, not {url.scheme[:20]!r}")
    if url.userinfo:
        raise Forbidden("a URL with a name or a password in it is not fetched")
    host = url.raw_host.decode("ascii")
    port = url.port if url.port is not None else {"http": 80, "https": 443}[url.scheme]
    if not 1 <= port <= 65535:  # noqa: PLR2004 - what TCP has
        raise Forbidden(f"there is no port {port}")
    if ":" in host:
        try:
            canonical = ipaddress.IPv6Address(host)
        except ValueError:
            raise Forbidden(f"{host[:60]!r} is not an address") from None
        if canonical.scope_id is not None:
            raise Forbidden("an address with a zone belongs to one link only")
        return str(canonical), port
    if not _NAME.fullmatch(host):
        raise Forbidden(f"{host[:60]!r} is not the name of a host")
    # Every resolver has its own idea of 127.1, 0x7f000001 or 0177.0.0.1; only the plain form is an address here.
    if _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
        try:
            return str(ipaddress.IPv4Address(host)), port
        except ValueError:
            raise Forbidden(f"{host[:60]!r} is an address in a form that is not fetched") from None
    return host.removesuffix("."), port


async def resolve(host: str, port: int) -> Collection[str]:
    """Look a name up as the system does."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


def own_addresses() -> frozenset[str]:
    """List this machine's addresses: a public one of its own leads to its private doors as well."""
    return frozenset(each.address for card in psutil.net_if_addrs().values() for each in card)


class _Vetting(httpcore2.AsyncNetworkBackend):
    """Connects to vetted addresses only; the one place where a name becomes a connection."""

    def __init__(self, hosts: Hosts, resolver: Resolver, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._hosts = hosts
        self._resolver = resolver
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve once, vet all, connect to what was vetted."""
        addresses = await self._addresses(host.removesuffix("."), port)
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address")

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            host = str(ipaddress.ip_address(host))
            found = [host]
        except ValueError:
            try:
                found = list(dict.fromkeys(await self._resolver(host, port)))[:8]
            except (OSError, UnicodeError) as error:
                raise httpcore2.ConnectError(f"{host} could not be resolved: {error}") from error
        if self._hosts.allows(host, port):
            return found
        own = own_addresses()
        for address in found:
            why = denied(address) or ("it is this machine's own" if address in own else None)
            if why:
                raise Forbidden(f"{host} leads to {address}: {why}")
        return found

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        """Refuse."""
        raise Forbidden("sockets of this machine are not fetched from")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Direct(httpx2.AsyncHTTPTransport):
    """httpx2's own transport over our backend; it offers no other way to set one."""

    def __init__(self, backend: httpcore2.AsyncNetworkBackend, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context, network_backend=backend, max_connections=100, keepalive_expiry=5.0, retries=0
        )


class _Turns:
    """One request at a time to a host in this process, and no faster than its gap, or than a pace that is shared."""

    def __init__(self, hosts: Hosts, pace: Pace | None = None) -> None:
        self._hosts = hosts
        self._pace = pace
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, int] = {}
        self._next: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for the host to be free, and for its gap to be over."""
        clock = asyncio.get_running_loop()
        lock = self._locks.setdefault(host, asyncio.Lock())
        self._waiting[host] = self._waiting.get(host, 0) + 1
        try:
            async with lock:
                if self._pace is not None:
                    await self._pace(host)
                await asyncio.sleep(max(0.0, self._next.get(host, 0.0) - clock.time()))
                gap = self._hosts.gaps.get(host, self._hosts.gap).total_seconds()
                self._next = {each: at for each, at in self._next.items() if at > clock.time()}
                self._next[host] = clock.time() + gap
                yield
        finally:
            self._waiting[host] -= 1
            if not self._waiting[host]:
                del self._waiting[host], self._locks[host]


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends a request as the guard allows; to be used by a client that follows no redirects itself."""

    def __init__(
        self, direct: httpx2.AsyncBaseTransport, hosts: Hosts, bounds: Bounds, pace: Pace | None = None
    ) -> None:
        self._direct = direct
        self._bounds = bounds
        self._turns = _Turns(hosts, pace)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send, following redirects; the body is read while the host's turn and the time last."""
        bounds, url, moved_to, permanent = self._bounds, request.url, None, True
        clock = asyncio.get_running_loop()
        deadline: float | None = None
        for hop in range(bounds.redirects + 1):
            host, _ = vetted(url)
            async with AsyncExitStack() as stack:
                queued = clock.time()
                await stack.enter_async_context(self._turns.turn(host))
                # Waiting for others is not the server's fault: the time runs from the first turn on.
                deadline = clock.time() + bounds.seconds if deadline is None else deadline + (clock.time() - queued)
                try:
                    async with asyncio.timeout_at(deadline):
                        response = await self._direct.handle_async_request(_hop(request, url, bounds))
                except TimeoutError:
                    raise TooSlow(f"no answer within {bounds.seconds:g} seconds") from None
                stack.push_async_callback(response.aclose)
                target = _target(request, response, url)
                if target is None:
                    body = _Body(response, stack.pop_all(), bounds, deadline)
                    return httpx2.Response(
                        response.status_code,
                        headers=body.headers,
                        stream=body,
                        extensions={**response.extensions, "url": url, "moved_to": moved_to},
                    )
            permanent = permanent and response.status_code in {301, 308}
            url, moved_to = target, target if permanent else moved_to
            if hop == bounds.redirects:
                break
        raise httpx2.TooManyRedirects(f"more than {bounds.redirects} redirects", request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._direct.aclose()


def _hop(request: httpx2.Request, url: httpx2.URL, bounds: Bounds) -> httpx2.Request:
    """Write the request of one hop; what was meant for one host only is not told to another."""
    headers = request.headers.copy()
    headers["accept-encoding"] = "gzip, deflate"  # what is unpacked here, with a bound
    headers["host"] = url.netloc.decode("ascii")
    if (url.scheme, url.host, url.port) != (request.url.scheme, request.url.host, request.url.port):
        for name in _SECRETS:
            headers.pop(name, None)
    timeout = dict.fromkeys(("read", "write", "pool"), bounds.seconds) | {"connect": bounds.connect}
    extensions = {**request.extensions, "timeout": timeout}
    return httpx2.Request(request.method, url, headers=headers, stream=request.stream, extensions=extensions)


def _target(request: httpx2.Request, response: httpx2.Response, url: httpx2.URL) -> httpx2.URL | None:
    """Say where an answer redirects to; only requests that change nothing are sent on."""
    if response.status_code not in _REDIRECTS or request.method not in {"GET", "HEAD"}:
        return None
    location = response.headers.get("location")
    if not location:
        return None
    try:
        return url.join(location).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError) as error:
        raise Forbidden(f"it redirects to what is no URL: {str(error)[:100]}") from error


class _Body(httpx2.AsyncByteStream):
    """An answer's body, unpacked and counted on the way; the host's turn ends with it."""

    def __init__(self, response: httpx2.Response, held: AsyncExitStack, bounds: Bounds, deadline: float) -> None:
        self._response = response
        self._held = held
        self._bounds = bounds
        self._deadline = deadline
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        # A cookie of a stranger's is kept from the client, and what is unpacked here from being unpacked again.
        gone = {b"content-encoding", b"content-length", b"set-cookie", b"transfer-encoding"}
        self.headers = [(name, value) for name, value in response.headers.raw if name.lower() not in gone]
        if coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            self._coding = None
        else:
            self._coding = coding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the body in pieces, none larger than what may still come."""
        if self._coding is None:
            raise httpx2.DecodingError("the answer is packed in a way that was not asked for")
        unpack = _Unpacker(self._coding, self._bounds.bytes)
        packed = 0
        pieces = aiter(self._response.stream)  # type: ignore[arg-type] # the transport is asynchronous, so its stream is
        while True:
            try:
                async with asyncio.timeout_at(self._deadline):
                    piece = await anext(pieces, None)
            except TimeoutError:
                raise TooSlow(f"the answer was not complete within {self._bounds.seconds:g} seconds") from None
            if piece is None:
                break
            packed += len(piece)
            if packed > self._bounds.bytes:
                raise TooLarge(f"the answer is larger than {self._bounds.bytes:,} bytes")
            for out in unpack(piece):
                yield out
        unpack.finish()

    async def aclose(self) -> None:
        """Let go of the connection and of the host."""
        await self._held.aclose()


class _Unpacker:
    """Unpacks a little at a time, so that a bomb is noticed before it has gone off."""

    def __init__(self, coding: str, most: int) -> None:
        self._coding = coding
        self._left = most
        self._most = most
        self._inflater: Any = None

    def __call__(self, piece: bytes) -> Iterable[bytes]:
        """Unpack a piece."""
        if self._coding in {"", "identity"}:
            yield self._counted(piece)
            return
        if self._inflater is None and piece:
            # «deflate» comes with and without zlib's header; its first byte tells.
            raw = self._coding == "deflate" and piece[0] & 0x0F != 0x08  # noqa: PLR2004 - zlib's method
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
        while piece:
            try:
                out = self._inflater.decompress(piece, 65536)
            except zlib.error as error:
                raise httpx2.DecodingError(f"the answer cannot be unpacked: {error}") from error
            yield self._counted(out)
            piece = self._inflater.unconsumed_tail

    def finish(self) -> None:
        """Raise when the packed bytes ended in the middle."""
        if self._inflater is not None and not self._inflater.eof:
            raise httpx2.DecodingError("the packed answer ends in the middle")

    def _counted(self, out: bytes) -> bytes:
        self._left -= len(out)
        if self._left < 0:
            raise TooLarge(f"the answer is larger than {self._most:,} bytes, unpacked")
        return out


def guarded(
    agent: str,
    hosts: Hosts = Hosts(),  # noqa: B008 - frozen
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    *,
    resolver: Resolver = resolve,
    context: ssl.SSLContext | None = None,
    network: httpcore2.AsyncNetworkBackend | None = None,
    pace: Pace | None = None,
) -> httpx2.AsyncClient:
    """Make the guarded client; `async with` it, one for the process, so that hosts have their one turn."""
    backend = _Vetting(hosts, resolver, network or httpcore2.AnyIOBackend())
    direct = _Direct(backend, context or httpx2.create_ssl_context(trust_env=False))
    transport = GuardedTransport(direct, hosts, bounds, pace)
    return httpx2.AsyncClient(
        transport=transport, headers={"User-Agent": agent}, follow_redirects=False, trust_env=False, timeout=None
    )
