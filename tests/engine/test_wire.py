"""The wire: whatever happens to a connection, what is said about it is what can be proved."""

import asyncio
import gzip
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from imprint.engine.wire import LARGEST_ANSWER, Patience, Wire, _Exchange, _Watched
from imprint.platforms.failure import NoAnswer, NotYet, Refused, Stage
from imprint.platforms.request import Multipart, Request, Text
from imprint.platforms.work import File

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def reset(writer: asyncio.StreamWriter) -> None:
    """Cut a connection as a crash does: RST, not FIN."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve connections one by one by hand; give the address."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def head(reader: asyncio.StreamReader) -> bytes:
    """Read the request up to the end of its headers."""
    return await reader.readuntil(b"\r\n\r\n")


def answering(answer: bytes) -> Handler:
    """Answer every request with the same bytes, then close."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(answer)
        await writer.drain()
        writer.write_eof()
        await reader.read()

    return handler


def post(url: str, data: bytes = b'{"a":1}') -> Request:
    """Make a request that publishes something."""
    return Request("publish", "POST", url, body=Text(data))


async def failed(url: str, seconds: float = 5, wire: Wire | None = None) -> NotYet | NoAnswer:
    """Send and give the failure."""
    with pytest.raises((NotYet, NoAnswer)) as seen:
        await (wire or Wire()).within(seconds).send(post(url))
    assert isinstance(seen.value, NotYet | NoAnswer)
    return seen.value


async def test_an_answer_is_whole_and_unpacked() -> None:
    """Status, headers and body come back as they were meant."""
    body = gzip.compress(b'{"status":"success"}')
    seen: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head(reader))
        seen.append(await reader.readexactly(7))
        top = f"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nX-Is: one\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(top.encode() + body)
        await writer.drain()

    async with serving(handler) as url:
        answer = await Wire().within(5).send(post(url + "/a?b=c"))
    assert (answer.status, answer.json(), answer.headers["x-is"]) == (201, {"status": "success"}, "one")
    assert seen[0].startswith(b"POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nUser-Agent: Imprint/1\r\n" in seen[0]
    assert seen[1] == b'{"a":1}'


@pytest.mark.parametrize("status", [301, 302, 307, 308, 404, 429, 500, 503])
async def test_every_status_is_an_answer_and_no_redirect_is_followed(status: int) -> None:
    """What a status means is for the adapter to say; one request makes one connection."""
    calls = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await head(reader)
        writer.write(f"HTTP/1.1 {status} X\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    async with serving(handler) as url:
        answer = await Wire().within(5).send(post(url))
    assert (answer.status, calls) == (status, 1)


async def test_each_request_has_a_connection_of_its_own() -> None:
    """Also where the server would keep the connection: a reused one may be dead already."""
    ports: list[int] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.append(writer.get_extra_info("peername")[1])
        while True:
            await head(reader)
            await reader.readexactly(7)
            writer.write(OK)
            await writer.drain()

    async with serving(handler) as url:
        wire = Wire()
        for _ in range(3):
            assert (await wire.within(5).send(post(url))).ok
    assert len(set(ports)) == 3


async def test_connection_refused_is_not_yet() -> None:
    """Nobody listens: nothing can have left."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        failure = await failed(f"http://127.0.0.1:{closed.getsockname()[1]}")
    assert isinstance(failure, NotYet)
    assert failure.evidence
    assert (failure.evidence.stage, failure.evidence.left) == (Stage.CONNECTING, False)


async def test_a_name_that_cannot_be_found_is_not_yet() -> None:
    """DNS failures are made by a resolver of our own: no question leaves this machine."""

    async def unknown(host: str, port: int) -> list[str]:
        assert (host, port) == ("nowhere.invalid", 443)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def nothing(_host: str, _port: int) -> list[str]:
        return []

    async def silent(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    for resolve in (unknown, nothing):
        failure = await failed("https://nowhere.invalid/x", wire=Wire(resolve=resolve))
        assert isinstance(failure, NotYet)
    for seconds, patience in ((0.05, Patience()), (5, Patience(connect=0.05))):
        failure = await failed("https://nowhere.invalid/x", seconds, Wire(patience, resolve=silent))
        assert isinstance(failure, NotYet)


async def test_the_second_address_is_tried() -> None:
    """A host with an address that is dead is reached at the other, and the request is sent once."""
    async with serving(answering(OK)) as url:
        port = url.rpartition(":")[2]

        async def both(_host: str, _port: int) -> list[str]:
            return ["127.0.0.2", "127.0.0.1"]

        assert (await Wire(resolve=both).within(5).send(post(f"http://two.invalid:{port}"))).ok


async def test_an_address_that_is_not_allowed_is_never_called() -> None:
    """Where people must not reach the server's own network, a name that leads there is refused."""
    seen: list[str] = []

    async def both(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1", "::1"]

    def never(address: str) -> bool:
        seen.append(address)
        return False

    async with serving(answering(OK)) as url:
        with pytest.raises(Refused) as refused:
            await Wire(resolve=both, allowed=never).within(5).send(post(url))
    assert refused.value.code == "wire.address_not_allowed"
    assert seen == ["127.0.0.1", "::1"]


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    """Make the TLS context of a server whose certificate nobody knows."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


async def test_a_certificate_nobody_knows_is_not_yet(tls: ssl.SSLContext) -> None:
    """TLS fails before the request: nothing left."""
    async with serving(answering(OK), tls) as url:
        failure = await failed(url)
    assert isinstance(failure, NotYet)


async def test_tls_that_is_trusted_works(tls: ssl.SSLContext, tmp_path: Path) -> None:
    """The same server is fine once its certificate is known."""
    trust = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    async with serving(answering(OK), tls) as url:
        assert (await Wire(trust=trust).within(5).send(post(url))).ok


async def test_a_reset_instead_of_tls_is_not_yet() -> None:
    """Where the platform speaks TLS, and all real ones do, a reset before any byte proves that nothing left."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        reset(writer)

    async with serving(handler) as url:
        failure = await failed(url.replace("http:", "https:"))
    assert isinstance(failure, NotYet)


async def test_tls_that_hangs_is_not_yet() -> None:
    """A server that never finishes its handshake has not been told anything."""

    async def handler(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(handler) as url:
        failure = await failed(url.replace("http:", "https:"), 0.2)
    assert isinstance(failure, NotYet)


async def test_a_reset_in_plain_text_is_no_answer() -> None:
    """Without TLS the first write may have left some bytes before it failed: unknown, not proved."""

    async def handler(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reset(writer)

    async with serving(handler) as url:
        failure = await failed(url)
    assert isinstance(failure, NoAnswer)
    assert failure.evidence.left


async def test_a_reset_after_the_request_is_no_answer() -> None:
    """All was sent, nothing came back."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        await reader.readexactly(7)
        reset(writer)

    async with serving(handler) as url:
        failure = await failed(url)
    assert isinstance(failure, NoAnswer)
    assert (failure.code, failure.evidence.stage) == ("wire.broken_off", Stage.WAITING)


async def test_a_reset_in_the_middle_of_the_body_is_no_answer() -> None:
    """Some of the body was sent; what the other side made of it nobody knows."""
    size = 20_000_000

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield bytes(100_000)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        await reader.readexactly(100_000)
        reset(writer)

    file = File("a.png", "image/png", size, sha256(bytes(size)).hexdigest(), chunks)
    told: list[int] = []
    async with serving(handler) as url:
        with pytest.raises(NoAnswer) as lost:
            await Wire().within(5).send(Request("up", "POST", url, body=Multipart((), "f", file, "k")), told.append)
    assert lost.value.evidence.stage is Stage.SENDING
    assert told == sorted(told)
    assert 0 < told[-1] < size


@pytest.mark.parametrize("blind", [(_Exchange, "_trace"), (_Watched, "write")], ids=["trace", "stream"])
async def test_one_witness_is_enough(monkeypatch: pytest.MonkeyPatch, blind: tuple[type, str]) -> None:
    """Should the trace or the stream ever fall silent, the other still says that something left."""

    async def write(self: _Watched, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def trace(_self: _Exchange, _event: str, _info: object) -> None:
        pass

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        reset(writer)

    monkeypatch.setattr(*blind, write if blind[1] == "write" else trace)
    async with serving(handler) as url:
        assert isinstance(await failed(url), NoAnswer)


HALVES = {
    "half a status": b"HTTP/1.1 20",
    "half of the headers": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half a body": b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"status":"succ',
    "half a chunked body": b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{"status":',
    "half a gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"
    + gzip.compress(b"{}" * 99)[:20],
    "no gzip at all": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("half", HALVES)
async def test_half_an_answer_is_no_answer(half: str) -> None:
    """An answer that ends early or cannot be read says nothing, whatever its status."""
    async with serving(answering(HALVES[half])) as url:
        failure = await failed(url)
    assert isinstance(failure, NoAnswer)
    assert failure.evidence.left
    assert failure.evidence.status == (200 if b"\r\n\r\n" in HALVES[half] and b"HTTP/1.1 200" in HALVES[half] else None)


async def test_a_blank_answer_is_an_answer() -> None:
    """A blank 200 is handed to the adapter, which finds no id in it."""
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + b" " * 20)) as url:
        answer = await Wire().within(5).send(post(url))
    assert (answer.status, answer.body, answer.json()) == (200, b" " * 20, {})


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_without_end_is_no_answer(packed: bool) -> None:  # noqa: FBT001 - a case
    """Neither a flood nor a bomb fills the memory."""
    bomb = gzip.compress(bytes(LARGEST_ANSWER * 4))

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n" + (b"Content-Encoding: gzip\r\n" if packed else b"") + b"\r\n")
        if packed:
            writer.write(bomb)
        while not packed:
            writer.write(bytes(1_000_000))
            await writer.drain()
        await writer.drain()

    async with serving(handler) as url:
        failure = await failed(url)
    assert isinstance(failure, NoAnswer)
    assert failure.evidence.stage is Stage.READING


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one byte at a time for ever, so that no single read ever takes long."""
    await head(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(100_000):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.005)


async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Take everything and say nothing."""
    await reader.read()


@pytest.mark.parametrize(("handler", "stage"), [(hang, Stage.WAITING), (drip, Stage.READING)])
async def test_the_deadline_is_absolute(handler: Handler, stage: Stage) -> None:
    """A silent server and one that drips are both left at the deadline, and what they did is unknown."""
    loop = asyncio.get_running_loop()
    async with serving(handler) as url:
        begun = loop.time()
        failure = await failed(url, 0.3)
    assert 0.25 < loop.time() - begun < 3
    assert isinstance(failure, NoAnswer)
    assert (failure.code, failure.evidence.stage) == ("wire.no_answer_in_time", stage)


async def test_patience_ends_before_the_deadline() -> None:
    """A read that takes longer than it may is the end as well."""
    async with serving(hang) as url:
        failure = await failed(url, 60, Wire(Patience(read=0.1)))
    assert isinstance(failure, NoAnswer)


async def test_nothing_is_sent_after_the_deadline() -> None:
    """A process that wakes up too late does not even connect."""
    calls: list[str] = []

    async def resolve(host: str, _port: int) -> list[str]:
        calls.append(host)
        return ["127.0.0.1"]

    failure = await failed("http://late.invalid", -1, Wire(resolve=resolve))
    assert isinstance(failure, NotYet)
    assert calls == []


async def test_cancelling_ends_the_connection() -> None:
    """Who is cancelled lets go at once, and the other side sees it."""
    gone = asyncio.Event()
    there = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await head(reader)
        there.set()
        await reader.read()
        gone.set()

    async with serving(handler) as url:
        task = asyncio.create_task(Wire().within(60).send(post(url)))
        await there.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)


@pytest.mark.parametrize(
    "request_",
    [
        Request("x", "POST", "ftp://a.invalid/x"),
        Request("x", "POST", "http:///x"),
        Request("x", "POST", "not an address"),
        Request("x", "POST", "http://a.invalid:99999999/"),
        Request("x", "POST", "http://[::1"),
        Request("x", "GET /evil HTTP/1.1\r\n", "http://a.invalid/"),
        Request("x", "POST", "http://a.invalid/", headers=(("X", "a\r\nY: b"),)),
        Request("x", "POST", "http://a.invalid/", headers=(("X\r\nY", "b"),)),
        Request("x", "POST", "http://a.invalid/", headers=(("X", "a\0"),)),
    ],
    ids=range(9),
)
async def test_what_cannot_be_written_down_is_refused(request_: Request) -> None:
    """A bad address or a smuggled header is refused before anything is opened."""
    calls: list[str] = []

    async def resolve(host: str, _port: int) -> list[str]:
        calls.append(host)
        return []

    with pytest.raises(Refused) as refused:
        await Wire(resolve=resolve).within(5).send(request_)
    assert refused.value.code == "wire.malformed"
    assert calls == []


async def test_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that somebody has set for other programs does not get our tokens."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serving(answering(OK)) as url:
        assert (await Wire().within(5).send(post(url))).ok


async def test_a_file_that_changed_is_never_sent_whole() -> None:
    """Bytes that are not what was confirmed stop before the last of them: the platform gets no complete file."""
    whole = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        top = await head(reader)
        length = int(top.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        whole.set()
        writer.write(OK)

    for data in (b"a" * 99_999, b"a" * 100_001, b"a" * 99_999 + b"b"):

        async def chunks(data: bytes = data) -> AsyncIterator[bytes]:
            for at in range(0, len(data), 1000):
                yield data[at : at + 1000]

        file = File("a.png", "image/png", 100_000, sha256(b"a" * 100_000).hexdigest(), chunks)
        async with serving(handler) as url:
            with pytest.raises(Refused) as refused:
                await Wire().within(5).send(Request("up", "POST", url, body=Multipart((), "f", file, "k")))
        assert refused.value.code == "file.changed"
    assert not whole.is_set()
