"""Pictures for tests: ordinary ones, odd ones and hostile ones, all made on the fly."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyvips

Colour = tuple[int, ...]

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 160, 0), (0, 0, 255), (255, 255, 255)
CORNERS = (RED, GREEN, BLUE, WHITE)  # top left, top right, bottom left, bottom right

# How pixels are stored so that each EXIF orientation shows them upright.
STORED: dict[int, tuple[str, ...]] = {
    1: (),
    2: ("fliphor",),
    3: ("rot180",),
    4: ("flipver",),
    5: ("rot90", "fliphor"),
    6: ("rot270",),
    7: ("rot270", "fliphor"),
    8: ("rot90",),
}


def plain(width: int, height: int, colour: Colour = RED) -> Any:
    """Make a picture of one colour; a fourth number is its opacity."""
    image = pyvips.Image.black(width, height).new_from_image(list(colour))
    return image.cast("uchar").copy(interpretation="srgb" if len(colour) > 2 else "b-w")


def corners(width: int, height: int) -> Any:
    """Make a picture whose four quarters have four colours."""
    quarters = [plain(width // 2, height // 2, colour) for colour in CORNERS]
    return pyvips.Image.arrayjoin(quarters, across=2)


def noise(width: int, height: int, seed: int = 1) -> Any:
    """Make a picture that hardly compresses."""
    bands = [pyvips.Image.gaussnoise(width, height, mean=128, sigma=50, seed=seed + band) for band in range(3)]
    return bands[0].bandjoin(bands[1:]).cast("uchar").copy(interpretation="srgb")


def animation(frames: int, width: int, height: int) -> Any:
    """Make an animation that goes from black to red, 50 ms a frame."""
    shades = [plain(width, height, (255 * frame // max(1, frames - 1), 0, 0)) for frame in range(frames)]
    strip = pyvips.Image.arrayjoin(shades, across=1).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", height)
    strip.set_type(pyvips.GValue.array_int_type, "delay", [50] * frames)
    strip.set_type(pyvips.GValue.gint_type, "loop", 3)
    return strip


def turned(image: Any, orientation: int) -> Any:
    """Store a picture so that its EXIF orientation is needed to see it upright."""
    for step in STORED[orientation]:
        image = getattr(image, step)()
    image = image.copy()
    image.set_type(pyvips.GValue.gint_type, "orientation", orientation)
    return image


def profiled(image: Any, profile: bytes) -> Any:
    """Put a colour profile, or what calls itself one, into a picture."""
    image = image.copy()
    image.set_type(pyvips.GValue.blob_type, "icc-profile-data", profile)
    return image


def beside(left: Any, right: Any) -> Any:
    """Put two pictures side by side."""
    return left.join(right, "horizontal")


def located(image: Any) -> Any:
    """Give a picture the place where it was taken, and its photographer."""
    image = image.copy()
    image.set_type(pyvips.GValue.gstr_type, "exif-ifd3-GPSLatitude", "52/1 31/1 12/1")
    image.set_type(pyvips.GValue.gstr_type, "exif-ifd0-Artist", "SOMEBODY PRIVATE")
    return image


def saved(folder: Path, name: str, image: Any, **options: Any) -> Path:
    """Save a picture under a name whose ending says the format."""
    path = folder / name
    image.write_to_file(str(path), **options)
    return path


def written(folder: Path, name: str, data: bytes) -> Path:
    """Write bytes under a name."""
    path = folder / name
    path.write_bytes(data)
    return path


def opened(path: Path, *, animated: bool = False) -> Any:
    """Open what was made."""
    return pyvips.Image.new_from_file(str(path), **({"n": -1} if animated else {}))


def colour_at(image: Any, x: float, y: float) -> list[int]:
    """Give the colour at a place between 0 and 1 in both directions."""
    return [round(band) for band in image.getpoint(int(x * (image.width - 1)), int(y * (image.height - 1)))]


def near(found: list[int], wanted: Colour, by: int = 24) -> bool:
    """Say whether two colours look the same."""
    return len(found) == len(wanted) and all(abs(one - other) <= by for one, other in zip(found, wanted, strict=True))


def png_bomb(width: int, height: int, *, interlaced: bool = False, depth: int = 1) -> bytes:
    """Make a small PNG of one colour and any size, without ever holding its pixels."""
    packer = zlib.compressobj(1)
    packed = [packer.compress(zeros) for zeros in _zeros(_raw_size(width, height, depth, interlaced=interlaced))]
    return _png(width, height, depth, b"".join([*packed, packer.flush()]), interlaced=interlaced)


def png_claiming(width: int, height: int) -> bytes:
    """Make a PNG that claims a size and has next to nothing in it."""
    return _png(width, height, 8, zlib.compress(bytes(100)), interlaced=False)


def _png(width: int, height: int, depth: int, data: bytes, *, interlaced: bool) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _raw_size(width: int, height: int, depth: int, *, interlaced: bool) -> int:
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    size = 0
    for left, top, across, down in passes if interlaced else [(0, 0, 1, 1)]:
        columns, rows = -(-(width - left) // across), -(-(height - top) // down)
        size += rows * (1 + -(-columns * depth // 8)) if columns > 0 and rows > 0 else 0
    return size


def _zeros(size: int) -> Iterator[bytes]:
    block = bytes(1 << 20)
    while size > 0:
        yield block[:size]
        size -= len(block)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def gif_bomb(width: int, height: int, frames: int) -> bytes:
    """Make a small GIF that claims a canvas and many frames of one pixel."""
    control = b"\x21\xf9\x04\x00\x05\x00\x00\x00"
    frame = control + b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    screen = struct.pack("<HHBBB", width, height, 0x80, 0, 0)
    return b"GIF89a" + screen + b"\x00\x00\x00\xff\x00\x00" + frame * frames + b";"


def claiming(jpeg: bytes, width: int, height: int) -> bytes:
    """Change the size that a JPEG's header claims."""
    at = jpeg.index(b"\xff\xc0") + 5
    return jpeg[:at] + struct.pack(">HH", height, width) + jpeg[at + 4 :]
