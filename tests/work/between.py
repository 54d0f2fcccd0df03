"""Between us and PostgreSQL: passes everything on, until it is told to lose the answer to a statement or a commit."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


@dataclass
class Between:
    """A way to a database on which answers can be lost."""

    url: str
    lose: str = ""  # of the next statement whose text has this in it
    for_good: bool = False
    lost: int = 0
    away: bool = False  # nobody gets through
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def lose_answer_to(self, text: str, *, for_good: bool = False) -> None:
        """Let the next statement with this text reach the server, and cut the way before its answer comes back.

        For good: from that moment on nobody gets through.
        """
        self.lose, self.for_good = text, for_good

    def go_away(self) -> None:
        """Cut every connection and let nobody through."""
        self.away = True
        for each in self._open:
            each.transport.abort()

    def come_back(self) -> None:
        """Let everybody through again."""
        self.away = False


class _Way:
    """One connection: reads messages off both directions and knows which statement is under way."""

    def __init__(self, of: Between) -> None:
        self._of = of
        self._texts: dict[bytes, str] = {}
        self.losing = False

    async def out(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what we say."""
        size = await reader.readexactly(4)
        writer.write(size + await reader.readexactly(struct.unpack("!I", size)[0] - 4))  # the first has no kind
        while True:
            kind, body = await _message(reader)
            self._see(kind, body)
            writer.write(kind + struct.pack("!I", len(body) + 4) + body)

    async def back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what the server says, unless it is to be lost."""
        while True:
            kind, body = await _message(reader)
            if not self.losing:
                writer.write(kind + struct.pack("!I", len(body) + 4) + body)
            elif kind == b"Z":  # it is done, and committed
                self._of.lost += 1
                if self._of.for_good:
                    self._of.go_away()
                return

    def _see(self, kind: bytes, body: bytes) -> None:
        said = ""
        if kind == b"P":
            name, _, rest = body.partition(b"\0")
            self._texts[name] = rest.partition(b"\0")[0].decode()
        elif kind == b"B":
            said = self._texts.get(body.partition(b"\0")[2].partition(b"\0")[0], "")
        elif kind == b"Q":
            said = body.decode()
        if self._of.lose and self._of.lose in said:
            self._of.lose = ""
            self.losing = True


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    return head[:1], await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


@asynccontextmanager
async def between(url: str, folder: Path) -> AsyncIterator[Between]:
    """Stand between us and a server on this machine, with a socket of one's own in a folder."""
    asked = parse_qs(urlsplit(url).query)
    server, name = asked["host"][0], f".s.PGSQL.{asked.get('port', ['5432'])[0]}"
    of = Between(url.replace(server, str(folder)))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if of.away:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_unix_connection(str(Path(server) / name))
        of._open |= {writer, far_writer}
        way = _Way(of)
        both = [asyncio.create_task(way.out(reader, far_writer)), asyncio.create_task(way.back(far_reader, writer))]
        with suppress(asyncio.IncompleteReadError, OSError):
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        for end in (writer, far_writer):
            end.transport.abort()
            of._open.discard(end)

    listening = await asyncio.start_unix_server(connected, str(folder / name))
    try:
        yield of
    finally:
        of.go_away()
        listening.close()
