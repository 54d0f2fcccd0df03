"""A painting: a small picture made by arithmetic alone, so that the demo can show something that is nobody's."""

import struct
import zlib
from hashlib import sha256

WIDTH, HEIGHT = 320, 200
HORIZON = 130
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def painting(title: str) -> bytes:
    """Paint a sky, a sun and a sea as PNG; the same title gives the same picture, another title another one."""
    chance = sha256(title.encode()).digest()
    dusk, night = (200 + chance[0] % 56, 90 + chance[1] % 90, 60 + chance[2] % 80), (20, 24, 60 + chance[3] % 80)
    sun = (60 + chance[4] % 200, HORIZON - 10 - chance[5] % 60, 14 + chance[6] % 14)
    rows = b"".join(b"\0" + bytes(_row(y, dusk, night, sun)) for y in range(HEIGHT))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 6)) + _chunk(b"IEND", b"")


def _row(y: int, dusk: tuple[int, ...], night: tuple[int, ...], sun: tuple[int, int, int]) -> list[int]:
    sky = y < HORIZON
    share = y / HORIZON if sky else (HEIGHT - y) / (HEIGHT - HORIZON) / 2  # the sea is a darker sky, upside down
    plain = [round(n + (d - n) * share) for d, n in zip(dusk, night, strict=True)]
    row = plain * WIDTH
    x, middle, radius = sun
    distance = y - middle if sky else 2 * HORIZON - y - middle
    half = int(max(radius**2 - distance**2, 0) ** 0.5)
    bright = [255, 230, 170] if sky else [(part + 255) // 2 for part in plain]
    row[3 * (x - half) : 3 * (x + half)] = bright * (2 * half)
    return row


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
