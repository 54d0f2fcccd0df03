"""Bounds: what one image may cost; whoever asks for more is refused or ended."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """The bounds of one child process, and of each image it works on."""

    # A progressive JPEG of this many pixels is held whole by its decoder: 6 bytes a pixel, well inside the memory.
    pixels: int = 100_000_000
    frames: int = 2000
    memory_bytes: int = 1 << 30
    cpu_seconds: int = 60
    wall_seconds: float = 120
    # Children, not threads, use the cores: the WebP encoder, where most time goes, has one thread anyway.
    threads: int = 1
    nice: int = 5
    # Whatever a decoder leaks or a crafted file leaves behind ends with its process.
    images_per_child: int = 200
