"""Metrics: what Prometheus reads, for who looks after the machine."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from imprint.api.gate import OPEN, needs, refuse_beyond, router, who
from imprint.api.site import Here, client
from imprint.work.metrics import CONTENT_TYPE, metrics
from imprint.work.scope import Scope

routes = router("system", "")

# What a proxy on this machine adds, behind which anybody can be.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


@routes.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": "imprint_workers 1.0\n"}}}},
    openapi_extra=needs(OPEN),
)
async def read(site: Here, request: Request) -> Response:
    """Give every figure; needs a key with system:read, or to be asked for on this machine, as localhost."""
    if not _is_local(request, site.settings.public_url):
        refuse_beyond(await who(request), Scope.SYSTEM_READ)
    return Response(await metrics(site.database.whole(), lambda: site.live.count), media_type=CONTENT_TYPE)


def _is_local(request: Request, public_url: str | None) -> bool:
    """Say whether somebody on this machine asks: not one who brings a key, nor one for whom a proxy may ask.

    Nor a page of somebody else in a browser here, whose name was made to lead to this machine: its Host gives it away.
    """
    if public_url or "authorization" in request.headers or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        named = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        return ip_address(client(request)).is_loopback and (named == "localhost" or ip_address(named).is_loopback)
    except ValueError:
        return False
