"""Facts: what is known of an image without looking at its pixels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """What an image is; width and height are those a person sees, after the EXIF orientation."""

    type: str
    width: int
    height: int
    frames: int
    has_alpha: bool
    orientation: int
    size: int

    @property
    def edge(self) -> int:
        """Give the longest edge."""
        return max(self.width, self.height)

    @property
    def pixels(self) -> int:
        """Give the pixels of one frame."""
        return self.width * self.height
