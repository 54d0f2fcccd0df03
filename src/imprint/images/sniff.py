"""Sniff: the real type of a file from its first bytes, never from its name."""

import re
from collections.abc import Callable

HEAD_BYTES = 4096

JPEG, PNG, WEBP, GIF, TIFF, AVIF = (
    "image/jpeg",
    "image/png",
    "image/webp",
    "image/gif",
    "image/tiff",
    "image/avif",
)
ALLOWED = frozenset({JPEG, PNG, WEBP, GIF, TIFF, AVIF})

HTML, SVG, XML, PDF = "text/html", "image/svg+xml", "text/xml", "application/pdf"

_MAGIC = (
    (b"\xff\xd8\xff", JPEG),
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
    (b"II*\x00", TIFF),
    (b"MM\x00*", TIFF),
    (b"II+\x00", TIFF),
    (b"MM\x00+", TIFF),
    (b"%PDF-", PDF),
    (b"BM", "image/bmp"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"\xff\x0a", "image/jxl"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "image/jxl"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "image/jp2"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ", "application/x-msdownload"),
)
_BRANDS = {b"avif": AVIF, b"avis": AVIF, b"heic": "image/heic", b"heix": "image/heic", b"hevc": "image/heic"}
_MARKUP = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(\?xml|!doctype\s+(?:html|svg)|svg|[a-z]+)", re.IGNORECASE | re.DOTALL
)
_SVG = re.compile(rb"<(?:\w+:)?svg[\s>]", re.IGNORECASE)


def sniff(head: bytes) -> str | None:
    """Give the media type that the first bytes speak of, or None when they speak of none we know."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    if head[4:8] == b"ftyp":
        return _brand(head)
    return _markup(head)


def _brand(head: bytes) -> str:
    length = min(int.from_bytes(head[:4], "big"), len(head))
    brands = [head[8:12], *(head[at : at + 4] for at in range(16, length - 3, 4))]
    return next((_BRANDS[brand] for brand in brands if brand in _BRANDS), "video/mp4")


def _markup(head: bytes) -> str | None:
    found = _MARKUP.match(head)
    if found is None:
        return None
    if _SVG.search(head):
        return SVG
    return XML if found[1].lower() == b"?xml" else HTML


def is_complete(kind: str, size: int, read: Callable[[int, int], bytes]) -> bool:
    """Say whether the file ends where its format says; read(at, length) gives bytes. True where that is unknown."""
    tail = read(max(0, size - HEAD_BYTES), HEAD_BYTES)
    match kind:
        case "image/jpeg":
            return b"\xff\xd9" in tail
        case "image/png":
            return b"IEND\xaeB`\x82" in tail
        case "image/gif":
            return tail.endswith(b";")
        case "image/webp":
            return int.from_bytes(read(4, 4), "little") + 8 <= size
        case "image/avif":
            return _boxes_end(size, read)
        case _:
            return True


def _boxes_end(size: int, read: Callable[[int, int], bytes]) -> bool:
    at = 0
    while at < size:
        header = read(at, 16)
        length = int.from_bytes(header[:4], "big")
        if length == 0:  # to the end of the file, wherever that is
            return True
        if length == 1:
            length = int.from_bytes(header[8:16], "big")
        if length < len(b"sizetype"):
            return True  # not boxes at all: damaged rather than cut
        at += length
    return at == size
