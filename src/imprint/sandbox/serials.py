"""Simulated sources: MangaDex's feed, MangaPark's GraphQL, and RSS, Atom and JSON feeds, on a real HTTP server.

GET  /mangadex/manga/{id}/feed        POST /mangapark/apo/        GET /feeds/{number}.rss | .atom | .json
POST /sandbox/series {title, chapters, every}     POST /sandbox/series/{number} {number, title, …}: a new chapter
POST /sandbox/faults {kind, on, times, …}         GET  /sandbox/log
"""

import asyncio
import json
import re
import socket
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from xml.sax.saxutils import escape

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from imprint.sandbox.serial_faults import ASGI, Fault, Kind, Receive, Send, hang_up, spoil
from imprint.sandbox.serial_world import Item, Line, Series, World

PAGE, CAP = 500, 10_000
TTL = 30  # minutes, as the RSS feeds claim
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def serials(world: World) -> ASGI:
    """Make the simulated sources of a world, their faults included."""
    shop = _Shop(world)
    routes = [
        Route("/mangadex/manga/{id}/feed", shop.mangadex),
        Route("/mangapark/apo/", shop.mangapark, methods=["POST"]),
        Route("/feeds/{name}.{kind}", shop.feed),
        Route("/sandbox/series", shop.begin, methods=["POST"]),
        Route("/sandbox/series/{ref}", shop.publish, methods=["POST"]),
        Route("/sandbox/faults", shop.misbehave, methods=["POST"]),
        Route("/sandbox/log", shop.log),
    ]
    return _Gate(Starlette(routes=routes), world)


class _Gate:
    """Stands before the shop: lets faults happen, counts requests, writes the log."""

    def __init__(self, shop: Starlette, world: World) -> None:
        self._shop = shop
        self._world = world
        self._seen: dict[str, deque[datetime]] = defaultdict(deque)
        self._ignored = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or path.startswith("/sandbox/"):
            await self._shop(scope, receive, send)
            return
        fired = self._world.faults.due(path)
        for fault in fired:
            if fault.kind is Kind.LATENCY:
                await asyncio.sleep(fault.seconds)
        scope["fired"], scope["carried"] = fired, 0
        if any(fault.kind is Kind.RESET for fault in fired):
            self._write(scope, 0, fired)
            await hang_up(receive)
            return
        early = self._limited(scope) or _status(fired)
        if early is not None:
            self._write(scope, early.status_code, fired)
            await early(scope, receive, send)
            return
        await self._serve(scope, receive, send, fired)

    async def _serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, fired: list[Fault]) -> None:
        """Let the shop answer, spoil the answer as the faults demand, then send it."""
        start: dict[str, Any] = {}
        body = bytearray()

        async def collect(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                body.extend(message.get("body", b""))

        await self._shop(scope, receive, collect)
        spoiled = spoil(bytes(body), fired) if start["status"] == 200 else bytes(body)  # noqa: PLR2004 - OK
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        if any(fault.kind is Kind.PAGE for fault in fired):
            headers = [(name, value) for name, value in headers if name != b"content-type"]
            headers.append((b"content-type", b"text/html"))
        headers.append((b"content-length", str(len(spoiled)).encode()))
        self._write(scope, start["status"], fired)
        await send({"type": "http.response.start", "status": start["status"], "headers": headers})
        if any(fault.kind is Kind.CUT for fault in fired):
            await send({"type": "http.response.body", "body": spoiled[: len(spoiled) // 2], "more_body": True})
            await hang_up(receive)
            return
        await send({"type": "http.response.body", "body": spoiled})

    def _limited(self, scope: MutableMapping[str, Any]) -> Response | None:
        """Count a client's requests as MangaDex does: too many are a 429, those who go on are shut out."""
        if self._world.rate is None:
            return None
        seen, now = self._seen[str((scope.get("client") or ("?",))[0])], self._world.now()
        while seen and now - seen[0] >= timedelta(seconds=1):
            seen.popleft()
        if len(seen) < self._world.rate:
            seen.append(now)
            self._ignored = 0
            return None
        self._ignored += 1
        if self._ignored > 3:  # noqa: PLR2004 - nobody knows the true number
            return Response(status_code=403, media_type="text/html")
        until = str(int(now.timestamp()) + 1)
        return JSONResponse(_error(429, "Too Many Requests"), 429, {"X-RateLimit-Retry-After": until})

    def _write(self, scope: MutableMapping[str, Any], status: int, fired: list[Fault]) -> None:
        query = scope.get("query_string", b"").decode()
        kinds = tuple(str(fault.kind) for fault in fired)
        at = self._world.now().isoformat()
        self._world.log.add(Line(at, scope["method"], scope["path"], query, status, kinds, scope["carried"]))


class _Shop:
    """Answers as the real ones do."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def mangadex(self, request: Request) -> Response:
        """Imitate `GET /manga/{id}/feed`."""
        if not request.headers.get("user-agent") or "via" in request.headers:
            return JSONResponse(_error(400, "Bad Request"), 400)
        query = request.query_params
        limit, offset = query.get("limit", "100"), query.get("offset", "0")
        if not (
            limit.isdecimal() and offset.isdecimal() and 1 <= int(limit) <= PAGE and int(limit) + int(offset) <= CAP
        ):
            return JSONResponse(_error(400, "limit and offset"), 400)
        since, created = query.get("updatedAtSince"), query.get("createdAtSince")
        if any(stamp is not None and not _STAMP.fullmatch(stamp) for stamp in (since, created)):
            return JSONResponse(_error(400, "a time without zone"), 400)
        series = self._world.find(request.path_params["id"])
        if series is None or series.id != request.path_params["id"]:
            return JSONResponse(_error(404, "Not Found"), 404)
        languages = query.getlist("translatedLanguage[]")
        found = [
            item
            for item in reversed(series.newest_first())
            if (not languages or item.language in languages)
            and (since is None or item.updated_at >= datetime.fromisoformat(since).replace(tzinfo=UTC))
            and (created is None or item.created_at >= datetime.fromisoformat(created).replace(tzinfo=UTC))
        ]
        page = self._shaken(request, found[int(offset) : int(offset) + int(limit)])
        body = {"result": "ok", "response": "collection", "data": [_mangadex(item) for item in page]}
        return JSONResponse(body | {"limit": int(limit), "offset": int(offset), "total": len(found)})

    async def mangapark(self, request: Request) -> Response:
        """Imitate the GraphQL query `get_comicChapterList`: uploads of one chapter are folded under the first."""
        try:
            asked = json.loads(await request.body())
            comic, known = str(asked["variables"]["comicId"]), "get_comicChapterList" in asked["query"]
        except (ValueError, KeyError, TypeError):
            comic, known = "", False
        if not known:
            return JSONResponse({"errors": [{"message": "Syntax Error"}]})
        series = self._world.find(comic)
        if series is None:
            return JSONResponse({"data": {"get_comicChapterList": None}})
        folded: dict[str, list[Item]] = defaultdict(list)
        for item in reversed(series.newest_first()):
            folded[item.number or item.id].append(item)
        nodes = []
        for first, *doubles in folded.values():
            node = _mangapark(first)
            node["data"]["dupChapters"] = [_mangapark(each) for each in doubles]
            nodes.append(node)
        return JSONResponse({"data": {"get_comicChapterList": self._shaken(request, nodes)}})

    async def feed(self, request: Request) -> Response:
        """Give a series as a feed, unless the client has it already."""
        series, kind = self._world.find(request.path_params["name"]), request.path_params["kind"]
        if series is None or kind not in _WRITERS:
            return Response("no such feed", 404)
        headers = {
            "ETag": f'"{series.id[:8]}-{series.revision}-{kind}"',
            "Last-Modified": format_datetime(series.changed_at.astimezone(UTC), usegmt=True),
            "Cache-Control": "max-age=600",
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        media, write = _WRITERS[kind]
        return Response(write(series, self._shaken(request, series.newest_first())), 200, headers, media)

    def _shaken(self, request: Request, items: list[Any]) -> list[Any]:
        shaken = self._world.faults.shake(items, request.scope["fired"])
        request.scope["carried"] = len(shaken)
        return shaken

    async def begin(self, request: Request) -> Response:
        """Begin a series."""
        asked = await request.json()
        every = timedelta(seconds=asked["every"]) if asked.get("every") else None
        series = self._world.add(asked["title"], int(asked.get("chapters", 0)), every=every)
        return JSONResponse({"id": series.id, "number": series.serial}, 201)

    async def publish(self, request: Request) -> Response:
        """Add a chapter: the next one, unless another number is named, or null for none."""
        series = self._world.find(request.path_params["ref"])
        if series is None:
            return Response("no such series", 404)
        asked = await request.json()
        number = asked.get("number") if "number" in asked else self._world.next_number(series)
        item = self._world.publish(series, number, title=asked.get("title"), volume=asked.get("volume"))
        return JSONResponse({"id": item.id, "number": item.number}, 201)

    async def misbehave(self, request: Request) -> Response:
        """Put a fault in force."""
        asked = await request.json()
        self._world.faults.add(Fault(**asked | {"kind": Kind(asked["kind"])}))
        return Response(status_code=204)

    async def log(self, _request: Request) -> Response:
        """Show the log."""
        return JSONResponse([asdict(line) for line in self._world.log.lines])


def _status(fired: list[Fault]) -> Response | None:
    for fault in fired:
        if fault.kind is Kind.STATUS:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after is not None else {}
            return Response(f"simulated {fault.status}", fault.status, headers)
    return None


def _error(status: int, title: str) -> dict[str, Any]:
    error = {"id": f"sandbox-{status}", "status": status, "title": title, "detail": title, "context": None}
    return {"result": "error", "errors": [error]}


def _name(item: Item) -> str:
    number = f"Chapter {item.number}" if item.number else ""
    volume = f"Vol.{item.volume} " if item.volume and item.number else ""
    return f"{volume}{number}{': ' if number and item.title else ''}{item.title or ''}"


def _mangadex(item: Item) -> dict[str, Any]:
    fields = {
        "volume": item.volume,
        "chapter": item.number,
        "title": item.title or "",
        "translatedLanguage": item.language,
        "externalUrl": item.external,
        "isUnavailable": False,
        "publishAt": item.created_at.isoformat(),
        "readableAt": item.created_at.isoformat(),
        "createdAt": item.created_at.isoformat(),
        "updatedAt": item.updated_at.isoformat(),
        "pages": 0 if item.external else 20,
        "version": 1,
    }
    group = {"id": "g", "type": "scanlation_group", "attributes": {"name": item.group}}
    uploader = {"id": "u", "type": "user", "attributes": {"username": "sandbox"}}
    related = [group, uploader] if item.group else [uploader]
    return {"id": item.id, "type": "chapter", "attributes": fields, "relationships": related}


def _mangapark(item: Item) -> dict[str, Any]:
    return {
        "data": {
            "id": str(item.serial),
            "dname": _name(item) or "Notitle",
            "title": item.title,
            "lang": item.language,
            "dateCreate": int(item.created_at.timestamp() * 1000),
            "dateModify": int(item.updated_at.timestamp() * 1000),
            "urlPath": f"/title/{item.serial // 1_000_000}/{item.serial}",
            "srcTitle": item.group,
            "userNode": {"data": {"name": "sandbox"}},
        }
    }


def _rss(series: Series, items: list[Item]) -> bytes:
    entries = "".join(
        f"<item><title>{escape(_name(item))}</title><link>https://sandbox.test/read/{item.serial}</link>"
        f'<guid isPermaLink="false">{item.id}</guid><pubDate>{format_datetime(item.created_at)}</pubDate>'
        f"<dc:creator>{escape(item.group or '')}</dc:creator><dc:language>{item.language}</dc:language></item>"
        for item in items
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
        f"<title>{escape(series.title)}</title><link>https://sandbox.test/</link><ttl>{TTL}</ttl>"
        f"<skipHours><hour>3</hour><hour>4</hour></skipHours>{entries}</channel></rss>"
    ).encode()


def _atom(series: Series, items: list[Item]) -> bytes:
    entries = "".join(
        f"<entry xml:lang='{item.language}'><title>{escape(_name(item))}</title><id>urn:uuid:{item.id}</id>"
        f"<link href='https://sandbox.test/read/{item.serial}'/><published>{item.created_at.isoformat()}</published>"
        f"<updated>{item.updated_at.isoformat()}</updated><author><name>{escape(item.group or '')}</name></author>"
        "</entry>"
        for item in items
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(series.title)}'
        f"</title><id>urn:uuid:{series.id}</id><updated>{series.changed_at.isoformat()}</updated>{entries}</feed>"
    ).encode()


def _json(series: Series, items: list[Item]) -> bytes:
    entries = [
        {
            "id": item.id,
            "url": f"https://sandbox.test/read/{item.serial}",
            "title": _name(item),
            "date_published": item.created_at.isoformat(),
            "date_modified": item.updated_at.isoformat(),
            "authors": [{"name": item.group}],
            "language": item.language,
        }
        for item in items
    ]
    body = {"version": "https://jsonfeed.org/version/1.1", "title": series.title, "items": entries}
    return json.dumps(body, ensure_ascii=False).encode()


_WRITERS = {
    "rss": ("application/rss+xml; charset=utf-8", _rss),
    "atom": ("application/atom+xml; charset=utf-8", _atom),
    "json": ("application/feed+json; charset=utf-8", _json),
}


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs us."""
        yield


@asynccontextmanager
async def serving(app: ASGI, port: int = 0) -> AsyncIterator[str]:
    """Serve on this machine only, on a free port unless one is named; give the base URL."""
    # Named TCP: asyncio turns off Nagle's delay, 40 ms an answer, only for sockets that say what they are.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(512)
    config = uvicorn.Config(app, log_config=None, access_log=False, log_level="critical", lifespan="off")
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        # The socket listens already: who connects before uvicorn is ready waits, and is served.
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        await running
        listening.close()
