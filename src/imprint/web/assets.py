"""Assets: scripts and styles, ours and those the build brought, under names that change with what is in them."""

import gzip
import hashlib
import json
from functools import cached_property
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from imprint.problem import Problem

KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
FOREVER = "public, max-age=31536000, immutable"
LACKING = "The scripts of the page are missing. Install Imprint again (`make install`); everything else works."

routes = APIRouter(include_in_schema=False)


class Assets:
    """What a page loads; read once, when the first visitor comes."""

    def __init__(self, folder: Path) -> None:
        self._ours = folder / "static"
        self._theirs = folder / "assets"
        self._packed: dict[str, tuple[bytes, str]] = {}

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each file in an address."""
        found = dict(self._brought)
        for path in sorted(self._ours.iterdir()):
            mark = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            found[path.name] = f"{path.stem}.{mark}{path.suffix}"
        return found

    @cached_property
    def _brought(self) -> dict[str, str]:
        try:
            listed: dict[str, str] = json.loads((self._theirs / "manifest.json").read_text(encoding="utf-8"))["files"]
        except (OSError, ValueError, KeyError):
            return {}
        return listed

    @cached_property
    def _files(self) -> dict[str, Path]:
        theirs = {shown: self._theirs / shown for shown in self._brought.values()}
        return theirs | {shown: self._ours / name for name, shown in self.names.items() if name not in self._brought}

    @property
    def lacking(self) -> str | None:
        """Say what to do when the build did not bring what the pages need."""
        return None if self._brought else LACKING

    def url(self, name: str) -> str:
        """Give the address of a file."""
        return f"/assets/{self.names[name]}"

    def read(self, shown: str) -> tuple[bytes, str]:
        """Give the bytes and the kind of a file by its name in an address."""
        path = self._files.get(shown)
        if path is None or path.suffix not in KINDS:
            raise Problem("asset.missing", "There is nothing at this address.")
        return path.read_bytes(), KINDS[path.suffix]

    def small(self, shown: str) -> tuple[bytes, str]:
        """Give the same, packed; each is packed once, since it never changes."""
        if shown not in self._packed:
            data, kind = self.read(shown)
            self._packed[shown] = gzip.compress(data, mtime=0), kind
        return self._packed[shown]


@routes.get("/assets/{name}")
async def asset(request: Request, name: str) -> Response:
    """Give a file; it never changes, since another one has another name."""
    assets: Assets = request.app.state.assets
    headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        data, kind = assets.read(name)
    else:
        data, kind = assets.small(name)
        headers["Content-Encoding"] = "gzip"
    return Response(data, media_type=kind, headers=headers)
