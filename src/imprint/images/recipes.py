"""Recipes: how each variant is made, as data with a version; change one and give it the next version.

Common to all: turned upright by EXIF, colours converted to sRGB through the embedded profile (CMYK and 16 bit too),
all metadata dropped, transparency kept, never enlarged.
"""

from dataclasses import dataclass
from types import MappingProxyType

from imprint.images.facts import Facts


@dataclass(frozen=True)
class Recipe:
    """How one variant is made; an animation that is longer or larger than said becomes its first frame."""

    variant: str
    version: int
    edge: int
    quality: int
    # libwebp's method, 0 (fast) to 6 (small): 2 takes half the time of 4, the usual one, for 2 to 8 % more bytes.
    effort: int
    frames: int = 1
    animated_pixels: int = 0
    type: str = "image/webp"

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Give the width and height this recipe makes of an image."""
        scale = min(1.0, self.edge / max(width, height))
        return max(1, round(width * scale)), max(1, round(height * scale))

    def animates(self, facts: Facts) -> bool:
        """Say whether an animation stays one."""
        width, height = self.size(facts.width, facts.height)
        return 1 < facts.frames <= self.frames and width * height * facts.frames <= self.animated_pixels


THUMBNAIL = Recipe("thumbnail", version=1, edge=300, quality=80, effort=2)
# The pixels of all frames are in memory at once, 4 bytes each, and are encoded at some 10 million a second.
PREVIEW = Recipe("preview", version=1, edge=1024, quality=80, effort=2, frames=500, animated_pixels=50_000_000)
FULL = Recipe("full", version=1, edge=2048, quality=80, effort=2, frames=500, animated_pixels=50_000_000)

RECIPES = MappingProxyType({recipe.variant: recipe for recipe in (THUMBNAIL, PREVIEW, FULL)})
