"""Events: a person's own changes as they happen, as server-sent events."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from imprint.api.app import STOP
from imprint.api.gate import SIGNED_IN, needs, router, who
from imprint.api.shape import Text
from imprint.api.site import Here, Me
from imprint.problem import Problem
from imprint.work.caller import Caller
from imprint.work.event import heartbeat
from imprint.work.live import Live, Stream

routes = router("events")

HEARTBEAT = 15.0
LAST_SECONDS = 1.0
RETRY = b"retry: 2000\n\n"
EXAMPLE = (
    "event: publication\nid: 5f0c2d1e-4711\n"
    'data: {"id": "8a7d…", "status": "success", "move": "succeed", "postId": "51b0…"}\n\n'
)
TOLD: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events without an end. `post`, `publication` (with `postId`), `content`, `batch`, `series`, "
        "`notice` (with `seriesId`) and `health` (`of` an account or a source) each carry what changed: `id`, "
        "`status` and `move`, which is `edit` or `delete` when the status is the same. `reset`: too much was missed, "
        "load everything anew. An event may come twice, and none is missed when `Last-Event-ID` is brought back.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
    }
}


class EventStream(Response):
    """An answer that goes on until its reader leaves, is too slow, may no longer, or we stop."""

    media_type = "text/event-stream"

    def __init__(self, live: Live, stream: Stream, missed: bytes, request: Request, caller: Caller) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]  # nobody knows it
        self._live = live
        self._stream = stream
        self._missed = missed
        self._request = request
        self._caller = caller

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Tell what was missed, and then what comes."""
        telling = asyncio.create_task(self._tell(send))
        ends = {telling, asyncio.create_task(_left(receive)), asyncio.create_task(self._stream.over.wait())}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._live.leave(self._stream)
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        with suppress(TimeoutError):  # one who reads nothing does not read the end either
            async with asyncio.timeout(LAST_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        text: bytes | None = RETRY + self._missed
        self._missed = b""
        while True:
            if text is None:
                if not await self._welcome():
                    return
                text = heartbeat(self._live.at())
            await send({"type": "http.response.body", "body": text, "more_body": True})
            text = await self._stream.next(HEARTBEAT)

    async def _welcome(self) -> bool:
        """Say whether whoever reads this still may, and sees the same as when they came."""
        try:
            now = await who(self._request)
        except Problem:
            return False
        return (now.person, now.owner, now.scopes) == (self._caller.person, self._caller.owner, self._caller.scopes)


@routes.get("/events", status_code=200, response_class=EventStream, responses=TOLD, openapi_extra=needs(SIGNED_IN))
async def events(
    site: Here,
    me: Me,
    request: Request,
    after: Annotated[
        Text | None, Query(max_length=40, description="As Last-Event-ID, for those who cannot send a header.")
    ] = None,
) -> Response:
    """Tell what of yours changes as it changes, as server-sent events; go on where a connection broke."""
    since = request.headers.get("last-event-id") or after
    site.live.end_with(request.scope[STOP])
    stream, missed = await site.live.open(me.owner, me.scopes, since)
    return EventStream(site.live, stream, missed, request, me)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
