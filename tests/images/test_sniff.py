"""The first bytes say what a file is; its name never does."""

import pytest

from imprint.images.sniff import ALLOWED, is_complete, sniff
from tests.images.pictures import animation, noise, plain


def test_every_type_that_vips_writes_is_known() -> None:
    """What is taken is recognised."""
    image = noise(16, 16)
    assert sniff(image.jpegsave_buffer()) == "image/jpeg"
    assert sniff(image.pngsave_buffer()) == "image/png"
    assert sniff(image.webpsave_buffer()) == "image/webp"
    assert sniff(animation(2, 8, 8).gifsave_buffer()) == "image/gif"
    assert sniff(image.tiffsave_buffer()) == "image/tiff"
    assert sniff(image.heifsave_buffer(compression="av1")) == "image/avif"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", None),
        (b"hello", None),
        (b"GIF8", None),
        (b"RIFF\x00\x00\x00\x00WAVE", None),
        (b"<!DOCTYPE html><p>", "text/html"),
        (b"\n  <html><svg-ish>", "text/html"),
        (b"<script>alert(1)</script>", "text/html"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml"),
        (b'<?xml version="1.0"?><!-- a --><svg width="1">', "image/svg+xml"),
        (b"\xef\xbb\xbf<!-- <p> --><svg >", "image/svg+xml"),
        (b'<?xml version="1.0"?><s:svg xmlns:s="x"/>', "image/svg+xml"),
        (b'<?xml version="1.0"?><rss>', "text/xml"),
        (b"%PDF-1.7\xff\xd8\xff", "application/pdf"),
        (b"GIF89a/*\x00\x00=1;alert(1)//", "image/gif"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "image/heic"),
        (b"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1avif", "image/avif"),
        (b"\x00\x00\x00\x14ftypisom\x00\x00\x00\x00mp42avif", "video/mp4"),
        (b"\xff\xff\xff\xffftyp", "video/mp4"),
        (b"8BPS\x00\x01", "image/vnd.adobe.photoshop"),
    ],
)
def test_first_bytes(head: bytes, kind: str | None) -> None:
    """Known beginnings, their look-alikes, and what hides behind another beginning."""
    assert sniff(head) == kind


def test_nothing_that_runs_is_allowed() -> None:
    """Markup, documents and archives are not images to us."""
    assert not ALLOWED & {"image/svg+xml", "text/html", "text/xml", "application/pdf", "application/zip", None}


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "gif", "avif"])
def test_a_file_that_was_cut_is_told_from_a_whole_one(kind: str) -> None:
    """Wherever a file is cut, its end is missing."""
    whole = {
        "jpeg": noise(64, 64).jpegsave_buffer(),
        "png": noise(64, 64).pngsave_buffer(),
        "webp": noise(64, 64).webpsave_buffer(),
        "gif": animation(3, 8, 8).gifsave_buffer(),
        "avif": plain(64, 64).heifsave_buffer(compression="av1"),
    }[kind]
    for length in (len(whole) - 1, len(whole) // 2, 40):
        assert not complete(kind, whole[:length])
    assert complete(kind, whole)


def complete(kind: str, data: bytes) -> bool:
    """Ask about bytes in memory."""
    return is_complete(f"image/{kind}", len(data), lambda at, count: data[at : at + count])
