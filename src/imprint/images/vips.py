"""libvips behind types: the only file that sees pyvips, and only the child imports it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyvips

from imprint.images.bounds import Bounds
from imprint.images.facts import Facts
from imprint.images.refusal import Refusal
from imprint.images.sniff import ALLOWED, AVIF, GIF, HEAD_BYTES, HTML, JPEG, PNG, TIFF, WEBP, XML, is_complete, sniff

_LOADERS: Mapping[str, str] = {
    JPEG: "VipsForeignLoadJpeg",
    PNG: "VipsForeignLoadPng",
    WEBP: "VipsForeignLoadWebp",
    GIF: "VipsForeignLoadNsgif",
    TIFF: "VipsForeignLoadTiff",
    AVIF: "VipsForeignLoadHeif",
}
_SAVERS = (
    "VipsForeignSaveWebp",
    "VipsForeignSaveJpeg",
    "VipsForeignSavePng",
    "VipsForeignSaveSpng",
    "VipsForeignSaveCgif",
)
# What vips calls the loader that read an image, without its ending for a file, a buffer or a source.
_LOADED_BY = {JPEG: "jpegload", PNG: "pngload", WEBP: "webpload", GIF: "gifload", TIFF: "tiffload", AVIF: "heifload"}
# Pages of a TIFF and the further images of an AVIF are not frames of an animation.
_ANIMATED = frozenset({GIF, WEBP})
_SIDEWAYS = 5  # EXIF orientations from here on swap width and height
_PROFILE = "icc-profile-data"
_OPAQUE = 255
_WHITE = [255, 255, 255]
_OUT_OF_MEMORY = ("out of memory", "malloc", "alloc")


def allow_only_known_types() -> None:
    """Block every loader and saver but ours: SVG, PDF, ImageMagick and their like are never run."""
    pyvips.block_untrusted_set(state=True)
    pyvips.operation_block_set("VipsForeignLoad", state=True)
    pyvips.operation_block_set("VipsForeignSave", state=True)
    for name in (*_LOADERS.values(), *_SAVERS):
        pyvips.operation_block_set(name, state=False)
    # Nothing of one image is left when the next one comes.
    pyvips.cache_set_max(0)


@dataclass(frozen=True)
class Picture:
    """Decoded pixels in memory: upright, 8 bit, sRGB; frames stand one below the other."""

    _image: Any
    frames: int

    @property
    def width(self) -> int:
        """Give the width of a frame."""
        return int(self._image.width)

    @property
    def height(self) -> int:
        """Give the height of a frame."""
        return int(self._image.height) // self.frames

    @property
    def has_alpha(self) -> bool:
        """Say whether it may be transparent somewhere."""
        return bool(self._image.hasalpha())

    def within(self, edge: int) -> Self:
        """Shrink to a longest edge; one that is already smaller stays as it is."""
        if max(self.width, self.height) <= edge:
            return self
        return self._shrunk(edge, edge, "down")

    def exactly(self, width: int, height: int) -> Self:
        """Shrink to a size."""
        if (width, height) == (self.width, self.height):
            return self
        return self._shrunk(width, height, "force")

    def _shrunk(self, width: int, height: int, size: str) -> Self:
        with _decoding():
            shrunk = self._image.thumbnail_image(width, height=height, size=size, no_rotate=True)
            return type(self)(shrunk.copy_memory(), self.frames)

    def encoded(self, kind: str, quality: int, effort: int) -> bytes:
        """Encode without any metadata."""
        image = self._image
        with _decoding():
            match kind:
                case "image/webp":
                    data = image.webpsave_buffer(Q=quality, effort=effort, keep="none")
                case "image/jpeg":
                    opaque = image.flatten(background=_WHITE) if self.has_alpha else image
                    data = opaque.jpegsave_buffer(Q=quality, optimize_coding=True, keep="none")
                case "image/png":
                    data = image.pngsave_buffer(keep="none")
                case "image/gif":
                    data = image.gifsave_buffer(keep="none")
                case _:
                    raise ValueError(kind)
        return bytes(data)


class Original:
    """An original, open for reading; nothing of it is decoded until pixels are asked for."""

    def __init__(self, descriptor: int, bounds: Bounds) -> None:
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self.facts = self._look(bounds)

    def _look(self, bounds: Bounds) -> Facts:
        if self._size == 0:
            raise Refusal("image.empty")
        kind = sniff(self._read(0, HEAD_BYTES))
        if kind is None or kind in (HTML, XML):
            raise Refusal("image.not_an_image")
        if kind not in ALLOWED:
            raise Refusal("image.type_not_allowed")
        self._kind = kind
        with self._decoding():
            header = pyvips.Image.new_from_source(self._source(), "", access="sequential")
        if not str(header.get("vips-loader")).startswith(_LOADED_BY[kind]):
            raise Refusal("image.not_an_image")
        # Without a profile a CMYK image is read with vips's own, and everything else is taken for sRGB: to convert that
        # from sRGB to sRGB would change nothing and take longer than to decode it.
        self._has_colours_of_its_own = header.interpretation == "cmyk" or _PROFILE in header.get_fields()
        pages = header.get_n_pages() if kind in _ANIMATED else 1
        if header.width * header.height > bounds.pixels:
            raise Refusal("image.too_many_pixels")
        if pages > bounds.frames:
            raise Refusal("image.too_many_frames")
        orientation = header.get("orientation") if "orientation" in header.get_fields() else 1
        width, height = header.width, header.height
        if orientation >= _SIDEWAYS:
            width, height = height, width
        return Facts(kind, width, height, pages, bool(header.hasalpha()), orientation, self._size)

    def picture(self, width: int, height: int, *, exactly: bool, animated: bool) -> Picture:
        """Decode, as small as the decoder itself can, to fit a box or to have exactly a size."""
        frames = self.facts.frames if animated else 1
        with self._decoding():
            image = pyvips.Image.thumbnail_source(
                self._source(),
                width,
                height=height,
                size="force" if exactly else "down",
                # Half an image is not an image; what a decoder merely warns about is let through. Said here because
                # the argument of that name does not reach the loader of a source (libvips 8.18).
                option_string="[n=-1,fail_on=error]" if animated else "[fail_on=error]",
                **({"output_profile": "srgb"} if self._has_colours_of_its_own else {}),
            )
            if image.interpretation != "srgb":
                image = image.colourspace("srgb")
            if image.format != "uchar":
                image = image.cast("uchar")
            pixels = image.copy_memory()
            # Many a PNG says it is transparent and is nowhere so; without that it is encoded in half the time.
            if pixels.hasalpha() and pixels[-1].min() == _OPAQUE:
                pixels = pixels[:-1].copy_memory()
            return Picture(pixels, frames)

    def _source(self) -> Any:
        os.lseek(self._descriptor, 0, os.SEEK_SET)  # every source made of it shares one position
        return pyvips.Source.new_from_descriptor(self._descriptor)

    def _read(self, at: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, at)

    def _decoding(self) -> "_decoding":
        return _decoding("image.damaged" if is_complete(self._kind, self._size, self._read) else "image.truncated")


class _decoding:  # noqa: N801 - it reads as a statement
    """Turn what vips raises into a refusal."""

    def __init__(self, code: str = "image.damaged") -> None:
        self._code = code

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Translate; vips says that memory ran out only in words."""
        if isinstance(error, pyvips.Error):
            said = str(error).lower()
            ran_out = any(word in said for word in _OUT_OF_MEMORY)
            raise Refusal("image.too_much_memory" if ran_out else self._code) from error
