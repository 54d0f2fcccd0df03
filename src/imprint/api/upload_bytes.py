"""Where the bytes of an upload arrive, when they are kept on this machine's disk."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from imprint.api.gate import OPEN, needs
from imprint.api.site import Here
from imprint.blobs.signing import BadUpload, LocalUploads
from imprint.work import upload as uploads

# Not behind the gate: the address itself is the right to send, and its body is no JSON.
routes = APIRouter(prefix="/api", tags=["uploads"])


@routes.put(
    "/uploads/bytes/{token}",
    status_code=201,
    openapi_extra={
        **needs(OPEN),
        "requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    },
)
async def receive(site: Here, request: Request, token: str) -> Response:
    """Send the bytes that were promised; the address is good once."""
    del token  # read as it came, not as it was decoded
    signing = site.stores.uploads
    if not isinstance(signing, LocalUploads):
        raise BadUpload("upload.refused", "Files are sent to the bucket, not here.")
    target = request.scope.get("raw_path", b"").decode("ascii", "replace")
    if request.url.query:
        target += f"?{request.url.query}"
    length = request.headers.get("content-length")
    stored = await uploads.receive(
        site.database,
        site.stores,
        signing,
        request.method,
        target,
        request.stream(),
        content_type=request.headers.get("content-type"),
        length=int(length) if length and length.isdigit() and len(length) < 20 else None,  # noqa: PLR2004 - of any size
    )
    return JSONResponse({"size": stored.size, "sha256": stored.sha256}, status_code=201)
