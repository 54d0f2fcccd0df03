"""Pictures for benches: photographs and drawings, made from a seed, the same in every run."""

import random
from pathlib import Path
from typing import Any

import pyvips

# Wide, medium and fine structure and a sensor's noise: at these strengths a 24 MP JPEG of quality 90 has 9 to 10 MB.
STRUCTURE = ((900, (70, 60, 50)), (120, (30, 40, 25)), (9, (14, 10, 18)))
NOISE = 7


def photograph(width: int, height: int, seed: int) -> Any:
    """Make what compresses like a photograph."""
    layers = [pyvips.Image.perlin(width, height, cell_size=size, seed=seed + size) for size, _ in STRUCTURE]
    bands = []
    for band in range(3):
        light = pyvips.Image.gaussnoise(width, height, mean=110 + 10 * band, sigma=NOISE, seed=seed + band)
        for layer, (_, strength) in zip(layers, STRUCTURE, strict=True):
            light += layer * strength[band]
        bands.append(light)
    return bands[0].bandjoin(bands[1:]).cast("uchar").copy(interpretation="srgb")


def drawing(width: int, height: int, seed: int) -> Any:
    """Make what compresses like a drawing: flat colours, outlines, strokes, and nothing behind them."""
    dice = random.Random(seed)

    def place() -> str:
        return f"{dice.randrange(width)} {dice.randrange(height)}"

    def colour() -> str:
        return f"#{dice.randrange(1 << 24):06x}"

    shapes = [
        f'<circle cx="{dice.randrange(width)}" cy="{dice.randrange(height)}" r="{dice.randrange(20, height // 6)}" '
        f'fill="{colour()}" fill-opacity="{dice.choice([1, 1, 0.7])}" stroke="black" stroke-width="6"/>'
        for _ in range(60)
    ]
    strokes = [
        f'<path d="M{place()} Q{place()} {place()}" fill="none" '
        f'stroke="{colour()}" stroke-width="{dice.randrange(2, 14)}"/>'
        for _ in range(80)
    ]
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{"".join(shapes + strokes)}</svg>'
    return pyvips.Image.svgload_buffer(svg.encode())


def originals(folder: Path, count: int) -> list[Path]:
    """Write originals, a third each: JPEG 24 MP (every second in Display P3), PNG 12 MP, WebP 12 MP."""
    made = []
    for at in range(count):
        kind, seed = at % 3, at // 3
        path = folder / f"{at}.{('jpg', 'png', 'webp')[kind]}"
        if kind == 0:
            photo = photograph(6000, 4000, seed)
            if seed % 2:
                photo = photo.icc_transform("p3", input_profile="srgb")
            photo.jpegsave(str(path), Q=90)
        elif kind == 1:
            drawing(4000, 3000, seed).pngsave(str(path))
        else:
            photograph(4000, 3000, seed + 100).webpsave(str(path), Q=90)
        made.append(path)
    return made
