"""The sandbox as a process of its own: the platform that everybody publishes to, and how much it can take by itself."""

import asyncio
import gzip
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

import httpx2

from imprint.platforms.deviantart import MINOR_VERSION
from imprint.platforms.deviantart_sign_in import DeviantArtLogin

STARTS_WITHIN = 20.0
API = "/deviantart/api/v1/oauth2"
BOUNDARY = "bench"


@dataclass(frozen=True)
class Simulated:
    """A running sandbox."""

    url: str

    async def logins(self, names: Sequence[str]) -> list[DeviantArtLogin]:
        """Make an account for each name, signed in."""
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as control:
            made = []
            for name in names:
                told = await control.post("/_sandbox/accounts", json={"site": "deviantart", "name": name})
                made.append(DeviantArtLogin.model_validate(told.json()["login"]))
        return made

    async def published(self) -> list[str]:
        """Give the key of everything that others could see, in order; a key that is there twice is a duplicate."""
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as control:
            told: list[dict[str, Any]] = (await control.get("/_sandbox/log", params={"what": "publish"})).json()
        return [str(each["data"]["key"]) for each in told]

    async def alone(self, login: DeviantArtLogin, file: bytes, pairs: int, at_once: int, rounds: int) -> dict[str, int]:
        """Measure how many uploads with their publish it serves a second, to a client that does nothing else."""
        kept = [await self._pairs(login, file, pairs, at_once, keep=True) for _ in range(rounds)]
        fresh = [await self._pairs(login, file, pairs, at_once, keep=False) for _ in range(rounds)]
        return {"per_s": round(median(kept)), "fresh_connections_per_s": round(median(fresh))}

    async def _pairs(self, login: DeviantArtLogin, file: bytes, pairs: int, at_once: int, *, keep: bool) -> float:
        left = iter(range(pairs))

        async def client() -> None:
            caller = _Caller(self.url, login, keep=keep)
            try:
                for _ in left:
                    item = await caller.call("stash/submit", f"multipart/form-data; boundary={BOUNDARY}", _form(file))
                    told = f"itemid={item['itemid']}&is_mature=0".encode()
                    await caller.call("stash/publish", "application/x-www-form-urlencoded", told)
            finally:
                caller.close()

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(at_once)))
        return pairs / (time.perf_counter() - began)


class _Caller:
    """The least that can call: bytes out, bytes in."""

    def __init__(self, url: str, login: DeviantArtLogin, *, keep: bool) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._address = host, int(port)
        self._keep = keep
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._headers = (
            f"Host: {host}:{port}\r\nUser-Agent: bench\r\nAccept-Encoding: gzip\r\n"
            f"dA-minor-version: {MINOR_VERSION}\r\n"
            f"Authorization: Bearer {login.access_token.get_secret_value()}\r\n"
            f"Connection: {'keep-alive' if keep else 'close'}\r\n"
        )

    async def call(self, path: str, kind: str, body: bytes) -> dict[str, Any]:
        reader, writer = self._streams = self._streams or await asyncio.open_connection(*self._address)
        top = (
            f"POST {API}/{path} HTTP/1.1\r\n{self._headers}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(top.encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        told: dict[str, Any] = json.loads(gzip.decompress(await reader.readexactly(size)))
        if told.get("status") != "success":
            raise RuntimeError(f"the sandbox said {told}")
        if not self._keep:
            self.close()
        return told

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def _form(file: bytes) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="title"\r\n\r\nHarbour\r\n--{BOUNDARY}\r\n'
    head += 'Content-Disposition: form-data; name="file"; filename="work.png"\r\nContent-Type: image/png\r\n\r\n'
    return head.encode() + file + f"\r\n--{BOUNDARY}--\r\n".encode()


@asynccontextmanager
async def simulated() -> AsyncIterator[Simulated]:
    """Start a sandbox as people do, without faults and without a log on disk; stop it on leaving."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "imprint", "sandbox", "--port", "0", "--json"),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the bench; it stops the sandbox itself
    )
    try:
        async with asyncio.timeout(STARTS_WITHIN):
            url = await _heard(child)
        yield Simulated(url)
    finally:
        with suppress(ProcessLookupError):
            child.terminate()
        await child.wait()


async def _heard(child: asyncio.subprocess.Process) -> str:
    told = b""
    while child.stdout is not None and not told.endswith(b"}\n"):
        line = await child.stdout.readline()
        if not line:
            raise RuntimeError("the sandbox ended before it was ready")
        told += line
    url: str = json.loads(told)["url"]
    return url
