"""Multipart: the parts of a multipart/form-data body, as a strict server reads them."""

import re
from dataclasses import dataclass

_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,70})"?')
_PARAMETER = re.compile(r'[; ](name|filename)="([^"]*)"')


@dataclass(frozen=True)
class Part:
    """One part; a file has a filename, even an empty one."""

    name: str
    filename: str | None
    type: str
    data: bytes

    @property
    def text(self) -> str:
        """Give a field's value."""
        return self.data.decode("utf-8", "replace")


def parts(content_type: str, body: bytes) -> list[Part]:
    """Take a body apart; empty when it is not a whole one."""
    boundary = _BOUNDARY.search(content_type)
    if not content_type.startswith("multipart/form-data") or boundary is None:
        return []
    line = b"--" + boundary[1].encode("latin-1")
    pieces = (b"\r\n" + body).split(b"\r\n" + line)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):  # noqa: PLR2004 - what is before the first, and the end
        return []
    return [part for piece in pieces[1:-1] if (part := _part(piece)) is not None]


def _part(piece: bytes) -> Part | None:
    top, found, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (each.partition(":") for each in top.decode("utf-8", "replace").split("\r\n"))
    }
    named = dict(_PARAMETER.findall(headers.get("content-disposition", "")))
    if not found or "name" not in named:
        return None
    return Part(named["name"], named.get("filename"), headers.get("content-type", ""), data)
