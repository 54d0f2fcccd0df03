"""Downloads: the bytes of content, whole or a part of them; never shown as a page of ours."""

import re
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse

from imprint.api import problems
from imprint.api.gate import needs, router
from imprint.api.shape import Text
from imprint.api.site import Here, Me, Site
from imprint.problem import Problem
from imprint.work import collection
from imprint.work import content as contents
from imprint.work.content import Bytes
from imprint.work.scope import Scope

routes = router("content")
READ = needs(Scope.CONTENT_READ)
PATH = "/content/{content}/download"
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# What a person uploaded is not ours: a browser may keep it, and may run nothing in it.
HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, no-cache",
}


@routes.head(
    PATH,
    response_class=Response,
    responses={200: {"description": "How many bytes there are, of what type, and their ETag."}},
    openapi_extra=READ,
)
@routes.get(
    PATH,
    response_class=StreamingResponse,
    responses={200: {"description": "The bytes."}, 206: {"description": "The part that was asked for."}},
    openapi_extra=READ,
)
async def download(
    site: Here,
    me: Me,
    request: Request,
    content: UUID,
    variant: Annotated[Text | None, Query(max_length=100, examples=["thumbnail"])] = None,
) -> Response:
    """Give the bytes of a content or of its variant; with Range a part, with If-None-Match only if they changed."""
    async with site.database.connection() as connection:
        await collection.expect(connection, me.owner, content)
        found, held = await contents.bytes_of(connection, content, variant)
    etag = f'"{held.sha256}"'
    headers = {**HEADERS, "ETag": etag, "Content-Disposition": _disposition(found.name)}
    if _names(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    if request.method == "HEAD":  # of all the bytes: a part can only be got
        return Response(None, 200, {**headers, "Content-Length": str(held.size)}, held.content_type)
    try:
        span = _span(request, held.size, etag)
    except Problem as refused:
        told = problems.of(refused)
        told.headers["Content-Range"] = f"bytes */{held.size}"  # so that whoever asked knows what there is
        return told
    if span is None:
        headers["Content-Length"] = str(held.size)
        return StreamingResponse(_bytes(site, held, 0, held.size), 200, headers, held.content_type)
    first, end = span
    headers |= {"Content-Length": str(end - first), "Content-Range": f"bytes {first}-{end - 1}/{held.size}"}
    return StreamingResponse(_bytes(site, held, first, end), 206, headers, held.content_type)


async def _bytes(site: Site, held: Bytes, first: int, end: int) -> AsyncIterator[bytes]:
    async for chunk in site.stores.of(held.store).read(held.key, first, end):
        yield chunk


def _span(request: Request, size: int, etag: str) -> tuple[int, int] | None:
    """Read which part is wanted; None is all of it. What is more than one part is all of it too."""
    given = request.headers.get("range")
    condition = request.headers.get("if-range")
    if given is None or (condition is not None and condition != etag):
        return None
    found = _RANGE.fullmatch(given.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        first, end = max(0, size - int(found[2])), size
    else:
        first, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
    if first >= end:
        raise Problem("content.bad_range", f"There are {size} bytes; this part of them is not there.")
    return first, end


def _names(given: str | None, etag: str) -> bool:
    if given is None:
        return False
    return given.strip() == "*" or etag in {each.strip().removeprefix("W/") for each in given.split(",")}


def _disposition(name: str) -> str:
    plain = re.sub(r'[^ -~]|["\\]', "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
