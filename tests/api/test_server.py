"""The server stops in its time, whatever those who are connected do, and without an error in its log."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from time import monotonic

import pytest

from imprint.api import server
from imprint.api.app import Application, Message, Receive, Scope, Send
from imprint.api.server import serve
from imprint.engine.address import address, listen
from imprint.store.db import Database
from tests.api.visitor import answers
from tests.waiting import until

CHUNK = bytes(256 * 1024)
BEGINNING: Message = {"type": "http.response.start", "status": 200, "headers": []}


@asynccontextmanager
async def stopping(database: Database, house: Application, *paths: str, grace: float) -> AsyncIterator[None]:
    """Run a server, connect those who read nothing, and stop it within the block."""
    opened, stop = listen("127.0.0.1", 0), asyncio.Event()
    at = address(opened)
    running = asyncio.create_task(serve(database, lambda: house, opened, stop, grace_seconds=grace))
    await until(lambda: answers(at))
    host, port = at.removeprefix("http://").split(":")
    readers = [socket.create_connection((host, int(port))) for _ in paths]
    try:
        for reader, path in zip(readers, paths, strict=True):
            reader.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        yield
        stop.set()
        await running
    finally:
        for reader in readers:
            reader.close()


async def test_who_reads_nothing_does_not_hold_up_the_stop(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An open download that is not read is cut after a moment; nobody waits until the grace is over."""
    monkeypatch.setattr(server, "STALLED_SECONDS", 0.3)
    stuck, ended = asyncio.Event(), asyncio.Event()

    async def download(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(BEGINNING)
        for _ in range(100):  # more than lies anywhere on the way
            stuck_soon = asyncio.get_running_loop().call_later(0.2, stuck.set)
            await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
            stuck_soon.cancel()
        await send({"type": "http.response.body", "body": b""})
        ended.set()

    async with stopping(database, download, "/", "/", grace=20):
        await asyncio.wait_for(stuck.wait(), 10)
        began = monotonic()
    assert monotonic() - began < 3
    assert ended.is_set()
    assert not caplog.records


async def test_a_download_that_is_read_comes_to_its_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes what is sent gets all of it, also when that lasts longer than a pause may."""
    monkeypatch.setattr(server, "STALLED_SECONDS", 0.8)
    opened, stop = listen("127.0.0.1", 0), asyncio.Event()
    at = address(opened)

    async def download(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(BEGINNING)
        for last in (*[False] * 40, True):
            await send({"type": "http.response.body", "body": CHUNK, "more_body": not last})

    running = asyncio.create_task(serve(database, lambda: download, opened, stop, grace_seconds=20))
    await until(lambda: answers(at))
    host, port = at.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    with closing(writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        read, began = 0, monotonic()
        stop.set()
        while got := await reader.read(len(CHUNK)):
            read += len(got)
            if monotonic() - began < 1.2:
                await asyncio.sleep(0.03)  # slow, but at it
    await running
    assert read >= 41 * len(CHUNK)


async def test_what_never_ends_is_cut_off_quietly(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """A request that goes on when the time is over is cancelled; that is one line in the log, and no traceback."""
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def hangs(_scope: Scope, _receive: Receive, _send: Send) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    async with stopping(database, hangs, "/", grace=0.3):
        await asyncio.wait_for(begun.wait(), 10)
        began = monotonic()
    assert monotonic() - began < 2
    assert cleaned.is_set()
    assert [each for each in caplog.records if each.levelno >= logging.ERROR or each.exc_info] == []
