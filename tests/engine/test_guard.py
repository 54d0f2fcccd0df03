"""The guard: nothing a stranger's URL says leads anywhere it should not, costs too much, or lasts too long."""

import asyncio
import gzip
import ipaddress
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpcore2
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from imprint.engine import guard
from imprint.engine.guard import Bounds, Forbidden, Hosts, TooLarge, TooSlow, denied, guarded, vetted
from tests.waiting import until

PUBLIC = "93.184.215.14"
PUBLIC_V6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


# ------------------------------------------------------------------------------------------------------- the addresses

DENIED = tuple(
    each
    for line in """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1
192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255
240.0.0.1 255.255.255.255 192.31.196.1 192.52.193.1 192.175.48.1
:: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1
64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1::1 100::1 100:0:0:1::1 2001::1 2001:0:4136:e378::1
2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe::1 2002:808:808:: 3fff::1 5f00::1 fc00::1
fd00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 2606:4700:4700::1111%eth0
fe80::a9fe:a9fe%1 fec0::1 ff02::1 ff05::2 4000::1 1000::1 e000::1
""".splitlines()
    for each in line.split()
)
FINE = ("1.1.1.1", "8.8.8.8", PUBLIC, "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.0", "198.17.255.255")
FINE_V6 = (PUBLIC_V6, "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2001:4860:4860::8888", "2400:cb00::1")


@pytest.mark.parametrize("address", DENIED)
def test_no_special_address_is_connected_to(address: str) -> None:
    """Each has a reason for a person to read."""
    assert denied(address)


@pytest.mark.parametrize("address", FINE + FINE_V6)
def test_public_addresses_are_connected_to(address: str) -> None:
    """The deny list has sharp edges: the neighbours of special ranges are free."""
    assert denied(address) is None


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "::1%", "1.2.3.4.5"]
)
def test_what_is_no_address_is_not_connected_to(text: str) -> None:
    """A resolver that answers nonsense is not believed."""
    assert denied(text)


@given(st.ip_addresses(v=4))
def test_an_address_means_the_same_inside_every_wrapping(address: ipaddress.IPv4Address) -> None:
    """No IPv6 form that carries an IPv4 address gets anywhere, whatever it carries."""
    low = int(address)
    for prefix in ("::", "::ffff:0:0", "64:ff9b::", "::ffff:0:0:0"):
        assert denied(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | low)))
    assert denied(str(ipaddress.IPv6Address((0x2002 << 112) | (low << 80))))


@given(st.ip_addresses())
def test_nothing_that_python_calls_private_gets_through(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """Our list is at least as strict as the standard library's."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert denied(str(address))


# ------------------------------------------------------------------------------------------------------------ the URLs

FORMS = tuple(
    each
    for line in """
http://127.1/ http://127.0.1/ http://2130706433/ http://0x7f000001/ http://0x7f.0.0.1/ http://0x7f.1/ http://0177.0.0.1/
http://0177.0.1/ http://017700000001/ http://127.0.0.01/ http://127.0.0.1./ http://127.0.0.0x1/ http://00000177.1/ http://0/
http://0x/ http://0./ http://127.0.0.256/ http://1.2.3.4.5/ http://127.0.0.%31/ http://%31%32%37.0.0.1/ http://localhost%2e/
http://127。0。0。1.1/ http://[::1%25eth0]/ http://[fe80::1%eth0]/ http://[::1%25]/ http://[2606:4700:4700::1111%25eth0]/
http://[2606:4700:4700::1111%eth0]/
http://user@example.com/
http://user:pw@example.com/ http://example.com@127.0.0.1/ http://a\\@127.0.0.1/ http://127.0.0.1%2f@example.com/
http://@127.0.0.1/ http:///x http:127.0.0.1/ file:///etc/passwd ftp://example.com/ gopher://127.0.0.1:70/
unix:///var/run/docker.sock data:text/html,x javascript:alert(1) http://example.com:0/ http://example.com:65536/
http://example.com:99999/ http://.../ http://.example.com/ http://exa%20mple.com/ http://exam%00ple.com/ ws://example.com/
http://-/../ http://a..b/ dict://127.0.0.1:11211/ jar:http://127.0.0.1!/ http://[::]:80:80/
""".splitlines()
    for each in line.split()
)
LITERALS = [f"http://{f'[{each}]' if ':' in each else each}/" for each in DENIED if "%" not in each]
DOTS = ("\u3002", "\uff0e", "\uff61")  # what IDNA takes for a dot
LITERALS += [f"http://{dot.join(['127', '0', '0', '1'])}/" for dot in DOTS]
LITERALS += [
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::0001]/",
    "http://[::ffff:7f00:1]:80/",
    "http://[::FFFF:127.0.0.1]/",
]
LITERALS += ["HTTP://127.0.0.1/", "https://127.0.0.1:8443/a?b=c#d", "http://127.0.0.1#@example.com/", "http://[v1.a]/"]
LITERALS += ["http://①②⑦.⓪.⓪.①/", "http://ⓛocalhost/", "http://127.0.0.1\t/"]


class Dial(httpcore2.AsyncNetworkBackend):
    """Records where connections were to be made to, and leads the public addresses to a listener on this machine."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port
        self.asked: list[str] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Write the address down; a private one really is connected to, so that a leak has a witness."""
        self.asked.append(host)
        where = ("127.0.0.1", self.port or port) if host in {PUBLIC, PUBLIC_V6} else (host, port)
        return await httpcore2.AnyIOBackend().connect_tcp(*where, timeout, local_address, socket_options)


def resolving(*answers: Collection[str]) -> tuple[guard.Resolver, list[str]]:
    """Make a resolver that gives these answers one after the other, the last for ever, and the names it was asked."""
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> Collection[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


class Listener:
    """A real server on this machine that counts who connects."""

    def __init__(self) -> None:
        self.connects = 0
        self.requests: list[bytes] = []
        self.port = 0


@asynccontextmanager
async def listening(handle: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[Listener]:
    """Run a server that reads a request's head and answers as it is told."""
    one = Listener()
    open_now: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        one.connects += 1
        task = asyncio.current_task()
        assert task is not None
        open_now[task] = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                one.requests.append(head)
                await handle(head, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            del open_now[task]

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        for writer in open_now.values():
            writer.transport.abort()
        await asyncio.gather(*open_now)


def answering(body: bytes = b"hello", *headers: str, status: str = "200 OK") -> Handler:
    """Make a handler that always answers the same."""

    async def handle(_head: bytes, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return handle


def client(
    *allowed: str,
    dial: Dial | None = None,
    resolver: guard.Resolver = guard.resolve,
    bounds: Bounds = Bounds(seconds=10),  # noqa: B008 - frozen
    context: ssl.SSLContext | None = None,
) -> httpx2.AsyncClient:
    """Make a guarded client as the tests want it."""
    return guarded("test/1", Hosts(frozenset(allowed)), bounds, resolver=resolver, context=context, network=dial)


@pytest.mark.parametrize("url", [*FORMS, *LITERALS])
async def test_no_form_of_a_private_address_is_connected_to(url: str) -> None:
    """Whatever the encoding, the request is refused before anybody dials, and the name is not even looked up."""
    dial = Dial()
    resolver, asked = resolving(["127.0.0.1"])
    async with client(dial=dial, resolver=resolver) as http:
        with pytest.raises((Forbidden, httpx2.InvalidURL, httpx2.UnsupportedProtocol)):
            await http.get(url)
    assert dial.asked == []
    assert asked == []


HOSTS = ("localhost", "localhost.", "LOCALHOST", "internal.example", "a_b.example", "xn--bcher-kva.example")


@pytest.mark.parametrize("address", DENIED)
async def test_no_name_of_a_private_address_is_connected_to(address: str) -> None:
    """A name is as good as what it leads to, also when public addresses come with it."""
    dial = Dial()
    answers = [[address], [PUBLIC, address], [address, PUBLIC]]
    resolver, asked = resolving(*answers)
    async with client(dial=dial, resolver=resolver) as http:
        for host in HOSTS:
            del asked[:]
            for _ in answers:
                with pytest.raises(Forbidden, match="leads to"):
                    await http.get(f"http://{host}/")
            assert len(asked) == 3
    assert dial.asked == []


async def test_the_systems_resolver_is_vetted_too() -> None:
    """The real `localhost` of this machine is refused while something listens on it."""
    async with listening(answering()) as private, client() as http:
        with pytest.raises(Forbidden):
            await http.get(f"http://localhost:{private.port}/")
        with pytest.raises(Forbidden):
            await http.get(f"http://127.0.0.1:{private.port}/")
    assert private.connects == 0


async def test_a_public_address_of_this_very_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's own public address leads to its own doors, so it is not fetched from either."""
    assert "127.0.0.1" in guard.own_addresses()
    monkeypatch.setattr(guard, "own_addresses", lambda: frozenset({PUBLIC}))
    dial = Dial()
    resolver, _ = resolving([PUBLIC])
    async with client(dial=dial, resolver=resolver) as http:
        with pytest.raises(Forbidden, match="own"):
            await http.get("http://feeds.example/")
    assert dial.asked == []


async def test_a_name_that_is_rebound_after_vetting_changes_nothing() -> None:
    """The resolver says public once and private ever after: the connection goes to what was vetted, and only there."""
    async with listening(answering(b"public")) as public, listening(answering(b"secret")) as private:
        dial = Dial(public.port)
        resolver, asked = resolving([PUBLIC], ["127.0.0.1"])
        async with client(dial=dial, resolver=resolver) as http:
            answer = await http.get(f"http://rebind.example:{private.port}/")
            assert answer.text == "public"
            assert len(asked) == 1, "looked up once, connected to that"
        async with client(dial=dial, resolver=resolver) as http:
            for _ in range(20):
                with pytest.raises(Forbidden):
                    await http.get(f"http://rebind.example:{private.port}/again")
    assert private.connects == 0
    assert set(dial.asked) == {PUBLIC}


async def test_a_resolver_that_flips_for_ever_never_reaches_a_private_address() -> None:
    """A hundred fetches, the answer changing each time: only vetted addresses are ever dialled."""
    async with listening(answering(b"public", "Connection: close")) as public, listening(answering()) as private:
        dial = Dial(public.port)
        resolver, asked = resolving(*[[PUBLIC], ["127.0.0.1"]] * 60)
        async with client(dial=dial, resolver=resolver) as http:
            for _ in range(100):
                with suppress(Forbidden):
                    assert (await http.get(f"http://flip.example:{private.port}/")).text == "public"
    assert private.connects == 0
    assert set(dial.asked) == {PUBLIC}
    assert len(asked) == 100
    assert public.connects == 50


@pytest.mark.parametrize("status", ["301 M", "302 F", "303 S", "307 T", "308 P"])
@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:{port}/", "//127.0.0.1:{port}/", "http://localhost:{port}/", "http://[::1]:{port}/", "file:///etc/passwd",
     "http://2130706433:{port}/", "http://a@b@127.0.0.1:{port}/", "ftp://127.0.0.1/", "http://[::ffff:127.0.0.1]:{port}/",
     "http://metadata.example/", "http://169.254.169.254/latest/meta-data/", "\\\\127.0.0.1:{port}\\", "http://[bad"],
)  # fmt: skip
async def test_each_redirect_is_vetted_like_the_first(status: str, target: str) -> None:
    """A public server cannot send us to a private one, in any form."""
    async with listening(answering(b"secret")) as private:
        where = target.format(port=private.port)
        async with listening(answering(b"", f"Location: {where}", status=status)) as public:
            dial = Dial(public.port)
            resolver = {"feeds.example": [PUBLIC], "localhost": ["127.0.0.1"], "metadata.example": ["169.254.169.254"]}

            async def resolve(host: str, _port: int) -> Collection[str]:
                return resolver[host]

            async with client(dial=dial, resolver=resolve) as http:
                with pytest.raises((Forbidden, httpx2.TooManyRedirects)):
                    await http.get("http://feeds.example/")
    assert private.connects == 0
    assert set(dial.asked) == {PUBLIC}


async def test_redirects_end_and_say_where_the_place_went() -> None:
    """Five hops are followed and a sixth is not; a lasting move is told, a passing one is not."""

    async def handle(head: bytes, writer: asyncio.StreamWriter) -> None:
        at = int(head.split()[1].decode().strip("/").split("?")[0] or 0)
        code = 301 if b"?last" in head else 302
        suffix = "?last" if b"?last" in head else ""
        writer.write(
            f"HTTP/1.1 {code} X\r\nLocation: /{at + 1}{suffix}\r\nContent-Length: 0\r\n\r\n".encode()
            if at < 5
            else f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{at:02}".encode()
        )

    async with listening(handle) as server, client("127.0.0.1") as http:
        base = f"http://127.0.0.1:{server.port}"
        followed = await http.get(f"{base}/0")
        assert (followed.text, str(followed.extensions["url"]), followed.extensions["moved_to"]) == (
            "05",
            f"{base}/5",
            None,
        )
        lasting = await http.get(f"{base}/3?last")
        assert str(lasting.extensions["moved_to"]) == f"{base}/5?last"
        with pytest.raises(httpx2.TooManyRedirects):
            await http.get(f"{base}/-1")


async def test_secrets_stay_with_their_host() -> None:
    """A redirect to another host is not told what was meant for the first; nothing is kept of its cookies."""
    async with listening(answering(b"there", "Set-Cookie: a=b")) as other:
        target = f"Location: http://127.0.0.1:{other.port}/"
        async with (
            listening(answering(b"", target, "Set-Cookie: x=y", status="302 F")) as first,
            client("127.0.0.1") as http,
        ):
            url = f"http://127.0.0.1:{first.port}/"
            answer = await http.get(url, headers={"Authorization": "Bearer secret", "Cookie": "c=d", "X-Fine": "1"})
            assert answer.text == "there"
            assert not http.cookies
    assert b"Bearer secret" in first.requests[0]
    assert b"secret" not in other.requests[0]
    assert b"c=d" not in other.requests[0]
    assert b"x-fine: 1" in other.requests[0].lower()
    assert f"host: 127.0.0.1:{other.port}".encode() in other.requests[0].lower()


async def test_odd_headers_are_passed_on_as_they_came() -> None:
    """Letters that HTTP does not know in a header break nothing."""

    async def handle(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nETag: "\xe9\xff\xc3\xa9"\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nok')

    async with listening(handle) as server, client("127.0.0.1") as http:
        answer = await http.get(f"http://127.0.0.1:{server.port}/")
    assert (answer.text, answer.headers.get_list("x-a")) == ("ok", ["1", "2"])
    assert (b"etag", b'"\xe9\xff\xc3\xa9"') in [(name.lower(), value) for name, value in answer.headers.raw]


async def test_a_request_that_changes_something_is_not_sent_on() -> None:
    """A POST's redirect is given back as it is."""
    async with listening(answering(b"", "Location: /elsewhere", status="307 T")) as server, client("127.0.0.1") as http:
        answer = await http.post(f"http://127.0.0.1:{server.port}/", content=b"")
        assert answer.status_code == 307
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("allowed", "host", "fine"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1:{port}", "127.0.0.1", True),
        ("127.0.0.1:1", "127.0.0.1", False),
        ("localhost", "127.0.0.1", False),
        ("localhost", "localhost", True),
        ("localhost:{port}", "localhost.", True),
        ("ocalhost", "localhost", False),
        (".localhost", "a.localhost", False),
        ("*", "127.0.0.1", False),
        ("nas.example", "evil.nas.example", False),
        ("nas.example", "nas.example", True),
    ],
)
async def test_named_private_hosts_are_allowed_exactly(allowed: str, host: str, fine: bool) -> None:  # noqa: FBT001 - a table
    """A host, or a host and its port, by name; nothing like it."""
    resolver, _ = resolving(["127.0.0.1"])
    async with listening(answering()) as server:
        async with client(allowed.format(port=server.port), resolver=resolver) as http:
            if fine:
                assert (await http.get(f"http://{host}:{server.port}/")).text == "hello"
            else:
                with pytest.raises(Forbidden):
                    await http.get(f"http://{host}:{server.port}/")
        assert server.connects == (1 if fine else 0)


async def test_an_allowed_ipv6_host_is_known_in_any_spelling() -> None:
    """The operator's `[::1]:port` allows the same address written out."""
    hosts = Hosts(frozenset({"[::1]:8080"}))
    assert hosts.allows("::1", 8080)
    assert not hosts.allows("::1", 8081)
    assert vetted(httpx2.URL("http://[0:0:0:0:0:0:0:1]:8080/")) == ("::1", 8080)


# ---------------------------------------------------------------------------------------------------------- the bounds


async def test_a_gzip_bomb_does_not_go_off() -> None:
    """A hundred megabytes of nothing in a hundred kilobytes are noticed after the bound, not after the hundred."""
    bomb = gzip.compress(bytes(100 * 1024 * 1024))
    bounds = Bounds(bytes=1024 * 1024, seconds=10)
    async with (
        listening(answering(bomb, "Content-Encoding: gzip")) as server,
        client("127.0.0.1", bounds=bounds) as http,
    ):
        taken = 0

        async def take() -> None:
            nonlocal taken
            async with http.stream("GET", f"http://127.0.0.1:{server.port}/") as answer:
                async for piece in answer.aiter_bytes():
                    taken += len(piece)

        tracemalloc.start()
        try:
            with pytest.raises(TooLarge):
                await take()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 8 * 1024 * 1024, "a piece is unpacked little by little, not all at once"
    assert taken <= bounds.bytes


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "raw deflate", "identity"])
async def test_packed_answers_are_unpacked(coding: str) -> None:
    """What is small enough comes out as it went in, in every coding that is asked for."""
    text = b"chapter twelve " * 5000
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(text), "x-gzip": gzip.compress(text), "deflate": zlib.compress(text),
        "raw deflate": raw.compress(text) + raw.flush(), "identity": text,
    }[coding]  # fmt: skip
    header = f"Content-Encoding: {coding.removeprefix('raw ')}"
    async with listening(answering(packed, header)) as server, client("127.0.0.1") as http:
        answer = await http.get(f"http://127.0.0.1:{server.port}/")
        assert answer.content == text
    assert b"accept-encoding: gzip, deflate\r\n" in server.requests[0].lower()


@pytest.mark.parametrize(
    ("body", "coding"),
    [(b"\x00\x01", "br"), (b"not gzip", "gzip"), (gzip.compress(b"a" * 10_000)[:-20], "gzip"), (b"x", "gzip, gzip")],
    ids=["unknown", "broken", "cut short", "one in another"],
)
async def test_answers_that_cannot_be_unpacked_say_so(body: bytes, coding: str) -> None:
    """An unknown coding, a broken one, one cut short and one inside another are refused, not passed on half-read."""
    async with listening(answering(body, f"Content-Encoding: {coding}")) as server, client("127.0.0.1") as http:
        with pytest.raises(httpx2.DecodingError):
            await http.get(f"http://127.0.0.1:{server.port}/")


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_an_endless_body_ends(coding: str) -> None:
    """A server that never stops sending is left after the bound, also behind the end of what it packed."""

    async def handle(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        small = gzip.compress(b"small") if coding == "gzip" else b"small"
        writer.write(f"{len(small):x}\r\n".encode() + small + b"\r\n")
        while True:
            writer.write(b"10000\r\n" + bytes(65536) + b"\r\n")
            await writer.drain()

    bounds = Bounds(bytes=2 * 1024 * 1024, seconds=20)
    async with listening(handle) as server, client("127.0.0.1", bounds=bounds) as http:
        with pytest.raises(TooLarge):
            await http.get(f"http://127.0.0.1:{server.port}/")


@pytest.mark.parametrize("where", ["silence", "head", "body", "redirects"])
async def test_a_server_that_drips_is_left_in_time(where: str) -> None:
    """A byte now and then keeps no read time-out from running out, but the total time does: head, body or redirects."""

    async def handle(head: bytes, writer: asyncio.StreamWriter) -> None:
        if where == "redirects":
            await asyncio.sleep(0.2)
            writer.write(b"HTTP/1.1 302 F\r\nLocation: /" + head.split()[1][1:] + b"x\r\nContent-Length: 0\r\n\r\n")
            return
        if where == "body":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        elif where == "head":
            writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            if where != "silence":
                writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.02)

    loop = asyncio.get_running_loop()
    async with listening(handle) as server, client("127.0.0.1", bounds=Bounds(seconds=0.5)) as http:
        began = loop.time()
        with pytest.raises(TooSlow):
            await http.get(f"http://127.0.0.1:{server.port}/")
        assert 0.4 < loop.time() - began < 3


# ------------------------------------------------------------------------------------------ hosts, TLS, surroundings


async def test_a_host_is_asked_one_request_at_a_time() -> None:
    """Five at once wait for each other until each body is read to its end; another host does not wait."""
    open_now, most = 0, 0

    async def handle(_head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
        await writer.drain()
        await asyncio.sleep(0.01)
        open_now -= 1
        writer.write(b"cd")

    resolver, _ = resolving(["127.0.0.1"])
    async with listening(handle) as server, client("127.0.0.1", "other.example", resolver=resolver) as http:
        urls = [f"http://127.0.0.1:{server.port}/{at}" for at in range(5)]
        answers = await asyncio.gather(*(http.get(url) for url in urls))
        assert [answer.text for answer in answers] == ["abcd"] * 5
        assert most == 1
        async with http.stream("GET", urls[0]):
            other = await http.get(f"http://other.example:{server.port}/")
            assert other.text == "abcd"
    assert most == 2


async def test_a_host_is_asked_no_faster_than_its_gap() -> None:
    """Requests to one host begin a gap apart, those to another do not wait."""
    hosts = Hosts(frozenset({"127.0.0.1", "slow.example"}), gaps={"slow.example": timedelta(seconds=0.2)})
    resolver, _ = resolving(["127.0.0.1"])
    loop = asyncio.get_running_loop()
    async with listening(answering()) as server, guarded("test/1", hosts, resolver=resolver) as http:
        began = loop.time()
        for _ in range(3):
            await http.get(f"http://127.0.0.1:{server.port}/")
        assert loop.time() - began < 0.2
        began = loop.time()
        for _ in range(3):
            await http.get(f"http://slow.example:{server.port}/")
        assert loop.time() - began >= 0.4


async def test_a_turn_that_is_given_up_is_given_back() -> None:
    """One who is cancelled while waiting or reading blocks nobody after it."""

    async def handle(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + (b"done" if b"/quick" in head else b""))

    async with listening(handle) as server, client("127.0.0.1") as http:
        base = f"http://127.0.0.1:{server.port}"
        slow = [asyncio.create_task(http.get(f"{base}/slow{at}")) for at in range(3)]
        await until(lambda: _true(server.requests))
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        assert (await http.get(f"{base}/quick")).text == "done"


async def _true(value: object) -> bool:
    return bool(value)


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a certificate for a name; give the server's context and one of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, secret = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem, secret)
    return server, ssl.create_default_context(cafile=str(pem))


async def test_the_original_name_is_told_and_checked_over_tls(tmp_path: Path) -> None:
    """The connection goes to an address, but SNI, certificate and Host are the URL's; a wrong name is refused."""
    server_context, client_context = certificate(tmp_path, "feeds.example")
    told: list[str | None] = []
    server_context.sni_callback = lambda _object, name, _context: told.append(name)
    resolver, _ = resolving([PUBLIC])
    async with listening(answering(b"over tls"), server_context) as server:
        dial = Dial(server.port)
        async with client(dial=dial, resolver=resolver, context=client_context) as http:
            assert (await http.get("https://feeds.example/")).text == "over tls"
            with pytest.raises(httpx2.ConnectError):
                await http.get("https://other.example/")
    assert told == ["feeds.example", "other.example"]
    assert b"host: feeds.example\r\n" in server.requests[0].lower()
    assert set(dial.asked) == {PUBLIC}


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    """Of several vetted addresses a dead one does not hide the others."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        dead = taken.getsockname()[1]
    async with listening(answering()) as server:

        class Half(Dial):
            """Reaches only one of the two."""

            async def connect_tcp(self, host: str, port: int, *_: object, **__: object) -> httpcore2.AsyncNetworkStream:
                """Connect, or be refused."""
                self.asked.append(host)
                assert port == 80
                where = dead if host == PUBLIC_V6 else server.port
                return await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", where)

        dial = Half()
        resolver, _ = resolving([PUBLIC_V6, PUBLIC])
        async with client(dial=dial, resolver=resolver) as http:
            assert (await http.get("http://feeds.example/")).text == "hello"
    assert dial.asked == [PUBLIC_V6, PUBLIC]


async def test_a_name_without_an_address_is_a_passing_fault() -> None:
    """What cannot be resolved now may be tomorrow: it is a connect error, not a forbidden one."""

    async def resolve(host: str, _port: int) -> Collection[str]:
        raise socket.gaierror(f"no {host}")

    empty, _ = resolving([])
    for resolver in (resolve, empty):
        async with client(resolver=resolver) as http:
            with pytest.raises(httpx2.ConnectError):
                await http.get("http://nowhere.example/")


async def test_nothing_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither proxies nor passwords that lie around are used for a stranger's URL."""
    async with listening(answering(b"proxy")) as proxy, listening(answering()) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        secrets = tmp_path / "netrc"
        secrets.write_text("machine 127.0.0.1 login me password secret\n")
        monkeypatch.setenv("NETRC", str(secrets))
        async with client("127.0.0.1") as http:
            assert (await http.get(f"http://127.0.0.1:{server.port}/")).text == "hello"
    assert proxy.connects == 0
    assert b"authorization" not in server.requests[0].lower()
    assert b"user-agent: test/1" in server.requests[0].lower()
